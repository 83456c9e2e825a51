//! Schema migrations.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use uuid::Uuid;

use super::connection::APPLICATION_ID;
use super::rows;
use crate::document::Millis;
use crate::store::Error;

/// Each migration upgrades a file by one version, starting from an empty one. Append-only.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_first.sql"),
    include_str!("migrations/0002_progress.sql"),
    include_str!("migrations/0003_watched.sql"),
    include_str!("migrations/0004_imports.sql"),
    include_str!("migrations/0005_copies.sql"),
    include_str!("migrations/0006_stretches.sql"),
    include_str!("migrations/0007_checksums.sql"),
    include_str!("migrations/0008_base_checksums.sql"),
];

/// The schema version that this program writes.
pub const VERSION: i64 = MIGRATIONS.len() as i64;

/// The row of `meta` with the history ID of the change sequence numbers.
const HISTORY_KEY: &str = "history";
/// The row of `meta` with the ID of the store. A store without that row is in its first history, whose ID is also its own.
const STORE: &str = "store";
/// The row of `meta` with the time when the store was created, in milliseconds since 1970.
const CREATED: &str = "created";

/// Upgrades a database in one transaction. A newer one is not touched.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    for migration in MIGRATIONS.iter().skip(found) {
        transaction.execute_batch(migration)?;
    }
    if found == 0 {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        renew_history(&transaction)?;
    }
    note_creation(&transaction)?;
    if found < MIGRATIONS.len() {
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    Ok(transaction.commit()?)
}

/// The schema version of a database, if this program can read it.
pub(super) fn version(connection: &Connection) -> Result<usize, Error> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match application {
        APPLICATION_ID => {}
        0 if found == 0 && tables == 0 => {}
        _ => return Err(Error::ForeignFile),
    }
    usize::try_from(found)
        .ok()
        .filter(|found| *found <= MIGRATIONS.len())
        .ok_or(Error::NewerSchema { found, known: VERSION })
}

/// ID of the history that change sequence numbers belong to.
pub(super) fn history(connection: &Connection) -> Result<String, Error> {
    Ok(connection.query_row("SELECT value FROM meta WHERE name = ?1", [HISTORY_KEY], |row| row.get(0))?)
}

/// Starts a new history, which invalidates all earlier sequence numbers. The ID of the store stays.
pub(super) fn renew_history(connection: &Connection) -> Result<(), Error> {
    let keep_id = "INSERT OR IGNORE INTO meta (name, value) SELECT ?1, value FROM meta WHERE name = ?2";
    connection.execute(keep_id, [STORE, HISTORY_KEY])?;
    set(connection, HISTORY_KEY, &Uuid::new_v4().to_string())
}

/// ID of the store. A backup, a restore and a repair keep it.
pub(super) fn store_id(connection: &Connection) -> Result<String, Error> {
    match get(connection, STORE)? {
        Some(id) => Ok(id),
        None => history(connection),
    }
}

/// Makes a file that replaces another one the same store.
pub(super) fn set_store_id(connection: &Connection, id: &str) -> Result<(), Error> {
    set(connection, STORE, id)
}

/// Stores the time of creation, once. A store of an earlier version is as old as its oldest base.
fn note_creation(connection: &Connection) -> Result<(), Error> {
    let sql = "INSERT OR IGNORE INTO meta (name, value) SELECT ?1, CAST(ifnull(min(created), ?2) AS TEXT) FROM bases";
    connection.execute(sql, params![CREATED, rows::now()])?;
    Ok(())
}

/// When the store was created.
pub(super) fn created(connection: &Connection) -> Result<Option<Millis>, Error> {
    Ok(get(connection, CREATED)?.and_then(|created| created.parse().ok()))
}

/// The value of a row of `meta`.
pub(super) fn get(connection: &Connection, name: &str) -> Result<Option<String>, Error> {
    let mut statement = connection.prepare("SELECT value FROM meta WHERE name = ?1")?;
    Ok(statement.query_row([name], |row| row.get(0)).optional()?)
}

/// Sets the value of a row of `meta`.
pub(super) fn set(connection: &Connection, name: &str, value: &str) -> Result<(), Error> {
    connection.execute("INSERT OR REPLACE INTO meta (name, value) VALUES (?1, ?2)", [name, value])?;
    Ok(())
}

/// Removes a row of `meta`.
pub(super) fn remove(connection: &Connection, name: &str) -> Result<(), Error> {
    connection.execute("DELETE FROM meta WHERE name = ?1", [name])?;
    Ok(())
}
