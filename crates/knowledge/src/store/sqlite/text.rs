//! Text of a document, read from one snapshot.

use rusqlite::{Connection, params};

use super::{Store, checksum, documents, rows};
use crate::document::{BaseName, DocumentId, DocumentPage, DocumentRecord, PlacedChunk};
use crate::store::{Error, PageRange};

/// Number of characters to return of a chunk without known spans; enough to find it on its page.
const EXCERPT_CHARS: u32 = 200;

impl Store {
    /// Returns a document and some of its pages from one snapshot, so a concurrent replacement never mixes two
    /// versions. Returns None if the document does not exist.
    pub async fn text(
        &self,
        base: &BaseName,
        id: DocumentId,
        wanted: PageRange,
    ) -> Result<Option<(DocumentRecord, Vec<DocumentPage>)>, Error> {
        let base = base.clone();
        self.read(move |transaction| {
            let Some(document) = documents::find_document(transaction, "d.id = ?2", (base, id))? else {
                return Ok(None);
            };
            let pages = pages(transaction, &document, wanted)?;
            Ok(Some((document, pages)))
        })
        .await
    }

    /// The same, and the chunks on these pages in document order.
    pub async fn text_and_chunks(
        &self,
        base: &BaseName,
        id: DocumentId,
        wanted: PageRange,
    ) -> Result<Option<(DocumentRecord, Vec<DocumentPage>, Vec<PlacedChunk>)>, Error> {
        let base = base.clone();
        self.read(move |transaction| {
            let Some(document) = documents::find_document(transaction, "d.id = ?2", (base, id))? else {
                return Ok(None);
            };
            let pages = pages(transaction, &document, wanted)?;
            let chunks = match (pages.first(), pages.last()) {
                (Some(first), Some(last)) => chunks(transaction, &document, first.number, last.number)?,
                _ => Vec::new(),
            };
            Ok(Some((document, pages, chunks)))
        })
        .await
    }
}

/// Fails if the document's row or one of these pages does not match its checksum.
fn pages(connection: &Connection, document: &DocumentRecord, wanted: PageRange) -> Result<Vec<DocumentPage>, Error> {
    let sql = format!("SELECT 1 FROM documents AS d WHERE d.key = ?1 AND {}", checksum::DOCUMENTS.intact("d"));
    if !connection.prepare_cached(&sql)?.exists([document.key])? {
        return Err(Error::damaged(document));
    }
    let mut statement = connection.prepare_cached(&format!(
        "SELECT p.number, p.label, p.text, {} FROM pages AS p WHERE p.document = ?1 AND p.number >= ?2 \
         ORDER BY p.number LIMIT ?3",
        checksum::PAGES.intact("p")
    ))?;
    let mut rows = statement.query(params![document.key, wanted.from, wanted.pages])?;
    let (mut pages, mut bytes): (Vec<DocumentPage>, usize) = (Vec::new(), 0);
    while bytes <= wanted.max_bytes
        && let Some(row) = rows.next()?
    {
        if !row.get::<_, bool>(3)? {
            return Err(Error::damaged(document));
        }
        let page = DocumentPage { number: row.get(0)?, label: row.get(1)?, text: row.get(2)? };
        bytes += page.text.len();
        pages.push(page);
    }
    Ok(pages)
}

/// A chunk may repeat text from the page before it, so chunks of the page after the last one are included. Fails if one
/// of them does not match its checksum.
fn chunks(
    connection: &Connection,
    document: &DocumentRecord,
    first: u32,
    last: u32,
) -> Result<Vec<PlacedChunk>, Error> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT c.id, c.ordinal, c.page_first, c.page_last, c.stretches, \
         CASE c.stretches WHEN '[]' THEN substr(c.text, 1, {EXCERPT_CHARS}) END, {} FROM chunks AS c \
         WHERE c.document = ?1 AND (c.page_last = 0 OR c.page_last >= ?2 AND c.page_first <= ?3 + 1) ORDER BY c.ordinal",
        checksum::CHUNKS.intact("c")
    ))?;
    let mut rows = statement.query(params![document.key, first, last])?;
    let mut chunks = Vec::new();
    while let Some(row) = rows.next()? {
        if !row.get::<_, bool>(6)? {
            return Err(Error::damaged(document));
        }
        chunks.push(PlacedChunk {
            id: row.get(0)?,
            ordinal: row.get(1)?,
            pages: (row.get(2)?, row.get(3)?),
            spans: rows::get_json(row, 4)?,
            excerpt: row.get(5)?,
        });
    }
    Ok(chunks)
}
