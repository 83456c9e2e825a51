//! Bounded execution of custom models with hang detection, outside the embedding thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Error;

/// Concurrency limit shared by all custom models. A model loaded to replace a hanging one gets no extra permits;
/// otherwise threads and models that cannot be stopped would accumulate.
#[derive(Debug, Clone)]
pub struct CustomModelExecutor {
    permits: Arc<Semaphore>,
    /// Permits held by abandoned calls.
    stuck: Arc<AtomicUsize>,
    /// Timeout for acquiring a permit, and then for the model.
    timeout: Duration,
}

/// A model uses several cores for one text; more concurrency would only cause contention.
const MAX_CONCURRENT: usize = 2;

impl CustomModelExecutor {
    pub(super) fn new(limit: Duration) -> CustomModelExecutor {
        CustomModelExecutor { permits: Arc::new(Semaphore::new(MAX_CONCURRENT)), stuck: Arc::default(), timeout: limit }
    }

    /// Loads or runs a model. The work cannot be cancelled, so its permit is released when it ends, not when the caller
    /// disconnects.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        let limit = self.timeout;
        if self.is_stuck() {
            return Err(Error::ModelTimeout(limit));
        }
        let turn =
            timeout(limit, self.permits.clone().acquire_owned()).await.map_err(|_| Error::QueueTimeout(limit))?;
        let turn = turn.map_err(|_| Error::Stopped)?;
        let (tell, told) = oneshot::channel();
        let at_work = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let _ = tell.send(work());
        });
        // In a separate task: the caller may disconnect long before the timeout, and the hang must still be detected.
        tokio::spawn(count_while_stuck(at_work, limit, self.stuck.clone()));
        timeout(limit, told).await.map_err(|_| Error::ModelTimeout(limit))?.map_err(|_| Error::Stopped)
    }

    /// Whether every permit is held by an abandoned call.
    pub fn is_stuck(&self) -> bool {
        self.stuck_calls() >= MAX_CONCURRENT
    }

    pub(super) fn stuck_calls(&self) -> usize {
        self.stuck.load(Ordering::Relaxed)
    }
}

/// Counts a call that exceeds its timeout, until it returns.
async fn count_while_stuck(mut at_work: JoinHandle<()>, limit: Duration, stuck: Arc<AtomicUsize>) {
    if timeout(limit, &mut at_work).await.is_ok() {
        return;
    }
    stuck.fetch_add(1, Ordering::Relaxed);
    tracing::error!(?limit, "classifier model timed out; abandoning its thread");
    let _ = at_work.await;
    stuck.fetch_sub(1, Ordering::Relaxed);
    tracing::warn!("abandoned classifier model thread finished");
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Work that starts and blocks until it is released.
    fn hanging(begun: &mpsc::Sender<()>) -> (mpsc::Sender<()>, impl FnOnce() + Send + 'static) {
        let (hold, held) = mpsc::channel();
        let begun = begun.clone();
        let work = move || {
            let _ = begun.send(());
            // No message is ever sent.
            let _ = held.recv();
        };
        (hold, work)
    }

    async fn until(holds: impl Fn() -> bool) {
        while !holds() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn models_that_do_not_come_back_take_no_more_threads_than_there_are_turns() {
        let aside = CustomModelExecutor::new(Duration::from_millis(50));
        let (begun, begins) = mpsc::channel();
        let mut holds = Vec::new();
        for _ in 0..MAX_CONCURRENT {
            let (hold, work) = hanging(&begun);
            holds.push(hold);
            // The caller disconnects early; the hang is detected anyway.
            let _ = timeout(Duration::from_millis(1), aside.run(work)).await;
        }
        until(|| aside.is_stuck()).await;
        for _ in 0..3 {
            let (hold, work) = hanging(&begun);
            holds.push(hold);
            let answer = aside.run(work).await;
            assert!(matches!(answer, Err(Error::ModelTimeout(_))), "everybody is answered: {answer:?}");
        }
        assert_eq!(begins.try_iter().count(), MAX_CONCURRENT);
        drop(holds);
        until(|| aside.stuck_calls() == 0).await;
        let answer = CustomModelExecutor { timeout: Duration::from_secs(60), ..aside }.run(|| 7).await;
        assert!(matches!(answer, Ok(7)), "it goes on when they come back: {answer:?}");
    }

    #[tokio::test]
    async fn one_that_panics_fails_its_caller_and_gives_its_turn_back() {
        let aside = CustomModelExecutor::new(Duration::from_secs(60));
        for _ in 0..=MAX_CONCURRENT {
            let answer = aside.run(|| panic!("over this text")).await;
            assert!(matches!(answer, Err::<(), _>(Error::Stopped)), "{answer:?}");
        }
        assert!(matches!(aside.run(|| 7).await, Ok(7)));
    }
}
