//! What an operator should know of a database, for `corbie doctor`. Nothing is changed, and nothing is made.

use super::address::Address;
use super::session::Session;
use super::{hnsw, instance, schema};
use crate::knowledge::store::Error;
use crate::knowledge::store::postgres::rows;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Examined {
    /// Of PostgreSQL and of pgvector, where that is installed.
    pub server: String,
    pub extension: Option<String>,
    /// The newest pgvector that the server could install.
    pub available: Option<String>,
    /// Why the program does not start on it: one of these is too old, or of another kind.
    pub unsuited: Option<String>,
    /// Of the tables, where there are any.
    pub version: Option<i32>,
    /// Whether somebody is making an index over vectors at this moment.
    pub is_indexing: bool,
    /// Indexes that were not made to their end, and that no search uses.
    pub invalid: Vec<String>,
    /// Models whose vectors have no index.
    pub unindexed: Vec<String>,
    /// Tables with many rows that are gone, and how many of a hundred they are.
    pub bloated: Vec<(String, u64)>,
    pub lists: Lists,
    /// Batches of lists that wait to be joined.
    pub batches: u64,
    pub instances: u64,
    /// Whether it follows another, and by how many seconds it lags behind.
    pub lag: Option<u64>,
}

/// What the lists of words take, in bytes, and about how much of that they fill.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lists {
    pub taken: u64,
    pub filled: u64,
}

/// Tables with fewer rows that are gone are left alone.
const FEW: i64 = 10_000;
/// About what a list takes beside its postings, with its entries in two indexes, and what a posting takes.
const LIST: &str = "150";
const POSTING: &str = "4";

/// Looks at a database.
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
