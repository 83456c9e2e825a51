//! Duplicates: other files with the same content as a document.
//!
//! A document is stored once, however many files have its content. Each of these files was acknowledged, so the
//! content must not disappear when one of the files changes.

use rusqlite::params;

use super::Store;
use crate::document::DocumentId;
use crate::store::Error;

/// Maximum number of duplicates per document.
const MAX_DUPLICATES: u32 = 100;

impl Store {
    /// Records that a file at a path, or an upload, has the same content as a document. Does nothing if the document
    /// was removed.
    pub async fn record_duplicate(&self, id: DocumentId, path: Option<String>) -> Result<(), Error> {
        self.write(move |transaction, _| {
            let mut statement = transaction.prepare_cached(
                "INSERT OR IGNORE INTO copies (document, path) SELECT key, ?2 FROM documents WHERE id = ?1 \
                 AND (SELECT count(*) FROM copies WHERE document = key) < ?3",
            )?;
            statement.execute(params![id, path.unwrap_or_default(), MAX_DUPLICATES])?;
            Ok(())
        })
        .await
    }

    /// Returns the other paths of a document; None represents an upload.
    pub async fn duplicates(&self, id: DocumentId) -> Result<Vec<Option<String>>, Error> {
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
