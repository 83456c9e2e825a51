//! Read-only database diagnostics for `corbie doctor`.

use super::session::{self, Session};
use super::{hnsw, instance, schema};
use crate::store::Error;
use crate::store::postgres::rows;
use corbie_config::postgres_address::Address;

/// Diagnostics of a database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatabaseDiagnostics {
    /// Versions of PostgreSQL and of pgvector, if it is installed.
    pub server_version: String,
    pub pgvector_version: Option<String>,
    /// The latest pgvector version that the server can install.
    pub available_pgvector: Option<String>,
    /// Why corbie cannot use the database: one of these versions is too old or of the wrong kind.
    pub unsupported_reason: Option<String>,
    /// Schema version, if the tables exist.
    pub schema_version: Option<i32>,
    /// Whether a vector index is being built now.
    pub is_indexing: bool,
    /// Invalid indexes: their build was interrupted, and searches do not use them.
    pub invalid_indexes: Vec<String>,
    /// Models with vectors that have no index.
    pub unindexed_models: Vec<String>,
    /// Tables with many dead rows, and the percentage of dead rows.
    pub bloated_tables: Vec<(String, u64)>,
    pub posting_lists: PostingListSize,
    /// Batches of posting lists that wait to be merged.
    pub unmerged_batches: u64,
    pub instances: u64,
    /// Replication lag in seconds, if the server is a replica.
    pub replication_lag: Option<u64>,
}

/// Size of the posting lists in bytes, and an estimate of the bytes in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PostingListSize {
    pub allocated_bytes: u64,
    pub used_bytes: u64,
}

/// Minimum number of dead rows for a table to be reported.
const MIN_DEAD_ROWS: i64 = 10_000;
/// Approximate bytes per posting list, including its entries in two indexes, and per posting.
const BYTES_PER_LIST: &str = "150";
const BYTES_PER_POSTING: &str = "4";

/// Runs the diagnostics.
pub async fn diagnose(address: &Address) -> Result<DatabaseDiagnostics, Error> {
    let pool = session::pool(address, 2)?;
    let session = Session::begin_read(&pool).await?;
    let row = session.row("SELECT current_setting('server_version')", &[]).await?;
    let mut examined = DatabaseDiagnostics { server_version: rows::get(&row, 0)?, ..DatabaseDiagnostics::default() };
    let sql = "SELECT installed_version, default_version FROM pg_available_extensions WHERE name = 'vector'";
    if let Some(row) = session.opt_row(sql, &[]).await? {
        (examined.pgvector_version, examined.available_pgvector) = (rows::get(&row, 0)?, rows::get(&row, 1)?);
    }
    examined.unsupported_reason = schema::unsupported_reason(&session, examined.pgvector_version.is_some()).await?;
    let sql = "SELECT CASE WHEN pg_is_in_recovery() THEN \
               coalesce(extract(epoch FROM now() - pg_last_xact_replay_timestamp()), 0)::bigint END";
    examined.replication_lag =
        rows::get::<Option<i64>>(&session.row(sql, &[]).await?, 0)?.map(|lag| lag.max(0).cast_unsigned());
    examined.schema_version = schema::version(&session).await?;
    if examined.schema_version.is_some() {
        diagnose_indexes(&session, &mut examined).await?;
        diagnose_tables(&session, &mut examined).await?;
    }
    session.rollback().await?;
    Ok(examined)
}

async fn diagnose_indexes(session: &Session, examined: &mut DatabaseDiagnostics) -> Result<(), Error> {
    examined.is_indexing = hnsw::is_build_running(session).await?;
    let sql = "SELECT c.relname::text FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid \
               WHERE NOT i.indisvalid AND c.relnamespace = 'corbie'::regnamespace ORDER BY 1 LIMIT 20";
    for row in session.rows(sql, &[]).await? {
        examined.invalid_indexes.push(rows::get(&row, 0)?);
    }
    examined.unindexed_models = hnsw::unindexed(session).await?;
    Ok(())
}

async fn diagnose_tables(session: &Session, examined: &mut DatabaseDiagnostics) -> Result<(), Error> {
    let sql = "SELECT relname::text, n_dead_tup * 100 / greatest(n_live_tup + n_dead_tup, 1) FROM pg_stat_user_tables \
               WHERE schemaname = 'corbie' AND n_dead_tup > $1 AND n_dead_tup * 4 > n_live_tup ORDER BY 2 DESC LIMIT 20";
    for row in session.rows(sql, &[&MIN_DEAD_ROWS]).await? {
        examined.bloated_tables.push((rows::get(&row, 0)?, rows::get_u64(&row, 1)?));
    }
    let sql = format!(
        "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint, \
         (coalesce(sum(greatest(c.reltuples, 0)), 0) * {BYTES_PER_LIST} \
         + (SELECT coalesce(sum(postings), 0) FROM batches) * {BYTES_PER_POSTING})::bigint \
         FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = 'corbie.postings'::regclass"
    );
    let row = session.row(&sql, &[]).await?;
    examined.posting_lists =
        PostingListSize { allocated_bytes: rows::get_u64(&row, 0)?, used_bytes: rows::get_u64(&row, 1)? };
    let lives = instance::DEAD_AFTER;
    let sql = format!(
        "SELECT (SELECT count(*) FROM batches WHERE level = 0), \
         (SELECT count(*) FROM instances WHERE beat > now() - {lives})"
    );
    let row = session.row(&sql, &[]).await?;
    (examined.unmerged_batches, examined.instances) = (rows::get_u64(&row, 0)?, rows::get_u64(&row, 1)?);
    Ok(())
}
