//! Background compaction: merges the small pieces that many writes leave behind.
//!
//! Every instance runs it and skips the rows that another instance has locked.

use std::sync::Weak;
use std::time::Duration;

use super::{Inner, Store};
use crate::knowledge::store::{CheckReport, Error, Health};

/// Interval between two checks for pieces to merge.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of merges without a pause.
const MAX_MERGES_PER_POLL: usize = 64;
/// Number of polls between two runs of the slower tasks.
const POLLS_PER_SLOW_STEP: u64 = 20;

/// Runs compaction as long as the store is open.
pub(super) async fn run(store: Weak<Inner>) {
    for look in 1_u64.. {
        tokio::time::sleep(POLL_INTERVAL).await;
        let Some(shared) = store.upgrade() else { return };
        if let Err(error) = Store(shared).compact(look).await {
            tracing::debug!(%error, "what was written in pieces is joined later");
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

    /// No-op: background tasks do the maintenance.
    pub async fn maintain(&self) -> Result<(), Error> {
        Ok(())
    }

    pub async fn health(&self) -> Result<Health, Error> {
        let asked = async { self.autocommit().await?.row("SELECT count(*) FROM bases", &[]).await };
        let trouble = match asked.await {
            Ok(_) => None,
            Err(Error::Unavailable(why)) => Some(why),
            Err(other) => Some(other.to_string()),
        };
        Ok(super::heartbeat::health(trouble.as_deref()))
    }

    /// Health as of the last heartbeat.
    pub fn cached_health(&self) -> Health {
        self.0.heartbeat.health()
    }

    /// Whether the primary and all replicas were unavailable at the last check.
    pub(in crate::knowledge) fn is_unreachable(&self) -> bool {
        self.cached_health().connected.is_err() && !self.0.replicas.is_any_healthy()
    }

    pub fn cached_size(&self) -> u64 {
        self.0.heartbeat.bytes()
    }

    /// Checks the consistency of the tables.
    pub async fn check(&self) -> Result<CheckReport, Error> {
        super::check::check(self).await
    }
}
