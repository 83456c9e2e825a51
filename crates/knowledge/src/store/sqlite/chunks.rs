//! Loads chunks by key or ID, and re-keys the chunks of renamed documents.

use rusqlite::{Connection, OptionalExtension};

use super::{Store, checksum, rows};
use crate::document::{ChunkId, FoundChunk};
use crate::store::Error;
use corbie_util::sanitize::sanitize_line;

impl Store {
    /// Returns chunks by key, in the order of the keys, from one snapshot. Removed chunks and damaged ones are omitted.
    pub async fn chunks(&self, keys: &[u64]) -> Result<Vec<FoundChunk>, Error> {
        let keys = keys.to_vec();
        self.read(move |transaction| find_chunks(transaction, &keys)).await
    }

    /// Returns a chunk by its public ID. Fails if it is damaged.
    pub async fn chunk(&self, id: ChunkId) -> Result<Option<FoundChunk>, Error> {
        self.read(move |transaction| {
            let mut statement = transaction.prepare_cached("SELECT key FROM chunks WHERE id = ?1")?;
            let Some(key) = statement.query_row([id], |row| row.get(0)).optional()? else { return Ok(None) };
            one(transaction, key)
        })
        .await
    }
}

fn find_chunks(connection: &Connection, keys: &[u64]) -> Result<Vec<FoundChunk>, Error> {
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        match one(connection, *key) {
            Ok(chunk) => found.extend(chunk),
            // One damaged chunk must not hide all other hits of a search.
            Err(error @ Error::Damaged { .. }) => tracing::error!(%error, "skipping a corrupt chunk in search results"),
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn one(connection: &Connection, key: u64) -> Result<Option<FoundChunk>, Error> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT c.key, c.id, c.ordinal, c.text, c.page_first, c.page_last, c.path, c.tokens, d.key, d.id, b.name, d.filename, \
         d.title, d.format, d.date_added, d.metadata, c.stretches, {} FROM chunks AS c \
         JOIN documents AS d ON d.key = c.document JOIN bases AS b ON b.key = d.base WHERE c.key = ?1",
        checksum::CHUNKS.intact("c")
    ))?;
    let mut rows = statement.query([key])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    if !row.get::<_, bool>(17)? {
        return Err(Error::Damaged { filename: sanitize_line(&row.get::<_, String>(11)?), id: row.get(9)? });
    }
    Ok(Some(FoundChunk {
        key: row.get(0)?,
        id: row.get(1)?,
        ordinal: row.get(2)?,
        text: row.get(3)?,
        pages: (row.get(4)?, row.get(5)?),
        headings: rows::get_json(row, 6)?,
        tokens: row.get(7)?,
        document: row.get(8)?,
        document_id: row.get(9)?,
        base: row.get(10)?,
        filename: row.get(11)?,
        title: row.get(12)?,
        format: row.get(13)?,
        date_added: row.get(14)?,
        metadata: rows::get_metadata(row, 15)?,
        spans: rows::get_json(row, 16)?,
    }))
}

/// Assigns new, never used keys to the chunks of a document. Index entries for the old keys become obsolete.
pub(super) fn rekey(connection: &Connection, document: u64) -> Result<(), Error> {
    let last: i64 = connection
        .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'chunks'")?
        .query_row([], |row| row.get(0))
        .optional()?
        .unwrap_or_default();
    // The foreign keys hold again once both tables are updated.
    connection.pragma_update(None, "defer_foreign_keys", true)?;
    let moved = "?2 + 1 + (SELECT ordinal FROM chunks WHERE key = chunk)";
    let theirs = "chunk IN (SELECT key FROM chunks WHERE document = ?1)";
    connection
        .prepare_cached(&format!("UPDATE vectors SET chunk = {moved} WHERE {theirs}"))?
        .execute((document, last))?;
    connection
        .prepare_cached("UPDATE chunks SET key = ?2 + 1 + ordinal WHERE document = ?1")?
        .execute((document, last))?;
    let highest = "max(seq, (SELECT ifnull(max(key), 0) FROM chunks))";
    connection
        .prepare_cached(&format!("UPDATE sqlite_sequence SET seq = {highest} WHERE name = 'chunks'"))?
        .execute([])?;
    Ok(())
}
