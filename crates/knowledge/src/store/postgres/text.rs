//! Text of a document, read from one snapshot.

use super::session::Session;
use super::{Store, rows};
use crate::document::{BaseName, ChunkId, DocumentId, DocumentPage, DocumentRecord, PlacedChunk};
use crate::store::{Error, PageRange};

/// Number of characters to return of a chunk without known spans; enough to find it on its page.
const EXCERPT_CHARS: u32 = 200;

impl Store {
    pub async fn text(
        &self,
        base: &BaseName,
        id: DocumentId,
        wanted: PageRange,
    ) -> Result<Option<(DocumentRecord, Vec<DocumentPage>)>, Error> {
        let session = self.begin_read().await?;
        let text = match document(&session, base, id).await? {
            Some((document, writing)) => Some((document, pages(&session, writing, wanted).await?)),
            None => None,
        };
        session.rollback().await?;
        Ok(text)
    }

    pub async fn text_and_chunks(
        &self,
        base: &BaseName,
        id: DocumentId,
        wanted: PageRange,
    ) -> Result<Option<(DocumentRecord, Vec<DocumentPage>, Vec<PlacedChunk>)>, Error> {
        let session = self.begin_read().await?;
        let Some((document, writing)) = document(&session, base, id).await? else {
            session.rollback().await?;
            return Ok(None);
        };
        let pages = pages(&session, writing, wanted).await?;
        let chunks = match (pages.first(), pages.last()) {
            (Some(first), Some(last)) => chunks(&session, writing, first.number, last.number).await?,
            _ => Vec::new(),
        };
        session.rollback().await?;
        Ok(Some((document, pages, chunks)))
    }
}

/// A document and its content version.
async fn document(session: &Session, base: &BaseName, id: DocumentId) -> Result<Option<(DocumentRecord, i64)>, Error> {
    let (columns, tables) = (rows::DOCUMENT_COLUMNS, rows::DOCUMENT_TABLES);
    let sql = format!("SELECT {columns} FROM {tables} WHERE b.name = $1 AND d.id = $2");
    session.opt_row(&sql, &[&base.as_str(), &id.0]).await?.as_ref().map(rows::read_document).transpose()
}

/// Pages up to the size limit. The server applies the limit, so no excess data is transferred.
async fn pages(session: &Session, writing: i64, wanted: PageRange) -> Result<Vec<DocumentPage>, Error> {
    let sql = "SELECT number, label, text FROM (SELECT number, label, text, \
               sum(octet_length(text)) OVER (ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before \
               FROM pages WHERE writing = $1 AND number >= $2 ORDER BY number LIMIT $3) AS p \
               WHERE coalesce(before, 0) <= $4 ORDER BY number";
    let bytes = i64::try_from(wanted.max_bytes).unwrap_or(i64::MAX);
    let from = i32::try_from(wanted.from).unwrap_or(i32::MAX);
    let rows = session.rows(sql, &[&writing, &from, &i64::from(wanted.pages), &bytes]).await?;
    let page =
        |row| Ok(DocumentPage { number: rows::get_u32(row, 0)?, label: rows::get(row, 1)?, text: rows::get(row, 2)? });
    rows.iter().map(page).collect()
}

/// A chunk may repeat text from the page before it, so chunks of the page after the last one are included.
async fn chunks(session: &Session, writing: i64, first: u32, last: u32) -> Result<Vec<PlacedChunk>, Error> {
    let sql = format!(
        "SELECT id, ordinal, page_first, page_last, stretches, CASE stretches WHEN '[]' THEN left(text, {EXCERPT_CHARS}) END \
         FROM chunks WHERE writing = $1 AND (page_last = 0 OR page_last >= $2::bigint AND page_first <= $3::bigint) ORDER BY ordinal"
    );
    let rows = session.rows(&sql, &[&writing, &i64::from(first), &(i64::from(last) + 1)]).await?;
    let chunk = |row| {
        Ok(PlacedChunk {
            id: ChunkId(rows::get(row, 0)?),
            ordinal: rows::get_u32(row, 1)?,
            pages: (rows::get_u32(row, 2)?, rows::get_u32(row, 3)?),
            spans: rows::get_json(row, 4)?,
            excerpt: rows::get(row, 5)?,
        })
    };
    rows.iter().map(chunk).collect()
}
