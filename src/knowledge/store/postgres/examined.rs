//! Read-only database diagnostics for `corbie doctor`.

use super::address::Address;
use super::session::Session;
use super::{hnsw, instance, schema};
use crate::knowledge::store::Error;
use crate::knowledge::store::postgres::rows;

/// Diagnostics of a database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Examined {
    /// Versions of PostgreSQL and of pgvector, if it is installed.
    pub server: String,
    pub extension: Option<String>,
    /// The latest pgvector version that the server can install.
    pub available: Option<String>,
    /// Why corbie cannot use the database: one of these versions is too old or of the wrong kind.
    pub unsuited: Option<String>,
    /// Schema version, if the tables exist.
    pub version: Option<i32>,
    /// Whether a vector index is being built now.
    pub is_indexing: bool,
    /// Invalid indexes: their build was interrupted, and searches do not use them.
    pub invalid: Vec<String>,
    /// Models with vectors that have no index.
    pub unindexed: Vec<String>,
    /// Tables with many dead rows, and the percentage of dead rows.
    pub bloated: Vec<(String, u64)>,
    pub lists: Lists,
    /// Batches of posting lists that wait to be merged.
    pub batches: u64,
    pub instances: u64,
    /// Replication lag in seconds, if the server is a replica.
    pub lag: Option<u64>,
}

/// Size of the posting lists in bytes, and an estimate of the bytes in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lists {
    pub taken: u64,
    pub filled: u64,
}

/// Minimum number of dead rows for a table to be reported.
const FEW: i64 = 10_000;
/// Approximate bytes per posting list, including its entries in two indexes, and per posting.
const LIST: &str = "150";
const POSTING: &str = "4";

/// Runs the diagnostics.
pub async fn examine(address: &Address) -> Result<Examined, Error> {
    let pool = address.pool(2)?;
    let session = Session::reading(&pool).await?;
    let row = session.row("SELECT current_setting('server_version')", &[]).await?;
    let mut examined = Examined { server: rows::get(&row, 0)?, ..Examined::default() };
    let sql = "SELECT installed_version, default_version FROM pg_available_extensions WHERE name = 'vector'";
    if let Some(row) = session.maybe(sql, &[]).await? {
        (examined.extension, examined.available) = (rows::get(&row, 0)?, rows::get(&row, 1)?);
    }
    examined.unsuited = schema::unsuited(&session, examined.extension.is_some()).await?;
    let sql = "SELECT CASE WHEN pg_is_in_recovery() THEN \
               coalesce(extract(epoch FROM now() - pg_last_xact_replay_timestamp()), 0)::bigint END";
    examined.lag = rows::get::<Option<i64>>(&session.row(sql, &[]).await?, 0)?.map(|lag| lag.max(0).cast_unsigned());
    examined.version = schema::version(&session).await?;
    if examined.version.is_some() {
        indexes(&session, &mut examined).await?;
        tables(&session, &mut examined).await?;
    }
    session.leave().await?;
    Ok(examined)
}

async fn indexes(session: &Session, examined: &mut Examined) -> Result<(), Error> {
    examined.is_indexing = hnsw::is_being_made(session).await?;
    let sql = "SELECT c.relname::text FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid \
               WHERE NOT i.indisvalid AND c.relnamespace = 'corbie'::regnamespace ORDER BY 1 LIMIT 20";
    for row in session.rows(sql, &[]).await? {
        examined.invalid.push(rows::get(&row, 0)?);
    }
    examined.unindexed = hnsw::unindexed(session).await?;
    Ok(())
}

async fn tables(session: &Session, examined: &mut Examined) -> Result<(), Error> {
    let sql = "SELECT relname::text, n_dead_tup * 100 / greatest(n_live_tup + n_dead_tup, 1) FROM pg_stat_user_tables \
               WHERE schemaname = 'corbie' AND n_dead_tup > $1 AND n_dead_tup * 4 > n_live_tup ORDER BY 2 DESC LIMIT 20";
    for row in session.rows(sql, &[&FEW]).await? {
        examined.bloated.push((rows::get(&row, 0)?, rows::number(&row, 1)?));
    }
    let sql = format!(
        "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint, \
         (coalesce(sum(greatest(c.reltuples, 0)), 0) * {LIST} \
         + (SELECT coalesce(sum(postings), 0) FROM batches) * {POSTING})::bigint \
         FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = 'corbie.postings'::regclass"
    );
    let row = session.row(&sql, &[]).await?;
    examined.lists = Lists { taken: rows::number(&row, 0)?, filled: rows::number(&row, 1)? };
    let lives = instance::LIVES;
    let sql = format!(
        "SELECT (SELECT count(*) FROM batches WHERE level = 0), \
         (SELECT count(*) FROM instances WHERE beat > now() - {lives})"
    );
    let row = session.row(&sql, &[]).await?;
    (examined.batches, examined.instances) = (rows::number(&row, 0)?, rows::number(&row, 1)?);
    Ok(())
}
