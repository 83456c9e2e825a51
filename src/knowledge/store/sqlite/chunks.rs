//! Chunks that were found, with what their readers want to know; and other keys for those that are found by other words.

use rusqlite::{Connection, OptionalExtension};

use super::{Store, rows};
use crate::knowledge::document::{ChunkId, FoundChunk};
use crate::knowledge::store::Error;

impl Store {
    /// Chunks by their keys, in that order, as they all were at one moment. Those that are gone are left out.
    pub async fn chunks(&self, keys: &[u64]) -> Result<Vec<FoundChunk>, Error> {
        let keys = keys.to_vec();
        self.read(move |transaction| find(transaction, &keys)).await
    }

    /// One by the id that callers know.
    pub async fn chunk(&self, id: ChunkId) -> Result<Option<FoundChunk>, Error> {
        self.read(move |transaction| {
            let mut statement = transaction.prepare_cached("SELECT key FROM chunks WHERE id = ?1")?;
            let key: Option<u64> = statement.query_row([id], |row| row.get(0)).optional()?;
            Ok(find(transaction, key.as_slice())?.pop())
        })
        .await
    }
}

fn find(connection: &Connection, keys: &[u64]) -> Result<Vec<FoundChunk>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT c.key, c.id, c.ordinal, c.text, c.page_first, c.page_last, c.path, c.tokens, d.key, d.id, b.name, d.filename, \
         d.title, d.format, d.date_added, d.metadata, c.stretches FROM chunks AS c JOIN documents AS d ON d.key = c.document \
         JOIN bases AS b ON b.key = d.base WHERE c.key = ?1",
    )?;
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        let chunk = statement.query_row([key], |row| {
            Ok(FoundChunk {
                key: row.get(0)?,
                id: row.get(1)?,
                ordinal: row.get(2)?,
                text: row.get(3)?,
                pages: (row.get(4)?, row.get(5)?),
                path: rows::json(row, 6)?,
                tokens: row.get(7)?,
                document: row.get(8)?,
                document_id: row.get(9)?,
                base: row.get(10)?,
                filename: row.get(11)?,
                title: row.get(12)?,
                format: row.get(13)?,
                date_added: row.get(14)?,
                metadata: rows::metadata(row, 15)?,
                stretches: rows::json(row, 16)?,
            })
        });
        found.extend(chunk.optional()?);
    }
    Ok(found)
}

/// Gives the chunks of a document keys that nothing had before. What was indexed for the old keys stays true of them, and
/// is of no use.
pub(super) fn renew(connection: &Connection, document: u64) -> Result<(), Error> {
    let last: i64 = connection
        .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'chunks'")?
        .query_row([], |row| row.get(0))
        .optional()?
        .unwrap_or_default();
    // Vectors and chunks refer to each other again when both have moved.
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
