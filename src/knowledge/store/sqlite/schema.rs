//! Schema migrations.

use rusqlite::{Connection, TransactionBehavior};
use uuid::Uuid;

use super::connection::APPLICATION;
use crate::knowledge::store::Error;

/// Each migration upgrades a file by one version, starting from an empty one. Append-only.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_first.sql"),
    include_str!("migrations/0002_progress.sql"),
    include_str!("migrations/0003_watched.sql"),
    include_str!("migrations/0004_imports.sql"),
    include_str!("migrations/0005_copies.sql"),
    include_str!("migrations/0006_stretches.sql"),
    include_str!("migrations/0007_checksums.sql"),
];

/// The schema version that this program writes.
pub const VERSION: i64 = MIGRATIONS.len() as i64;

/// The row of `meta` with the history ID of the change sequence numbers.
const HISTORY: &str = "history";

/// Upgrades a database in one transaction. A newer one is not touched.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    for migration in MIGRATIONS.iter().skip(found) {
        transaction.execute_batch(migration)?;
    }
    if found == 0 {
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        renew_history(&transaction)?;
    }
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
        APPLICATION => {}
        0 if found == 0 && tables == 0 => {}
        _ => return Err(Error::Foreign),
    }
    usize::try_from(found).ok().filter(|found| *found <= MIGRATIONS.len()).ok_or(Error::Newer { found, known: VERSION })
}

/// ID of the history that change sequence numbers belong to.
pub(super) fn history(connection: &Connection) -> Result<String, Error> {
    Ok(connection.query_row("SELECT value FROM meta WHERE name = ?1", [HISTORY], |row| row.get(0))?)
}

/// Starts a new history, which invalidates all earlier sequence numbers.
pub(super) fn renew_history(connection: &Connection) -> Result<(), Error> {
    let name = Uuid::new_v4().to_string();
    connection.execute("INSERT OR REPLACE INTO meta (name, value) VALUES (?1, ?2)", [HISTORY, &name])?;
    Ok(())
}
