//! Concurrency limit with a bounded wait queue. Further callers are rejected.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A permit, released when its last clone is dropped.
pub(super) type Turn = Arc<OwnedSemaphorePermit>;

#[derive(Debug)]
pub(super) struct Turns {
    turns: Arc<Semaphore>,
    /// Permits for waiting and running callers.
    places: Semaphore,
}

/// The wait queue is full.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many others are at the same work; try again in a few seconds")]
pub(super) struct Busy;

/// Maximum number of waiting callers.
const MOST_WAITING: usize = 8;

impl Turns {
    pub(super) fn new(at_a_time: usize) -> Turns {
        Turns { turns: Arc::new(Semaphore::new(at_a_time)), places: Semaphore::new(MOST_WAITING) }
    }

    pub(super) async fn take(&self) -> Result<Turn, Busy> {
        let _place = self.places.try_acquire().map_err(|_| Busy)?;
        self.turns.clone().acquire_owned().await.map(Arc::new).map_err(|_| Busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn so_many_work_a_few_wait_and_the_next_is_told_to_come_again() {
        let turns = Arc::new(Turns::new(1));
        let first = turns.take().await.unwrap();
        let waits = |_| {
            let turns = turns.clone();
            tokio::spawn(async move { turns.take().await.map(drop) })
        };
        let waiting: Vec<_> = (0..MOST_WAITING).map(waits).collect();
        while turns.places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(turns.take().await.map(drop), Err(Busy));
        let still_at_it = first.clone();
        drop(first);
        assert!(waiting.iter().all(|waits| !waits.is_finished()), "a copy of the turn is still held");
        drop(still_at_it);
        for waits in waiting {
            assert_eq!(waits.await.unwrap(), Ok(()));
        }
        assert!(turns.take().await.is_ok());
    }
}
