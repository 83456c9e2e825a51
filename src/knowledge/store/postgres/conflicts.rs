//! Uniqueness checks: another document with the same content, or at the same path.
//!
//! The caller locks content and path first, so no conflicting document can appear after the check.

use sha2::{Digest, Sha256};

use super::facet_hashes::hash_prefix;
use super::rows;
use super::session::Session;
use crate::knowledge::document::{DocumentId, Origin};
use crate::knowledge::store::Error;

/// The document to replace.
pub(super) struct ReplacedDocument {
    pub(super) key: i64,
    pub(super) origin: Origin,
    pub(super) content_version: i64,
}

/// Locks content and path against concurrent writers (advisory locks), so the following checks stay valid.
pub(super) async fn lock_content_and_path(
    session: &Session,
    base: i64,
    sha256: Option<&[u8; 32]>,
    path: Option<&str>,
) -> Result<(), Error> {
    let number = |kind: u8, bytes: &[u8]| {
        let mut hash = Sha256::new();
        hash.update([kind]);
        hash.update(base.to_le_bytes());
        hash.update(bytes);
        hash_prefix(&hash.finalize())
    };
    let content = sha256.map(|sha256| number(1, sha256));
    let place = path.map(|path| number(2, path.as_bytes()));
    let mut numbers: Vec<i64> = content.into_iter().chain(place).collect();
    numbers.sort_unstable();
    for number in numbers {
        session.rows("SELECT pg_advisory_xact_lock($1)", &[&number]).await?;
    }
    Ok(())
}

/// Loads and locks the document to replace.
pub(super) async fn lock_replaced(
    session: &Session,
    base: i64,
    id: DocumentId,
) -> Result<Option<ReplacedDocument>, Error> {
    let sql = "SELECT key, origin, writing FROM documents WHERE base = $1 AND id = $2 FOR UPDATE";
    let row = session.opt_row(sql, &[&base, &id.0]).await?;
    let read = |row| {
        Ok(ReplacedDocument {
            key: rows::get(&row, 0)?,
            origin: rows::get_enum(&row, 1)?,
            content_version: rows::get(&row, 2)?,
        })
    };
    row.map(read).transpose()
}

/// The first document of the base with this content.
pub(super) async fn find_by_content(
    session: &Session,
    base: i64,
    sha256: &[u8; 32],
) -> Result<Option<DocumentId>, Error> {
    let sql = "SELECT id FROM documents WHERE base = $1 AND sha256 = $2 ORDER BY key LIMIT 1";
    let row = session.opt_row(sql, &[&base, &sha256.as_slice()]).await?;
    row.map(|row| Ok(DocumentId(rows::get(&row, 0)?))).transpose()
}

/// Another document of the base with this path.
pub(super) async fn find_by_path(
    session: &Session,
    base: i64,
    path: &str,
    own: i64,
) -> Result<Option<DocumentId>, Error> {
    let sql = "SELECT id FROM documents WHERE base = $1 AND md5(path) = md5($2) AND path = $2 AND key <> $3";
    let row = session.opt_row(sql, &[&base, &rows::without_nul(path), &own]).await?;
    row.map(|row| Ok(DocumentId(rows::get(&row, 0)?))).transpose()
}
