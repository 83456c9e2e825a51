//! Copy of the database before a schema migration, for going back to the previous version of the program.

use std::fs;
use std::path::PathBuf;

use rusqlite::Connection;

use super::files::{self, StoreFiles};
use super::{backup, schema};
use crate::store::{Error, MigrationCopy};
use corbie_util::fs::free_space::free_bytes;

/// Maximum number of copies, one per schema version, including the one of this migration. Older ones are removed.
const MAX_COPIES: usize = 2;
/// Free space that a copy leaves for the migration itself, in bytes.
const RESERVE: u64 = 64 << 20;

/// Copies a database with an older schema to `knowledge.db.schema-N`. The caller holds the setup lock, so that one
/// process copies and migrates while others wait.
pub(super) fn keep(connection: &Connection, files: &StoreFiles, wanted: MigrationCopy) -> Result<(), Error> {
    let found = schema::version(connection)?;
    if found == 0 || found == schema::VERSION as usize || wanted == MigrationCopy::Off {
        return Ok(());
    }
    // One snapshot: a backup starts again when a process of the previous version writes meanwhile.
    let snapshot = connection.unchecked_transaction()?;
    match copy(&snapshot, files, found) {
        Ok(copy) => {
            tracing::info!(copy = %copy.display(), schema = found, "copied the database before its schema migration")
        }
        Err(error) if wanted == MigrationCopy::Auto => {
            tracing::warn!(%error, schema = found, "migrating the database schema without a copy");
        }
        Err(error) => return Err(Error::NoCopy(error.to_string())),
    }
    Ok(())
}

fn copy(connection: &Connection, files: &StoreFiles, found: usize) -> Result<PathBuf, Error> {
    // Without the WAL, whose pages are counted in the database once they are committed.
    let pages: u64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let page_size: u64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let needed = pages.saturating_mul(page_size).saturating_add(RESERVE);
    if free_bytes(&files.folder).is_some_and(|free| free < needed) {
        return Err(Error::Full);
    }
    let path = StoreFiles::companion(&files.database, &ending(found));
    let unfinished = StoreFiles::companion(&path, ".new");
    // Left by a process that was killed.
    backup::discard(&unfinished);
    backup::write_backup(connection, &unfinished)?;
    fs::rename(&unfinished, &path).map_err(Error::io(&path))?;
    files::sync(&files.folder)?;
    prune(files, found);
    Ok(path)
}

fn ending(schema: usize) -> String {
    format!(".schema-{schema}")
}

/// Removes all copies but the one of this migration, whose schema version is `found`, and those with the highest schema
/// versions.
fn prune(files: &StoreFiles, found: usize) {
    let old = (1..schema::VERSION as usize)
        .rev()
        .filter(|schema| *schema != found && StoreFiles::companion(&files.database, &ending(*schema)).exists())
        .skip(MAX_COPIES - 1);
    for schema in old {
        let path = StoreFiles::companion(&files.database, &ending(schema));
        if let Err(error) = fs::remove_file(&path) {
            tracing::warn!(%error, path = %path.display(), "cannot remove an old copy of the database");
        }
    }
}
