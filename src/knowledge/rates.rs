//! Shared rate limits: one bucket per caller across all instances of a database (S-09, A-13).
//!
//! A request is admitted by local state, and usage is reported asynchronously. A database query per request would add
//! its latency to every call, and no call would be served while the database is unavailable.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::store::postgres::Store;
use super::{Error, Knowledge};

/// Interval between two exchanges, and the maximum backoff after failures.
const EVERY: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// Timeout of an exchange. Older data is useless.
const PATIENCE: Duration = Duration::from_secs(2);
/// Interval between two cleanups of inactive callers.
const SWEEP: Duration = Duration::from_secs(60);

/// Exchanges rate-limit usage until shutdown. While the database is unavailable each instance limits independently.
pub(super) async fn share(knowledge: Knowledge, store: Store) {
    let (mut pause, mut swept) = (EVERY, Instant::now());
    loop {
        tokio::select! {
            () = sleep(pause) => {}
            () = knowledge.stopping() => return,
        }
        let exchanged = timeout(PATIENCE, exchange(&knowledge, &store, &mut swept)).await;
        let failure = match exchanged {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("the database does not answer".to_owned()),
        };
        pause = match failure {
            None => EVERY,
            Some(why) => {
                // Logged only at the first failure.
                if pause == EVERY {
                    tracing::debug!(%why, "what callers spend is not shared with other instances until it can be");
                }
                (2 * pause).min(LONGEST_PAUSE)
            }
        };
    }
}

async fn exchange(knowledge: &Knowledge, store: &Store, swept: &mut Instant) -> Result<(), Error> {
    let spent = knowledge.server().map(|server| server.spent()).unwrap_or_default();
    if !spent.is_empty() {
        store.exchange_rates(spent).await?;
    }
    if swept.elapsed() >= SWEEP {
        *swept = Instant::now();
        store.sweep_rates().await?;
    }
    Ok(())
}
