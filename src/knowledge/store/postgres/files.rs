//! Files that all instances follow, each change a version of its own.
//!
//! A version is written only after the one its writer knew, so that of two who change the same at once, one hears of it.

use deadpool_postgres::Pool;
use serde::{Deserialize, Serialize};

use super::address::Address;
use super::pulse::CHANNEL;
use super::session::{Given, Session};
use super::{Store, instance, rows, schema};
use crate::knowledge::store::Error;

/// So many versions of a file are kept, for people who look for what it said.
const KEPT: i64 = 200;
/// Any number that nobody else makes locks from.
const LOCK: i64 = 0x636f_7262_6967;

/// The files of one database. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Files {
    pool: Pool,
    history: String,
}

/// What a file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// From 1, counting up.
    pub number: i64,
    pub content: String,
    /// Of a taxonomy, the names of its categories in the order of their numbers; those that are gone, too.
    pub places: Vec<String>,
}

impl Store {
    /// The files that instances share.
    pub fn files(&self) -> Files {
        Files { pool: self.0.primary.clone(), history: self.0.history.clone() }
    }
}

impl Files {
    /// Those of a database that a server has used before; for commands, which need nothing else of it.
    pub async fn connect(address: &Address) -> Result<Files, Error> {
        let pool = address.pool(1)?;
        let session = Session::plain(&pool).await?;
        if schema::version(&session).await? != Some(schema::VERSION) {
            let why = "its tables are not those of this version; start a server of this version on it first";
            return Err(Error::Internal(why.to_owned()));
        }
        let history = schema::history(&session).await?;
        drop(session);
        Ok(Files { pool, history })
    }

    /// Which database this is, whatever its address.
    pub fn history(&self) -> &str {
        &self.history
    }

    /// What a file says now; none where nobody has brought it yet.
    pub async fn newest(&self, name: &str) -> Result<Option<Version>, Error> {
        self.version("name = $1", &[&name]).await
    }

    /// What a file said before a version, as far as that is kept.
    pub async fn before(&self, name: &str, number: i64) -> Result<Option<Version>, Error> {
        self.version("name = $1 AND version < $2", &[&name, &number]).await
    }

    async fn version(&self, which: &str, given: Given<'_>) -> Result<Option<Version>, Error> {
        let sql = format!("SELECT version, content, places FROM files WHERE {which} ORDER BY version DESC LIMIT 1");
        let row = Session::plain(&self.pool).await?.maybe(&sql, given).await?;
        let Some(row) = row else { return Ok(None) };
        let content = String::from_utf8(rows::get(&row, 1)?).map_err(|_| Error::unreadable("file"))?;
        Ok(Some(Version { number: rows::get(&row, 0)?, content, places: rows::get(&row, 2)? }))
    }

    /// Writes a version after the newest that its writer knew, and has everybody hear of it. Says whether nobody was
    /// quicker.
    pub async fn write(&self, name: &str, known: i64, version: &Version) -> Result<bool, Error> {
        let written = self.try_to_write(name, known, version).await;
        let Err(Error::Away(_)) = written else { return written };
        // The connection may have been lost when it was written already.
        let sql = "SELECT content = $3 FROM files WHERE name = $1 AND version = $2";
        let found = Session::plain(&self.pool).await?;
        let found = found.maybe(sql, &[&name, &version.number, &version.content.as_bytes()]).await?;
        match found {
            Some(row) => rows::get(&row, 0),
            None => written,
        }
    }

    async fn try_to_write(&self, name: &str, known: i64, version: &Version) -> Result<bool, Error> {
        let session = Session::writing(&self.pool).await?;
        // One after the other: after a database went back, two may write different numbers.
        session.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, $2))", &[&name, &LOCK]).await?;
        let sql = "INSERT INTO files (name, version, content, places, host) SELECT $1, $2, $3, $4, $5 \
                   WHERE $6 = (SELECT coalesce(max(version), 0) FROM files WHERE name = $1) ON CONFLICT DO NOTHING";
        let Version { number, content, places } = version;
        let host = instance::host();
        if session.execute(sql, &[&name, number, &content.as_bytes(), places, &host, &known]).await? == 0 {
            session.leave().await?;
            return Ok(false);
        }
        session.execute("DELETE FROM files WHERE name = $1 AND version <= $2", &[&name, &(number - KEPT)]).await?;
        // With the commit, unlike news of documents: a file is rarely written.
        session.execute("SELECT pg_notify($1, 'files')", &[&CHANNEL]).await?;
        session.commit().await?;
        Ok(true)
    }
}
