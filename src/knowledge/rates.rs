//! Lets a caller have one allowance on all instances that share a database (S-09, A-13).
//!
//! A request is let in or refused by what is known here, and what was spent is told a moment later: asking the database
//! for each request would make every call as slow as that, and none would be served while it is away.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::store::postgres::Store;
use super::{Error, Knowledge};

/// Between two exchanges, and at most after some that failed.
const EVERY: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// What is known later than this is not worth having.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks for callers who are long gone.
const SWEEP: Duration = Duration::from_secs(60);

/// Exchanges what callers have spent until the program stops. While the database is away each instance goes on by itself.
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
                // Once, and not for as long as it lasts.
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
