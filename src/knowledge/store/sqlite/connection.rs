//! A connection to the database, set up the same way everywhere.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::listing;
use crate::knowledge::store::Error;

/// Tells our files from those of other programs: "corb".
pub(super) const APPLICATION: i32 = 0x636f_7262;
/// Rows of two kilobytes leave less of a page empty than with SQLite's 4 KiB.
const PAGE: u32 = 8192;
/// The log is cut to this once it has been written back.
const LOG: u32 = 4 << 20;

/// What it keeps of the file, in KiB. More would only make the program larger the longer it runs: what is read often is in the
/// index, and the system keeps the file.
const CACHE: i32 = 4 << 10;

/// A connection that writes. The file must be there, if only empty.
pub(super) fn writer(path: &Path, patience: Duration) -> Result<Connection, Error> {
    let connection = open(path, patience)?;
    // These count before there is anything. Later they would only write, also to a file that is damaged.
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    if pages == 0 {
        connection.pragma_update(None, "page_size", PAGE)?;
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "journal_size_limit", LOG)?;
    // A commit that was acknowledged is on the disk, also on systems that need to be asked twice.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "fullfsync", "ON")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.pragma_update_and_check(None, "secure_delete", "FAST", |_| Ok(()))?;
    connection.pragma_update(None, "cache_size", -CACHE)?;
    Ok(connection)
}

/// A connection that only reads.
pub(super) fn reader(path: &Path, patience: Duration) -> Result<Connection, Error> {
    let connection = open(path, patience)?;
    connection.pragma_update(None, "query_only", "ON")?;
    listing::prepare(&connection)?;
    Ok(connection)
}

/// A connection that reads what it can of a damaged file. SQLite goes on where a file is shorter than it says only for those
/// who may change its schema.
pub(super) fn salvager(path: &Path, patience: Duration) -> Result<Connection, Error> {
    let connection = bare(path, patience)?;
    connection.pragma_update(None, "writable_schema", "ON")?;
    connection.pragma_update(None, "query_only", "ON")?;
    Ok(connection)
}

fn open(path: &Path, patience: Duration) -> Result<Connection, Error> {
    let connection = bare(path, patience)?;
    connection.set_prepared_statement_cache_capacity(64);
    // Nothing of a document is written to a temporary folder, and nothing in a file is run.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "trusted_schema", "OFF")?;
    connection.pragma_update(None, "cell_size_check", "ON")?;
    Ok(connection)
}

fn bare(path: &Path, patience: Duration) -> Result<Connection, Error> {
    // One thread at a time uses a connection, so SQLite need not guard it; it never makes a file, that would not be private.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(patience)?;
    Ok(connection)
}
