//! Reports the documents that a damaged store has lost, so that they can be added again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::{Connection, Row, Transaction};

use super::check::MISCOUNTED_DOCUMENTS;
use crate::store::Error;

/// Lost data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DamageReport {
    /// Documents with missing parts; their status is now `partial`.
    pub incomplete: Vec<LostDocument>,
    /// Documents that were lost completely.
    pub lost: Vec<LostDocument>,
    /// Number of further lost documents with unreadable names.
    pub unnamed_lost: u64,
}

/// Name and path of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostDocument {
    pub filename: String,
    pub path: Option<String>,
}

/// Document paths by key.
pub(super) type Paths = BTreeMap<i64, String>;

/// Condition for documents with fewer pages, chunks or vectors than recorded.
pub(super) const INCOMPLETE_CONDITION: &str =
    "m.chunks < m.chunk_count OR m.vectors < m.vector_count OR m.pages < m.page_count";

/// Reads paths from an index. It is stored on other pages than the table, so it may survive damage to the table. It is
/// read from both ends, because its own pages may be damaged too.
pub(super) fn paths_from_index(source: &Connection) -> Paths {
    let mut paths = Paths::new();
    for order in ["ASC", "DESC"] {
        let sql = format!(
            "SELECT key, path FROM documents INDEXED BY documents_path WHERE path IS NOT NULL \
             ORDER BY base {order}, path {order}"
        );
        let Ok(mut statement) = source.prepare(&sql) else { continue };
        let Ok(rows) = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))) else { continue };
        paths.extend(rows.map_while(Result::ok));
    }
    paths
}

/// Documents that lost their base, or with only pages and chunks left. Must run before these are removed.
pub(super) fn find_lost(transaction: &Transaction<'_>, paths: &Paths) -> Result<DamageReport, Error> {
    let mut loss = DamageReport::default();
    let mut baseless = transaction
        .prepare("SELECT filename, path FROM documents WHERE base NOT IN (SELECT key FROM bases) ORDER BY key")?;
    loss.lost = documents(&mut baseless)?;
    let mut is_there = transaction.prepare("SELECT 1 FROM documents WHERE key = ?1")?;
    for (key, path) in paths {
        if !is_there.exists([key])? {
            loss.lost.push(LostDocument::at(path));
        }
    }
    let mut orphans = transaction
        .prepare("SELECT document FROM pages UNION SELECT document FROM chunks EXCEPT SELECT key FROM documents")?;
    for key in orphans.query_map([], |row| row.get::<_, i64>(0))? {
        loss.unnamed_lost += u64::from(!paths.contains_key(&key?));
    }
    Ok(loss)
}

/// Documents with missing parts, and those with these keys. Must run before their counts are corrected.
pub(super) fn find_incomplete(transaction: &Transaction<'_>, damaged: &[i64]) -> Result<Vec<LostDocument>, Error> {
    let mut short = transaction
        .prepare(&format!("SELECT m.key FROM ({MISCOUNTED_DOCUMENTS}) AS m WHERE {INCOMPLETE_CONDITION}"))?;
    let mut keys = short.query_map([], |row| row.get(0))?.collect::<Result<BTreeSet<i64>, _>>()?;
    keys.extend(damaged);
    let mut named = transaction.prepare("SELECT filename, path FROM documents WHERE key = ?1")?;
    let read = |row: &Row<'_>| Ok(LostDocument { filename: row.get(0)?, path: row.get(1)? });
    Ok(keys.into_iter().map(|key| named.query_row([key], read)).collect::<Result<_, _>>()?)
}

fn documents(statement: &mut rusqlite::Statement<'_>) -> Result<Vec<LostDocument>, Error> {
    let rows = statement.query_map([], |row| Ok(LostDocument { filename: row.get(0)?, path: row.get(1)? }))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

impl LostDocument {
    fn at(path: &str) -> LostDocument {
        let filename = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        LostDocument { filename, path: Some(path.to_owned()) }
    }
}
