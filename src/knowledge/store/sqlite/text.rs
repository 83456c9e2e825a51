//! Text of a document, read from one snapshot.

use rusqlite::{Connection, params};

use super::{Store, documents, rows};
use crate::knowledge::document::{BaseName, Document, DocumentId, Page, PlacedChunk};
use crate::knowledge::store::{Error, Wanted};

/// Number of characters to return of a chunk without known spans; enough to find it on its page.
const BEGINNING: u32 = 200;

impl Store {
    /// Returns a document and some of its pages from one snapshot, so a concurrent replacement never mixes two
    /// versions. Returns None if the document does not exist.
    pub async fn text(
        &self,
        base: &BaseName,
        id: DocumentId,
        wanted: Wanted,
    ) -> Result<Option<(Document, Vec<Page>)>, Error> {
        let base = base.clone();
        self.read(move |transaction| {
            let Some(document) = documents::find(transaction, "d.id = ?2", (base, id))? else { return Ok(None) };
            let pages = pages(transaction, document.key, wanted)?;
            Ok(Some((document, pages)))
        })
        .await
    }

    /// The same, and the chunks on these pages in document order.
    pub async fn text_and_chunks(
        &self,
        base: &BaseName,
        id: DocumentId,
        wanted: Wanted,
    ) -> Result<Option<(Document, Vec<Page>, Vec<PlacedChunk>)>, Error> {
        let base = base.clone();
        self.read(move |transaction| {
            let Some(document) = documents::find(transaction, "d.id = ?2", (base, id))? else { return Ok(None) };
            let pages = pages(transaction, document.key, wanted)?;
            let chunks = match (pages.first(), pages.last()) {
                (Some(first), Some(last)) => chunks(transaction, document.key, first.number, last.number)?,
                _ => Vec::new(),
            };
            Ok(Some((document, pages, chunks)))
        })
        .await
    }
}

fn pages(connection: &Connection, document: u64, wanted: Wanted) -> Result<Vec<Page>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT number, label, text FROM pages WHERE document = ?1 AND number >= ?2 ORDER BY number LIMIT ?3",
    )?;
    let mut rows = statement.query(params![document, wanted.from, wanted.pages])?;
    let (mut pages, mut bytes): (Vec<Page>, usize) = (Vec::new(), 0);
    while bytes <= wanted.bytes
        && let Some(row) = rows.next()?
    {
        let page = Page { number: row.get(0)?, label: row.get(1)?, text: row.get(2)? };
        bytes += page.text.len();
        pages.push(page);
    }
    Ok(pages)
}

/// A chunk may repeat text from the page before it, so chunks of the page after the last one are included.
fn chunks(connection: &Connection, document: u64, first: u32, last: u32) -> Result<Vec<PlacedChunk>, Error> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT id, ordinal, page_first, page_last, stretches, \
         CASE stretches WHEN '[]' THEN substr(text, 1, {BEGINNING}) END FROM chunks \
         WHERE document = ?1 AND (page_last = 0 OR page_last >= ?2 AND page_first <= ?3 + 1) ORDER BY ordinal"
    ))?;
    let rows = statement.query_map(params![document, first, last], |row| {
        Ok(PlacedChunk {
            id: row.get(0)?,
            ordinal: row.get(1)?,
            pages: (row.get(2)?, row.get(3)?),
            stretches: rows::json(row, 4)?,
            beginning: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
