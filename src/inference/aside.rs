//! Models that the owner's thread does not run: a classifier of one's own is asked wherever somebody waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::Error;

/// Turns at such models, whichever they are: one that was loaded anew while the one before it hangs has no turns of its
/// own, or there would be ever more threads and models that nobody can stop.
#[derive(Debug, Clone)]
pub struct Aside {
    turns: Arc<Semaphore>,
    /// How many have a turn and were given up.
    stuck: Arc<AtomicUsize>,
    /// How long a caller waits for a turn, and then for the model.
    limit: Duration,
}

/// A model uses several cores for one text; more texts at a time would only wait for each other.
const AT_A_TIME: usize = 2;

impl Aside {
    pub(super) fn new(limit: Duration) -> Aside {
        Aside { turns: Arc::new(Semaphore::new(AT_A_TIME)), stuck: Arc::default(), limit }
    }

    /// Loads a model, or asks it something. Nobody can stop it, so the turn is over when it is done, and not when its
    /// caller leaves.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        let limit = self.limit;
        if self.stuck() >= AT_A_TIME {
            return Err(Error::Stuck(limit));
        }
        let turn = timeout(limit, self.turns.clone().acquire_owned()).await.map_err(|_| Error::Crowded(limit))?;
        let turn = turn.map_err(|_| Error::Stopped)?;
        let mut done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        let Ok(done) = timeout(limit, &mut done).await else {
            self.stuck.fetch_add(1, Ordering::Relaxed);
            tracing::error!(?limit, "a classifier's model does not come back");
            let stuck = self.stuck.clone();
            tokio::spawn(async move {
                let _ = done.await;
                stuck.fetch_sub(1, Ordering::Relaxed);
                tracing::warn!("a classifier's model that was given up has come back");
            });
            return Err(Error::Stuck(limit));
        };
        done.map_err(|_| Error::Stopped)
    }

    pub(super) fn stuck(&self) -> usize {
        self.stuck.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn models_that_do_not_come_back_take_no_more_threads_than_there_are_turns() {
        let aside = Aside::new(Duration::from_millis(50));
        let begun = Arc::new(AtomicUsize::new(0));
        let mut holds = Vec::new();
        for _ in 0..4 {
            let (hold, held) = mpsc::channel::<()>();
            holds.push(hold);
            let begun = begun.clone();
            let work = move || {
                begun.fetch_add(1, Ordering::Relaxed);
                // Nothing is ever sent.
                let _ = held.recv();
            };
            let answer = aside.run(work).await;
            assert!(matches!(answer, Err(Error::Stuck(_))), "everybody is answered: {answer:?}");
        }
        assert_eq!(begun.load(Ordering::Relaxed), AT_A_TIME);
        assert_eq!(aside.stuck(), AT_A_TIME);
        drop(holds);
        while aside.stuck() > 0 {
            tokio::task::yield_now().await;
        }
        let answer = Aside { limit: Duration::from_secs(60), ..aside }.run(|| 7).await;
        assert!(matches!(answer, Ok(7)), "it goes on when they come back: {answer:?}");
    }
}
