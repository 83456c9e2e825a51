//! What else says the same as a document.
//!
//! A document is kept once, however many files say the same. Each of them was acknowledged, so that what they say must not
//! be gone when one of them says something else.

use rusqlite::params;

use super::Store;
use crate::knowledge::document::DocumentId;
use crate::knowledge::store::Error;

/// So many are remembered of one document.
const MOST: u32 = 100;

impl Store {
    /// Notes that a document is also that of the file at a path, or of an upload. A document that is gone has none.
    pub async fn note_copy(&self, id: DocumentId, path: Option<String>) -> Result<(), Error> {
        self.write(move |transaction, _| {
            let mut statement = transaction.prepare_cached(
                "INSERT OR IGNORE INTO copies (document, path) SELECT key, ?2 FROM documents WHERE id = ?1 \
                 AND (SELECT count(*) FROM copies WHERE document = key) < ?3",
            )?;
            statement.execute(params![id, path.unwrap_or_default(), MOST])?;
            Ok(())
        })
        .await
    }

    /// The other paths of a document, and none for an upload.
    pub async fn copies(&self, id: DocumentId) -> Result<Vec<Option<String>>, Error> {
        self.read(move |transaction| {
            let mut statement = transaction.prepare_cached(
                "SELECT nullif(c.path, '') FROM copies AS c JOIN documents AS d ON d.key = c.document WHERE d.id = ?1 \
                 ORDER BY c.path DESC",
            )?;
            let rows = statement.query_map([id], |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}
