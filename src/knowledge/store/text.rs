//! The text of a document, all of it as it was at one moment.

use rusqlite::{Connection, params};

use super::error::Error;
use super::{Store, documents};
use crate::knowledge::document::{BaseName, Document, DocumentId, Page};

/// Which pages are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The number of the first.
    pub from: u32,
    pub pages: u32,
    /// After so many bytes no further page begins.
    pub bytes: usize,
}

impl Store {
    /// A document with some of its pages. Both are of the same moment, so one that is replaced meanwhile is never half of
    /// each. None if there is no such document.
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
