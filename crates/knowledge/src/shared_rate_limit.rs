//! Shared rate limits: one bucket per caller across all instances of a database (S-09, A-13).
//!
//! A request is admitted by local state, and usage is reported asynchronously. A database query per request would add
//! its latency to every call, and no call would be served while the database is unavailable.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::store::postgres::Store;
use super::{Error, Knowledge};

/// Interval between two exchanges, and the maximum backoff after failures.
const SYNC_INTERVAL: Duration = Duration::from_millis(250);
const MAX_BACKOFF: Duration = Duration::from_secs(4);
/// Timeout of an exchange. Older data is useless.
const SYNC_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval between two cleanups of inactive callers.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Exchanges rate-limit usage until shutdown. While the database is unavailable each instance limits independently.
pub(super) async fn sync_loop(knowledge: Knowledge, store: Store) {
    let (mut pause, mut swept) = (SYNC_INTERVAL, Instant::now());
    loop {
        tokio::select! {
            () = sleep(pause) => {}
            () = knowledge.stopped() => return,
        }
        let exchanged = timeout(SYNC_TIMEOUT, sync_once(&knowledge, &store, &mut swept)).await;
        let failure = match exchanged {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("the database does not answer".to_owned()),
        };
        pause = match failure {
            None => SYNC_INTERVAL,
            Some(why) => {
                // Logged only at the first failure.
                if pause == SYNC_INTERVAL {
                    tracing::debug!(%why, "what callers spend is not shared with other instances until it can be");
                }
                (2 * pause).min(MAX_BACKOFF)
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
