//! Background compaction: merges the small pieces that many writes leave behind.
//!
//! Every instance runs it and skips the rows that another instance has locked.

use std::sync::Weak;
use std::time::Duration;

use super::{Shared, Store};
use crate::knowledge::store::{Error, Health, Report};

/// Interval between two checks for pieces to merge.
const LOOK: Duration = Duration::from_millis(500);
/// Maximum number of merges without a pause.
const MOST: usize = 64;
/// Number of polls between two runs of the slower tasks.
const SELDOM: u64 = 20;

/// Runs compaction as long as the store is open.
pub(super) async fn run(store: Weak<Shared>) {
    for look in 1_u64.. {
        tokio::time::sleep(LOOK).await;
        let Some(shared) = store.upgrade() else { return };
        if let Err(error) = Store(shared).join(look).await {
            tracing::debug!(%error, "what was written in pieces is joined later");
        }
    }
}

impl Store {
    /// Runs all steps, even if one of them fails.
    async fn join(&self, look: u64) -> Result<(), Error> {
        let joined = self.join_many().await;
        let cleaned = self.clean_postings().await;
        if !look.is_multiple_of(SELDOM) {
            return joined.and(cleaned);
        }
        let summed = self.join_sums().await;
        let purged = async {
            for _ in 0..MOST {
                if !self.purge_postings().await? {
                    break;
                }
            }
            Ok(())
        };
        joined.and(cleaned).and(summed).and(purged.await)
    }

    async fn join_many(&self) -> Result<(), Error> {
        for _ in 0..MOST {
            if !self.join_postings().await? {
                break;
            }
        }
        Ok(())
    }

    /// No-op: background tasks do the maintenance.
    pub async fn look_after(&self) -> Result<(), Error> {
        Ok(())
    }

    pub async fn health(&self) -> Result<Health, Error> {
        let asked = async { self.plain().await?.row("SELECT count(*) FROM bases", &[]).await };
        let trouble = match asked.await {
            Ok(_) => None,
            Err(Error::Away(why)) => Some(why),
            Err(other) => Some(other.to_string()),
        };
        Ok(super::pulse::health(trouble.as_deref()))
    }

    /// Health as of the last heartbeat.
    pub fn known_health(&self) -> Health {
        self.0.pulse.health()
    }

    /// Whether the primary and all replicas were unavailable at the last check.
    pub(in crate::knowledge) fn is_out_of_reach(&self) -> bool {
        self.known_health().connected.is_err() && !self.0.replicas.is_any_fit()
    }

    pub fn known_size(&self) -> u64 {
        self.0.pulse.bytes()
    }

    /// Checks the consistency of the tables.
    pub async fn check(&self) -> Result<Report, Error> {
        super::check::check(self).await
    }
}
