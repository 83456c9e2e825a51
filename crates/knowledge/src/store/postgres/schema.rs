//! Schema migrations, and the history ID and signing key that the first instance stores with the tables.
//!
//! All tables are in the schema `corbie`, separate from any other content of the database. The first instance to start
//! creates them under a lock that other instances wait for.

use corbie_mcp::StateKey;

use super::session::Session;
use super::{Store, rows};
use crate::store::Error;

/// Each migration upgrades the tables by one version. Released migrations are never changed.
const MIGRATIONS: [&str; 2] = [include_str!("migrations/0001_first.sql"), include_str!("migrations/0002_shared.sql")];

/// The schema version of this program.
pub const VERSION: i32 = MIGRATIONS.len() as i32;

/// The oldest pgvector version with iterative index scans.
const MIN_PGVECTOR_VERSION: (u32, u32) = (0, 8);
const MIN_SERVER_VERSION: i32 = 150_000;

/// Arbitrary key of the advisory lock for migrations.
const MIGRATION_LOCK: i64 = 0x636f_7262_6965;

impl Store {
    /// The key for state that clients hold between two calls, which different instances may serve.
    pub fn state_key(&self) -> StateKey {
        self.0.state_key.clone()
    }
}

/// Creates or upgrades the tables. Needs only read privileges if they are up to date.
pub(super) async fn migrate(mut session: Session) -> Result<(), Error> {
    check_server(&session).await?;
    if version(&session).await? == Some(VERSION) {
        check_extension(&session).await?;
        return session.rollback().await;
    }
    session.execute_batch("SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = 0").await?;
    session.execute_batch_without_timeout(&format!("SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")).await?;
    // Another instance may have migrated while this one waited for the lock.
    let found = version(&session).await?.unwrap_or(0);
    if found > VERSION {
        return Err(Error::NewerSchema { found: found.into(), known: VERSION.into() });
    }
    session = prepare_database(session, found).await?;
    for (number, migration) in MIGRATIONS.iter().enumerate().skip(found as usize) {
        session.execute_batch_without_timeout(migration).await?;
        let number = (number + 1).to_string();
        let note = "INSERT INTO corbie.meta (name, value) VALUES ('version', $1) \
                    ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        session.execute(note, &[&number]).await?;
    }
    session.commit().await
}

/// Prerequisites of the first migration.
async fn prepare_database(session: Session, found: i32) -> Result<Session, Error> {
    if found > 0 {
        check_extension(&session).await?;
        return Ok(session);
    }
    let has_extension = session.opt_row("SELECT 1 FROM pg_extension WHERE extname = 'vector'", &[]).await?.is_some();
    if !has_extension && let Err(error) = session.execute_batch("CREATE EXTENSION vector").await {
        return Err(Error::Internal(format!(
            "{error}; pgvector is required: install it on the database server and, as a privileged user, run \
             `CREATE EXTENSION vector` in this database"
        )));
    }
    if session.opt_row("SELECT 1 FROM pg_namespace WHERE nspname = 'corbie'", &[]).await?.is_none() {
        session.execute_batch("CREATE SCHEMA corbie").await?;
    }
    // Set for this transaction, because the schema did not exist when the connection was opened.
    session.execute_batch("SET LOCAL search_path = corbie, public").await?;
    check_extension(&session).await?;
    Ok(session)
}

/// The schema version; None if there are no tables.
pub(super) async fn version(session: &Session) -> Result<Option<i32>, Error> {
    if session.row("SELECT to_regclass('corbie.meta')::text", &[]).await?.get::<_, Option<String>>(0).is_none() {
        return Ok(None);
    }
    let row = session.opt_row("SELECT value FROM corbie.meta WHERE name = 'version'", &[]).await?;
    let version = row.map(|row| row.get::<_, String>(0).parse::<i32>().map_err(|_| Error::unreadable("version")));
    let version = version.transpose()?;
    match version {
        Some(found) if found > VERSION => Err(Error::NewerSchema { found: found.into(), known: VERSION.into() }),
        version => Ok(version),
    }
}

/// A globally unique ID of this database, created with its tables.
pub(super) async fn history(session: &Session) -> Result<String, Error> {
    let new = uuid::Uuid::new_v4().to_string();
    let sql = "INSERT INTO meta (name, value) VALUES ('history', $1) ON CONFLICT (name) DO NOTHING";
    session.execute(sql, &[&new]).await?;
    Ok(session.row("SELECT value FROM meta WHERE name = 'history'", &[]).await?.get(0))
}

/// Stores the time of creation, once. Tables of an earlier version are as old as the oldest base.
pub(super) async fn note_creation(session: &Session) -> Result<(), Error> {
    let sql = "INSERT INTO meta (name, value) SELECT 'created', coalesce(min(created), $1)::text FROM bases \
               ON CONFLICT (name) DO NOTHING";
    session.execute(sql, &[&rows::now()]).await?;
    Ok(())
}

/// Reads the signing key that all instances share, so that each instance accepts the signatures of every other. The
/// first instance to start creates it.
pub(super) async fn state_key(session: &Session) -> Result<StateKey, Error> {
    let mut new = [0_u8; 32];
    getrandom::fill(&mut new).map_err(|error| Error::Internal(error.to_string()))?;
    let make = "INSERT INTO meta (name, value) VALUES ('state_key', encode($1, 'hex')) ON CONFLICT (name) DO NOTHING";
    session.execute(make, &[&new.as_slice()]).await?;
    let row = session.row("SELECT decode(value, 'hex') FROM meta WHERE name = 'state_key'", &[]).await?;
    Ok(StateKey::from_secret(rows::get(&row, 0)?))
}

/// Why the server or its pgvector is not supported, if so.
pub(super) async fn unsupported_reason(session: &Session, has_extension: bool) -> Result<Option<String>, Error> {
    let mut suited = check_server(session).await;
    if suited.is_ok() && has_extension {
        suited = check_extension(session).await;
    }
    match suited {
        Ok(()) => Ok(None),
        Err(Error::Internal(why)) => Ok(Some(why)),
        Err(other) => Err(other),
    }
}

async fn check_server(session: &Session) -> Result<(), Error> {
    let encoding: String = rows::get(&session.row("SELECT current_setting('server_encoding')", &[]).await?, 0)?;
    if encoding != "UTF8" {
        return Err(Error::Internal(format!(
            "database encoding is {encoding}, but UTF8 is required; create a database with `ENCODING 'UTF8'`"
        )));
    }
    let row = session.row("SELECT current_setting('server_version_num')::int, current_setting('server_version')", &[]);
    let row = row.await?;
    match row.get::<_, i32>(0) >= MIN_SERVER_VERSION {
        true => Ok(()),
        false => Err(Error::Internal(format!(
            "PostgreSQL {} is not supported; version 15 or newer is required",
            row.get::<_, &str>(1)
        ))),
    }
}

async fn check_extension(session: &Session) -> Result<(), Error> {
    let sql = "SELECT e.extversion, n.nspname::text FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace \
               WHERE e.extname = 'vector'";
    let (text, schema): (String, String) = match session.opt_row(sql, &[]).await? {
        Some(row) => (rows::get(&row, 0)?, rows::get(&row, 1)?),
        None => (String::new(), "public".to_owned()),
    };
    if schema != "public" && schema != "corbie" {
        return Err(Error::Internal(format!(
            "pgvector is installed in schema `{schema}` instead of `public`; run `ALTER EXTENSION vector SET SCHEMA \
             public`"
        )));
    }
    let mut numbers = text.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    match (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= MIN_PGVECTOR_VERSION {
        true => Ok(()),
        false => Err(Error::Internal(format!(
            "pgvector {text} is too old; update it to 0.8 or newer and run `ALTER EXTENSION vector UPDATE`"
        ))),
    }
}
