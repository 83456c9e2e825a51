//! Shared rate limits: one bucket per caller across all instances of a database (S-09, A-13).
//!
//! A request is admitted by local state, and usage is reported asynchronously. A database query per request would add
//! its latency to every call, and no call would be served while the database is unavailable.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::store::postgres::Store;
use super::{Error, Knowledge};
use corbie_util::backoff::Backoff;

/// Interval between two exchanges.
const SYNC_INTERVAL: Duration = Duration::from_millis(250);
const FAILURE_BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(4));
/// Timeout of an exchange. Older data is useless.
const SYNC_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval between two cleanups of inactive callers.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Exchanges rate-limit usage until shutdown. While the database is unavailable each instance limits independently.
pub(super) async fn sync_loop(knowledge: Knowledge, store: Store) {
    let (mut backoff, mut delay, mut swept) = (FAILURE_BACKOFF, SYNC_INTERVAL, Instant::now());
    loop {
        tokio::select! {
            () = sleep(delay) => {}
            () = knowledge.stopped() => return,
        }
        let exchanged = timeout(SYNC_TIMEOUT, sync_once(&knowledge, &store, &mut swept)).await;
        let failure = match exchanged {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("database timed out".to_owned()),
        };
        delay = match failure {
            None => {
                backoff.reset();
                SYNC_INTERVAL
            }
            Some(error) => {
                // Logged only at the first failure.
                if !backoff.is_active() {
                    tracing::debug!(%error, "rate-limit usage is not shared with other instances; retrying");
                }
                backoff.next_delay()
            }
        };
    }
}

async fn sync_once(knowledge: &Knowledge, store: &Store, swept: &mut Instant) -> Result<(), Error> {
    let spent = knowledge.server().map(|server| server.unreported_rate_usage()).unwrap_or_default();
    if !spent.is_empty() {
        store.sync_rate_usage(spent).await?;
    }
    if swept.elapsed() >= SWEEP_INTERVAL {
        *swept = Instant::now();
        store.sweep_rate_usage().await?;
    }
    Ok(())
}
