//! Versioned files that all instances share.
//!
//! Writes use optimistic concurrency control: a version is inserted only if the writer knew the latest one, so one of
//! two concurrent writers detects the conflict.

use deadpool_postgres::Pool;
use serde::{Deserialize, Serialize};

use super::listen_notify::NOTIFY_CHANNEL;
use super::session::{self, Session, SqlParams};
use super::{Store, instance, rows, schema};
use crate::store::Error;
use corbie_config::postgres_address::Address;

/// Number of versions to retain per file, as a history for operators.
const MAX_VERSIONS: i64 = 200;
/// Arbitrary seed of the advisory locks for files.
const LOCK_SEED: i64 = 0x636f_7262_6967;

/// The shared files of a database. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SyncedFiles {
    pool: Pool,
    history: String,
}

/// A version of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileVersion {
    /// Starts at 1.
    pub number: i64,
    pub content: String,
    /// For a taxonomy: the category names in the order of their numbers, including removed categories.
    pub places: Vec<String>,
}

impl Store {
    /// The files that instances share.
    pub fn synced_files(&self) -> SyncedFiles {
        SyncedFiles { pool: self.0.primary.clone(), history: self.0.history.clone() }
    }
}

impl SyncedFiles {
    /// Opens the files of a database that a server has already initialized. For CLI commands, which need no other
    /// tables.
    pub async fn connect(address: &Address) -> Result<SyncedFiles, Error> {
        let pool = session::pool(address, 1)?;
        let session = Session::autocommit(&pool).await?;
        if schema::version(&session).await? != Some(schema::VERSION) {
            let why = "the database schema has another version; start a server of this version on it first";
            return Err(Error::Internal(why.to_owned()));
        }
        let history = schema::history(&session).await?;
        drop(session);
        Ok(SyncedFiles { pool, history })
    }

    /// Identifies the database, independent of its address.
    pub fn history(&self) -> &str {
        &self.history
    }

    /// The latest version of a file; None if no instance has written it yet.
    pub async fn latest(&self, name: &str) -> Result<Option<FileVersion>, Error> {
        self.version("name = $1", &[&name]).await
    }

    /// The version before a number, if it is still retained.
    pub async fn previous(&self, name: &str, number: i64) -> Result<Option<FileVersion>, Error> {
        self.version("name = $1 AND version < $2", &[&name, &number]).await
    }

    async fn version(&self, which: &str, given: SqlParams<'_>) -> Result<Option<FileVersion>, Error> {
        let sql = format!("SELECT version, content, places FROM files WHERE {which} ORDER BY version DESC LIMIT 1");
        let row = Session::autocommit(&self.pool).await?.opt_row(&sql, given).await?;
        let Some(row) = row else { return Ok(None) };
        let content = String::from_utf8(rows::get(&row, 1)?).map_err(|_| Error::unreadable("file"))?;
        Ok(Some(FileVersion { number: rows::get(&row, 0)?, content, places: rows::get(&row, 2)? }))
    }

    /// Writes the successor of the version that the writer has read, and notifies all instances. Returns false if
    /// another writer was faster.
    pub async fn write(&self, name: &str, known: i64, version: &FileVersion) -> Result<bool, Error> {
        let written = self.try_write(name, known, version).await;
        let Err(Error::Unavailable(_)) = written else { return written };
        // The version may have been committed before the connection was lost.
        let sql = "SELECT content = $3 FROM files WHERE name = $1 AND version = $2";
        let found = Session::autocommit(&self.pool).await?;
        let found = found.opt_row(sql, &[&name, &version.number, &version.content.as_bytes()]).await?;
        match found {
            Some(row) => rows::get(&row, 0),
            None => written,
        }
    }

    async fn try_write(&self, name: &str, known: i64, version: &FileVersion) -> Result<bool, Error> {
        let session = Session::begin_write(&self.pool).await?;
        // Serializes writers: after a database was restored to an older state, two writers may use different numbers.
        session.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, $2))", &[&name, &LOCK_SEED]).await?;
        let sql = "INSERT INTO files (name, version, content, places, host) SELECT $1, $2, $3, $4, $5 \
                   WHERE $6 = (SELECT coalesce(max(version), 0) FROM files WHERE name = $1) ON CONFLICT DO NOTHING";
        let FileVersion { number, content, places } = version;
        let host = instance::host();
        if session.execute(sql, &[&name, number, &content.as_bytes(), places, &host, &known]).await? == 0 {
            session.rollback().await?;
            return Ok(false);
        }
        session
            .execute("DELETE FROM files WHERE name = $1 AND version <= $2", &[&name, &(number - MAX_VERSIONS)])
            .await?;
        // Sent within the transaction, unlike document notifications, because files change rarely.
        session.execute("SELECT pg_notify($1, 'files')", &[&NOTIFY_CHANNEL]).await?;
        session.commit().await?;
        Ok(true)
    }
}
