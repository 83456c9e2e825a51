//! Background compaction: merges the small pieces that many writes leave behind, and runs VACUUM after merges.
//!
//! Every instance runs it and skips the rows that another instance has locked.
//!
//! Every merge leaves the rows of its source lists as dead rows. Autovacuum runs once a minute at most, which is not
//! enough during a bulk import: the table and its indexes would grow to several times their content and never shrink.
//! The instance therefore runs VACUUM after its merges have left many dead rows.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{Inner, Store, error, rows, session};
use crate::store::Error;
use corbie_config::postgres_address::Address;

/// Interval between two checks for pieces to merge.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of merges without a pause.
const MAX_MERGES_PER_POLL: usize = 64;
/// Number of polls between two runs of the slower tasks.
const POLLS_PER_SLOW_STEP: u64 = 20;
/// Minimum number of dead rows; fewer are left to autovacuum.
const MIN_DEAD_ROWS: u64 = 200_000;
/// VACUUM scans all indexes, so the dead rows must be at least one in this many of all rows.
const MAX_ROWS_PER_DEAD_ROW: u64 = 5;

/// Number of dead rows since the last VACUUM, and whether one is running.
#[derive(Debug, Default)]
pub(super) struct DeadRows {
    rows: AtomicU64,
    is_running: AtomicBool,
}

impl DeadRows {
    pub(super) fn add(&self, rows: usize) {
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }
}

/// Runs compaction as long as the store is open.
pub(super) async fn run(store: Weak<Inner>) {
    for look in 1_u64.. {
        tokio::time::sleep(POLL_INTERVAL).await;
        let Some(shared) = store.upgrade() else { return };
        if let Err(error) = Store(shared).compact(look).await {
            tracing::debug!(%error, "postings compaction failed; retrying later");
        }
    }
}

impl Store {
    /// Runs all steps, even if one of them fails.
    async fn compact(&self, look: u64) -> Result<(), Error> {
        let joined = self.merge_crowded_levels().await;
        let cleaned = self.vacuum_if_needed().await;
        if !look.is_multiple_of(POLLS_PER_SLOW_STEP) {
            return joined.and(cleaned);
        }
        let summed = self.compact_stats().await;
        let purged = async {
            for _ in 0..MAX_MERGES_PER_POLL {
                if !self.purge_batch().await? {
                    break;
                }
            }
            Ok(())
        };
        joined.and(cleaned).and(summed).and(purged.await)
    }

    async fn merge_crowded_levels(&self) -> Result<(), Error> {
        for _ in 0..MAX_MERGES_PER_POLL {
            if !self.merge_batches().await? {
                break;
            }
        }
        Ok(())
    }

    /// Starts VACUUM in the background if there are many dead rows.
    async fn vacuum_if_needed(&self) -> Result<(), Error> {
        let left = &self.0.dead_rows;
        let rows = left.rows.load(Ordering::Relaxed);
        if rows < MIN_DEAD_ROWS || left.is_running.load(Ordering::Relaxed) {
            return Ok(());
        }
        let there = rows::estimated_row_count(&self.autocommit().await?, "postings").await?;
        if rows * MAX_ROWS_PER_DEAD_ROW >= there && !left.is_running.swap(true, Ordering::Relaxed) {
            tokio::spawn(run_vacuum(Arc::downgrade(&self.0), self.0.address.clone(), rows));
        }
        Ok(())
    }

    /// No-op: background tasks do the maintenance.
    pub async fn maintain(&self) -> Result<(), Error> {
        Ok(())
    }
}

async fn run_vacuum(store: Weak<Inner>, address: Address, rows: u64) {
    let cleaned = vacuum(&address).await;
    let Some(shared) = store.upgrade() else { return };
    match cleaned {
        Ok(()) => drop(shared.dead_rows.rows.fetch_sub(rows, Ordering::Relaxed)),
        Err(error) => tracing::debug!(%error, "vacuum after compaction failed; retrying later"),
    }
    shared.dead_rows.is_running.store(false, Ordering::Relaxed);
}

/// Reads and writes continue during VACUUM. It has no time limit and cannot run in a transaction, so it uses a
/// dedicated connection. Truncating the table would lock it briefly, which is not worth it because it fills up again.
async fn vacuum(address: &Address) -> Result<(), Error> {
    let (client, _said) = session::connect_dedicated(address).await?;
    client.batch_execute("SET statement_timeout = 0").await.map_err(error::map_error)?;
    client.batch_execute("VACUUM (SKIP_LOCKED, TRUNCATE FALSE) postings").await.map_err(error::map_error)
}
