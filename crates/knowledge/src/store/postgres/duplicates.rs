//! Duplicates: other files with the same content as a document.
//!
//! A document is stored once, however many files have its content. Each of these files was acknowledged, so the
//! content must not disappear when one of the files changes.

use super::{Store, rows};
use crate::document::DocumentId;
use crate::store::Error;

/// Maximum number of duplicates per document. Concurrent inserts may exceed it slightly.
const MAX_DUPLICATES: i64 = 100;

impl Store {
    /// Records that a file at a path, or an upload, has the same content as a document. Does nothing if the document
    /// was removed.
    pub async fn record_duplicate(&self, id: DocumentId, path: Option<String>) -> Result<(), Error> {
        // FOR KEY SHARE waits for a concurrent removal of the document, so no duplicate is recorded for a removed
        // document.
        let sql = "WITH noted AS (SELECT key FROM documents WHERE id = $1 FOR KEY SHARE) \
                   INSERT INTO copies (document, path) SELECT key, $2::text FROM noted \
                   WHERE (SELECT count(*) FROM copies AS c WHERE c.document = noted.key) < $3 \
                   ON CONFLICT (document, md5(path)) DO NOTHING";
        let path = path.unwrap_or_default();
        // The statement is idempotent, so it may be retried.
        self.query_with_retry(sql, &[&id.0, &rows::without_nul(&path), &MAX_DUPLICATES]).await?;
        Ok(())
    }

    /// Returns the other paths of a document; None is an upload.
    pub async fn duplicates(&self, id: DocumentId) -> Result<Vec<Option<String>>, Error> {
        let sql = "SELECT nullif(c.path, '') FROM copies AS c JOIN documents AS d ON d.key = c.document WHERE d.id = $1 \
                   ORDER BY c.path COLLATE \"C\" DESC";
        self.query_with_retry(sql, &[&id.0]).await?.iter().map(|row| rows::get(row, 0)).collect()
    }
}
