//! HNSW indexes over vectors, one per model.
//!
//! For few vectors the index is built immediately. For many it takes minutes or hours, so it is built in the
//! background, one partition at a time, while reads and writes continue. Until it is complete, vectors are compared by
//! a full scan, except in partitions that already have an index.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::sleep;
use tokio_postgres::Client;

use super::models::ModelRow;
use super::session::{self, Session};
use super::{Inner, Store, error, rows};
use crate::store::Error;
use corbie_config::postgres_address::Address;

/// Maximum number of dimensions that can be indexed; longer vectors are compared by a full scan.
const MAX_INDEXED_DIMENSIONS: usize = 4000;
/// Arbitrary key of the advisory lock for index builds.
const BUILD_LOCK: i64 = 0x636f_7262_6966;
/// Index parameters: `ef_construction` is twice the default, for better recall.
const INDEX_PARAMETERS: &str = "m = 16, ef_construction = 128";
/// Up to this number of vectors (of all models), the index is built in the foreground.
const MAX_FOREGROUND_VECTORS: i64 = 10_000;
/// Interval between two checks whether the index exists.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// Bytes per element in addition to its vector, and the maximum memory to request, in kilobytes. A build that does not
/// fit still succeeds, but slowly.
const OVERHEAD_BYTES: u64 = 450;
const MAX_MEMORY_KB: u64 = 1024 * 1024;

impl Store {
    /// Makes sure that a model has an index.
    pub(super) async fn ensure_index(&self, model: ModelRow) -> Result<(), Error> {
        // Checked first, because creating an index needs more privileges than searching.
        let state = index_state(&self.autocommit().await?, model).await?;
        match state {
            State::Complete => Ok(()),
            State::Missing if !exceeds_foreground_limit(&self.autocommit().await?).await? => {
                self.build_in_foreground(model).await
            }
            // An unfinished index is completed partition by partition.
            State::Missing | State::Partial => {
                tokio::spawn(build_in_background(Arc::downgrade(&self.0), model));
                Ok(())
            }
        }
    }

    /// Builds missing indexes and waits for them, because freshly loaded data is about to be searched. Also updates
    /// the planner statistics.
    pub(in crate::store) async fn build_indexes(&self) -> Result<(), Error> {
        for row in self.query_with_retry("SELECT key, dimensions FROM models ORDER BY key", &[]).await? {
            let model = ModelRow { key: rows::get(&row, 0)?, dimensions: rows::get_u32(&row, 1)? as usize };
            if !is_indexed(&self.autocommit().await?, model).await? {
                build(&self.0.address, model).await?;
            }
        }
        // Without statistics the planner chooses full table scans.
        let (client, _said) = session::connect_dedicated(&self.0.address).await?;
        execute(&client, "SET statement_timeout = 0; SET lock_timeout = 0").await?;
        execute(&client, "ANALYZE documents, pages, chunks, vectors, postings, writings, sums").await
    }

    async fn build_in_foreground(&self, model: ModelRow) -> Result<(), Error> {
        let session = self.begin_write().await?;
        let turn = session.row("SELECT pg_try_advisory_xact_lock($1)", &[&BUILD_LOCK]).await?;
        // Another instance may be building the index or may have built it.
        if !rows::get::<bool>(&turn, 0)? || is_indexed(&session, model).await? {
            return session.rollback().await;
        }
        session.execute_batch("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0").await?;
        session
            .execute_batch_without_timeout(&format!(
                "CREATE INDEX {} ON vectors {}",
                index_name(model),
                index_definition(model)
            ))
            .await?;
        session.commit().await
    }
}

fn index_name(model: ModelRow) -> String {
    format!("vectors_model_{}", model.key)
}

fn index_definition(ModelRow { key, dimensions }: ModelRow) -> String {
    format!(
        "USING hnsw ((direction::halfvec({dimensions})) halfvec_cosine_ops) WITH ({INDEX_PARAMETERS}) WHERE model = {key}"
    )
}

/// State of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Complete, or not possible for this model.
    Complete,
    /// Some partitions have no index.
    Partial,
    Missing,
}

async fn index_state(session: &Session, model: ModelRow) -> Result<State, Error> {
    if !(1..=MAX_INDEXED_DIMENSIONS).contains(&model.dimensions) {
        return Ok(State::Complete);
    }
    let find = "SELECT i.indisvalid FROM pg_class AS c JOIN pg_index AS i ON i.indexrelid = c.oid WHERE c.relname = $1 \
                AND c.relnamespace = 'corbie'::regnamespace";
    let found = session.opt_row(find, &[&index_name(model)]).await?;
    Ok(match found.map(|row| rows::get(&row, 0)).transpose()? {
        Some(true) => State::Complete,
        Some(false) => State::Partial,
        None => State::Missing,
    })
}

/// Whether no work is left.
async fn is_indexed(session: &Session, model: ModelRow) -> Result<bool, Error> {
    Ok(index_state(session, model).await? == State::Complete)
}

/// Models with missing indexes. Models with too many dimensions for an index are not included.
pub(super) async fn unindexed(session: &Session) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for row in session.rows("SELECT key, dimensions, name FROM models ORDER BY key", &[]).await? {
        let model = ModelRow { key: rows::get(&row, 0)?, dimensions: rows::get_u32(&row, 1)? as usize };
        if !is_indexed(session, model).await? {
            names.push(rows::get(&row, 2)?);
        }
    }
    Ok(names)
}

/// Whether an index build is running.
pub(super) async fn is_build_running(session: &Session) -> Result<bool, Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 \
               AND classid::bigint = $1::bigint >> 32 AND objid::bigint = $1::bigint & 4294967295 \
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))";
    rows::get(&session.row(sql, &[&BUILD_LOCK]).await?, 0)
}

async fn exceeds_foreground_limit(session: &Session) -> Result<bool, Error> {
    let count = "SELECT count(*) FROM (SELECT FROM vectors LIMIT $1) AS v";
    Ok(rows::get::<i64>(&session.row(count, &[&(MAX_FOREGROUND_VECTORS + 1)]).await?, 0)? > MAX_FOREGROUND_VECTORS)
}

/// Builds an index in the background unless another instance does. The other instance may be killed during its build,
/// so the state is checked repeatedly.
async fn build_in_background(store: Weak<Inner>, model: ModelRow) {
    loop {
        let Some(shared) = store.upgrade() else { return };
        let looked = async { is_indexed(&Session::autocommit(&shared.primary).await?, model).await };
        if matches!(looked.await, Ok(true)) {
            return;
        }
        let address = shared.address.clone();
        drop(shared);
        match build(&address, model).await {
            Ok(true) => return tracing::info!("created a vector index (HNSW)"),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot create a vector index (HNSW); searches are slower without it")
            }
        }
        sleep(CHECK_INTERVAL).await;
    }
}

/// Builds an index on a dedicated connection. Returns false if another instance is building one.
async fn build(address: &Address, model: ModelRow) -> Result<bool, Error> {
    let (client, _said) = session::connect_dedicated(address).await?;
    execute(&client, "SET statement_timeout = 0; SET lock_timeout = 0").await?;
    // Released when the connection closes.
    let turn = client.query_one("SELECT pg_try_advisory_lock($1)", &[&BUILD_LOCK]).await.map_err(error::map_error)?;
    if !rows::get::<bool>(&turn, 0)? {
        return Ok(false);
    }
    let (index, kind) = (index_name(model), index_definition(model));
    let parts = "SELECT c.relname::text FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid \
                 WHERE i.inhparent = 'corbie.vectors'::regclass ORDER BY 1";
    let parts = client.query(parts, &[]).await.map_err(error::map_error)?;
    set_build_memory(&client, model, parts.len()).await?;
    execute(&client, &format!("CREATE INDEX IF NOT EXISTS {index} ON ONLY vectors {kind}")).await?;
    for part in &parts {
        let table: String = rows::get(part, 0)?;
        let part = format!("{table}_model_{}", model.key);
        if let Err(error) = build_partition(&client, &table, &part, &kind).await {
            // Parallel workers need shared memory, which may be scarce in a container. A single process needs none.
            tracing::debug!(%error, "only one process creates an index");
            execute(&client, "SET max_parallel_maintenance_workers = 0").await?;
            build_partition(&client, &table, &part, &kind).await?;
        }
        execute(&client, &format!("ALTER INDEX {index} ATTACH PARTITION {part}")).await?;
    }
    Ok(true)
}

async fn build_partition(client: &Client, table: &str, part: &str, kind: &str) -> Result<(), Error> {
    // An index left invalid by a killed build is unusable.
    let broken = "SELECT 1 FROM pg_class AS c JOIN pg_index AS i ON i.indexrelid = c.oid WHERE c.relname = $1 \
                  AND c.relnamespace = 'corbie'::regnamespace AND NOT i.indisvalid";
    if client.query_opt(broken, &[&part]).await.map_err(error::map_error)?.is_some() {
        execute(client, &format!("DROP INDEX CONCURRENTLY {part}")).await?;
    }
    execute(client, &format!("CREATE INDEX CONCURRENTLY IF NOT EXISTS {part} ON {table} {kind}")).await
}

/// Sets the memory for building the index of a partition, within limits and at least the server's default.
async fn set_build_memory(client: &Client, model: ModelRow, parts: usize) -> Result<(), Error> {
    let count = "SELECT count(*), (SELECT setting::bigint FROM pg_settings WHERE name = 'maintenance_work_mem') \
                 FROM vectors WHERE model = $1";
    let row = client.query_one(count, &[&model.key]).await.map_err(error::map_error)?;
    let (vectors, given) = (rows::get_u64(&row, 0)?, rows::get_u64(&row, 1)?);
    let memory = build_memory_kb(vectors / parts.max(1) as u64, model.dimensions).max(given);
    execute(client, &format!("SET maintenance_work_mem = '{memory}kB'")).await
}

/// With 50 % headroom, because partitions differ in size.
fn build_memory_kb(vectors: u64, dimensions: usize) -> u64 {
    (vectors * (2 * dimensions as u64 + OVERHEAD_BYTES) / 1024 * 3 / 2).min(MAX_MEMORY_KB)
}

async fn execute(client: &Client, sql: &str) -> Result<(), Error> {
    client.batch_execute(sql).await.map_err(error::map_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_gets_as_much_memory_as_it_takes_and_no_more_than_a_gigabyte() {
        assert_eq!(build_memory_kb(0, 384), 0);
        assert_eq!(build_memory_kb(10_000, 384) / 1024, 17);
        assert_eq!(build_memory_kb(100_000_000, 384), MAX_MEMORY_KB);
    }
}
