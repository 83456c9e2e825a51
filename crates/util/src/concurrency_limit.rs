//! Concurrency limit with a bounded wait queue. Further callers are rejected.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A permit, released when its last clone is dropped.
pub type ConcurrencyPermit = Arc<OwnedSemaphorePermit>;

#[derive(Debug)]
pub struct ConcurrencyLimit {
    permits: Arc<Semaphore>,
    /// Permits for waiting and running callers.
    queue: Semaphore,
}

/// The wait queue is full.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many concurrent requests; try again in a few seconds")]
pub struct QueueFull;

/// Maximum number of waiting callers.
const MAX_WAITING: usize = 8;

impl ConcurrencyLimit {
    pub fn new(at_a_time: usize) -> ConcurrencyLimit {
        ConcurrencyLimit { permits: Arc::new(Semaphore::new(at_a_time)), queue: Semaphore::new(MAX_WAITING) }
    }

    pub async fn acquire(&self) -> Result<ConcurrencyPermit, QueueFull> {
        let _place = self.queue.try_acquire().map_err(|_| QueueFull)?;
        self.permits.clone().acquire_owned().await.map(Arc::new).map_err(|_| QueueFull)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn so_many_work_a_few_wait_and_the_next_is_told_to_come_again() {
        let turns = Arc::new(ConcurrencyLimit::new(1));
        let first = turns.acquire().await.unwrap();
        let waits = |_| {
            let turns = turns.clone();
            tokio::spawn(async move { turns.acquire().await.map(drop) })
        };
        let waiting: Vec<_> = (0..MAX_WAITING).map(waits).collect();
        while turns.queue.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(turns.acquire().await.map(drop), Err(QueueFull));
        let still_at_it = first.clone();
        drop(first);
        assert!(waiting.iter().all(|waits| !waits.is_finished()), "a copy of the turn is still held");
        drop(still_at_it);
        for waits in waiting {
            assert_eq!(waits.await.unwrap(), Ok(()));
        }
        assert!(turns.acquire().await.is_ok());
    }
}
