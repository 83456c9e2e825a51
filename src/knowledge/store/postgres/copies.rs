//! What else says the same as a document.
//!
//! A document is kept once, however many files say the same. Each of them was acknowledged, so that what they say must not
//! be gone when one of them says something else.

use super::{Store, rows};
use crate::knowledge::document::DocumentId;
use crate::knowledge::store::Error;

/// So many are remembered of one document. Several that are noted at once may pass it by a few.
const MOST: i64 = 100;

impl Store {
    /// Notes that a document is also that of the file at a path, or of an upload. A document that is gone has none.
    pub async fn note_copy(&self, id: DocumentId, path: Option<String>) -> Result<(), Error> {
        // A document that somebody removes right now is waited for: it is there or not, and nothing is noted for none.
        let sql = "WITH noted AS (SELECT key FROM documents WHERE id = $1 FOR KEY SHARE) \
                   INSERT INTO copies (document, path) SELECT key, $2::text FROM noted \
                   WHERE (SELECT count(*) FROM copies AS c WHERE c.document = noted.key) < $3 \
                   ON CONFLICT (document, md5(path)) DO NOTHING";
        let path = path.unwrap_or_default();
        // May be done twice, as it is one statement that notes nothing anew.
        self.ask(sql, &[&id.0, &rows::text(&path), &MOST]).await?;
        Ok(())
    }

    /// The other paths of a document, and none for an upload.
    pub async fn copies(&self, id: DocumentId) -> Result<Vec<Option<String>>, Error> {
        let sql = "SELECT nullif(c.path, '') FROM copies AS c JOIN documents AS d ON d.key = c.document WHERE d.id = $1 \
                   ORDER BY c.path COLLATE \"C\" DESC";
        self.ask(sql, &[&id.0]).await?.iter().map(|row| rows::get(row, 0)).collect()
    }
}
