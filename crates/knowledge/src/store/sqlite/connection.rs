//! Connection setup.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::{checksum, listing};
use crate::store::Error;

/// Application ID of our files: "corb".
pub(super) const APPLICATION_ID: i32 = 0x636f_7262;
/// Page size. Rows of two kilobytes waste less space than with SQLite's default of 4 KiB.
pub(super) const PAGE_SIZE: u32 = 8192;
/// The WAL is truncated to this size after a checkpoint.
const WAL_SIZE_LIMIT: u32 = 4 << 20;

/// Page cache in KiB. A larger cache would only increase memory use: the index holds the hot data, and the operating
/// system caches the file.
const CACHE_KIB: i32 = 4 << 10;

/// Opens a connection for writing. The file must exist; it may be empty.
pub(super) fn writer(path: &Path, patience: Duration) -> Result<Connection, Error> {
    let connection = open(path, patience)?;
    // These settings only apply to an empty database. Later they would only cause writes, even to a damaged file.
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    if pages == 0 {
        connection.pragma_update(None, "page_size", PAGE_SIZE)?;
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "journal_size_limit", WAL_SIZE_LIMIT)?;
    // An acknowledged commit is on disk, also on systems that need `fullfsync`.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "fullfsync", "ON")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.pragma_update_and_check(None, "secure_delete", "FAST", |_| Ok(()))?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    Ok(connection)
}

/// Opens a connection for reading.
pub(super) fn reader(path: &Path, patience: Duration) -> Result<Connection, Error> {
    let connection = open(path, patience)?;
    connection.pragma_update(None, "query_only", "ON")?;
    listing::register_functions(&connection)?;
    Ok(connection)
}

/// Opens a connection for salvaging a damaged file. SQLite reads a truncated file only if the schema is writable.
pub(super) fn salvager(path: &Path, patience: Duration) -> Result<Connection, Error> {
    let connection = open_raw(path, patience)?;
    connection.pragma_update(None, "writable_schema", "ON")?;
    connection.pragma_update(None, "query_only", "ON")?;
    Ok(connection)
}

fn open(path: &Path, patience: Duration) -> Result<Connection, Error> {
    let connection = open_raw(path, patience)?;
    connection.set_prepared_statement_cache_capacity(64);
    // No document content is written to a temporary folder, and no code in the schema is run.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "trusted_schema", "OFF")?;
    connection.pragma_update(None, "cell_size_check", "ON")?;
    Ok(connection)
}

fn open_raw(path: &Path, patience: Duration) -> Result<Connection, Error> {
    // Only one thread uses a connection at a time, so SQLite needs no mutex. SQLite does not create the file, because
    // it would not be private.
    let connection = open_file(path, OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(patience)?;
    checksum::prepare(&connection)?;
    Ok(connection)
}

/// Opens a file for writing that is not a symbolic link. SQLite refuses links in the whole path, so those of the folder are
/// resolved.
pub(super) fn open_file(path: &Path, flags: OpenFlags) -> Result<Connection, Error> {
    let resolved = match (path.parent().filter(|parent| !parent.as_os_str().is_empty()), path.file_name()) {
        (Some(folder), Some(name)) => folder.canonicalize().map_err(Error::io(folder))?.join(name),
        _ => std::env::current_dir().map_err(Error::io(path))?.join(path),
    };
    let flags = flags | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    Ok(Connection::open_with_flags(resolved, flags)?)
}
