//! Chunks: lookup by key or ID with the fields that search results need, and new keys for the chunks of a renamed
//! document, whose terms change because the file name is part of the indexed text.

use std::collections::HashMap;

use corbie_index::{Chunk, Document, external};
use tokio_postgres::Row;

use super::session::Session;
use super::{ORDINAL_BITS, Store, postings, rows, run_blocking};
use crate::chunk_context::DocumentContext;
use crate::document::{ChunkId, DocumentId, FoundChunk};
use crate::store::Error;

/// Columns in the order that [`read_chunk`] expects.
const CHUNK_COLUMNS: &str = "c.writing, c.ordinal, c.id, c.text, c.page_first, c.page_last, c.path, c.tokens, d.key, d.id, b.name, d.filename, \
     d.title, d.format, d.date_added, d.metadata, c.stretches FROM chunks AS c JOIN documents AS d ON d.writing = c.writing \
     JOIN bases AS b ON b.key = d.base";

/// Number of chunks per statement when a document gets new keys.
const CHUNKS_PER_UPDATE: i32 = 100;

impl Store {
    pub async fn chunks(&self, keys: &[u64]) -> Result<Vec<FoundChunk>, Error> {
        load(&self.autocommit().await?, keys).await
    }

    pub async fn chunk(&self, id: ChunkId) -> Result<Option<FoundChunk>, Error> {
        let session = self.autocommit().await?;
        let row = session.opt_row(&format!("SELECT {CHUNK_COLUMNS} WHERE c.id = $1"), &[&id.0]).await?;
        row.map(|row| read_chunk(&row)).transpose()
    }
}

/// Returns chunks by key, in the order of the keys. A single statement reads them from one snapshot.
pub(super) async fn load(session: &Session, keys: &[u64]) -> Result<Vec<FoundChunk>, Error> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let (writings, ordinals): (Vec<i64>, Vec<i32>) = keys.iter().map(|key| split_key(*key)).unzip();
    let sql = format!(
        "SELECT {CHUNK_COLUMNS} JOIN unnest($1::bigint[], $2::int[]) AS k (writing, ordinal) \
         ON k.writing = c.writing AND k.ordinal = c.ordinal"
    );
    let rows = session.rows(&sql, &[&writings, &ordinals]).await?;
    let mut found = rows.iter().map(read_chunk).collect::<Result<Vec<_>, _>>()?;
    let places: HashMap<u64, usize> = keys.iter().enumerate().map(|(place, key)| (*key, place)).collect();
    found.sort_by_key(|chunk| places.get(&chunk.key).copied());
    Ok(found)
}

/// Splits a key into content version and ordinal.
pub(super) fn split_key(key: u64) -> (i64, i32) {
    ((key >> ORDINAL_BITS) as i64, (key & ((1 << ORDINAL_BITS) - 1)) as i32)
}

/// The key of the chunk with this ordinal in a content version.
pub(super) fn join_key(writing: i64, ordinal: i32) -> u64 {
    (writing as u64) << ORDINAL_BITS | ordinal as u64
}

fn read_chunk(row: &Row) -> Result<FoundChunk, Error> {
    Ok(FoundChunk {
        key: join_key(rows::get(row, 0)?, rows::get(row, 1)?),
        ordinal: rows::get_u32(row, 1)?,
        id: ChunkId(rows::get(row, 2)?),
        text: rows::get(row, 3)?,
        pages: (rows::get_u32(row, 4)?, rows::get_u32(row, 5)?),
        headings: rows::get_json(row, 6)?,
        tokens: rows::get_u32(row, 7)?,
        document: rows::get_u64(row, 8)?,
        document_id: DocumentId(rows::get(row, 9)?),
        base: rows::get_base_name(row, 10)?,
        filename: rows::get(row, 11)?,
        title: rows::get(row, 12)?,
        format: rows::get(row, 13)?,
        date_added: rows::get(row, 14)?,
        metadata: rows::get_metadata(row, 15)?,
        spans: rows::get_json(row, 16)?,
    })
}

/// Assigns a new content version to a document and rewrites its postings.
pub(super) async fn rekey(
    session: &Session,
    base: i64,
    document: i64,
    writing: i64,
    filename: &str,
    title: Option<&str>,
) -> Result<(), Error> {
    // Analyzing a large document takes a while.
    session.execute_batch("SET LOCAL idle_in_transaction_session_timeout = '120s'").await?;
    let new: i64 = rows::get(&session.row("SELECT nextval('writing')", &[]).await?, 0)?;
    let sql = "SELECT ordinal, text, path FROM chunks WHERE writing = $1 ORDER BY ordinal";
    let (mut chunks, named) = (Vec::new(), DocumentContext::of(filename, title));
    for row in session.rows(sql, &[&writing]).await? {
        let path: Vec<String> = rows::get_json(&row, 2)?;
        let context = named.for_chunk(&path);
        let key = u64::from(rows::get_u32(&row, 0)?);
        chunks.push(Chunk { key, text: rows::get(&row, 1)?, context, vectors: Vec::new() });
    }
    let count = rows::to_i32(chunks.len())?;
    let words =
        run_blocking(move || external::analyze(&Document { key: 0, added: 0, facets: Vec::new(), chunks })).await?;
    session.execute("UPDATE pages SET writing = $2 WHERE writing = $1", &[&writing, &new]).await?;
    // Every moved vector searches its neighbours in the HNSW index again, so moving all in one statement would take
    // too long.
    for from in (0..count).step_by(CHUNKS_PER_UPDATE as usize) {
        for table in ["chunks", "vectors"] {
            let sql = format!(
                "UPDATE {table} SET writing = $2 WHERE writing = $1 AND ordinal >= $3 AND ordinal < $3 + {CHUNKS_PER_UPDATE}"
            );
            session.execute(&sql, &[&writing, &new, &from]).await?;
        }
    }
    let sql = "UPDATE writings SET dead = $2 WHERE key = $1";
    session.execute(sql, &[&writing, &rows::now()]).await?;
    postings::write_postings(session, base, new, &words).await?;
    // The new name may be shorter or longer.
    let length = rows::to_i64(words.stats.length);
    let sql = "INSERT INTO sums (base, documents, chunks, vectors, size_bytes, length, languages, updated) \
               SELECT base, 0, 0, 0, 0, $2 - length, '{}', $3 FROM documents WHERE key = $1";
    session.execute(sql, &[&document, &length, &rows::now()]).await?;
    let sql = "UPDATE documents SET writing = $2, length = $3 WHERE key = $1";
    session.execute(sql, &[&document, &new, &length]).await?;
    Ok(())
}
