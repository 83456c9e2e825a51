//! Retry policy for a busy or unavailable store.
//!
//! An acknowledged task does not fail because another process holds the lock for long, or because a database restarts.
//! The operation is retried until it succeeds or the process shuts down; then the next start resumes the task.

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::progress::Progress;
use super::store;

/// Context of a retried operation.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy<'p> {
    /// Shutdown, which ends the retries.
    pub stop: &'p CancellationToken,
    /// Progress of the waiting task.
    pub progress: &'p watch::Sender<Progress>,
}

/// Step shown while a task waits.
const WAITING_STEP: &str = "Waiting for storage";
/// Delay between attempts. Each attempt has already waited for the store's lock.
const RETRY_DELAY: Duration = Duration::from_secs(1);

impl RetryPolicy<'_> {
    /// Retries transient errors without limit. Returns a transient error only at shutdown.
    pub async fn retry<T, F>(self, mut attempt: impl FnMut() -> F) -> Result<T, store::Error>
    where
        F: Future<Output = Result<T, store::Error>>,
    {
        loop {
            let done = attempt().await;
            if !done.as_ref().is_err_and(store::Error::is_transient) || !self.wait_before_retry().await {
                return done;
            }
        }
    }

    /// Waits for the delay. Returns false at shutdown.
    pub async fn wait_before_retry(self) -> bool {
        self.progress.send_modify(|far| far.step = WAITING_STEP.to_owned());
        tokio::select! {
            () = tokio::time::sleep(RETRY_DELAY) => true,
            () = self.stop.cancelled() => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::BaseName;
    use crate::store::Options;
    use crate::store::sqlite::Store;
    use crate::task::{NewTask, TaskId, TaskKind, TaskState};

    /// A store with a task, and another connection that holds the write lock.
    async fn busy(folder: &std::path::Path) -> (Store, TaskId, rusqlite::Connection) {
        let options = Options { busy_timeout: Duration::from_millis(10), ..Options::default() };
        let store = Store::open(folder, options).unwrap();
        let task = NewTask {
            id: TaskId::random(),
            base: BaseName::default(),
            owner: "ada".into(),
            kind: TaskKind::Add,
            request: serde_json::json!({}),
            document: None,
            filename: None,
            format: None,
            size_bytes: None,
        };
        store.add_task(&task).await.unwrap();
        let other = rusqlite::Connection::open(folder.join("knowledge.db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        (store, task.id, other)
    }

    #[tokio::test]
    async fn a_task_waits_until_the_store_can_be_written_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let (store, task, other) = busy(folder.path()).await;
        let (stop, far) = (CancellationToken::new(), watch::Sender::new(Progress::default()));
        let mut told = far.subscribe();
        let patience = RetryPolicy { stop: &stop, progress: &far };
        let release = async {
            told.wait_for(|far| far.step == WAITING_STEP).await.unwrap();
            assert_eq!(store.task(task).await.unwrap().unwrap().state, TaskState::Queued);
            other.execute_batch("ROLLBACK").unwrap();
        };
        let both = async { tokio::join!(patience.retry(|| store.start_task(task)), release) };
        let (started, ()) = tokio::time::timeout(Duration::from_secs(30), both).await.unwrap();
        assert!(started.unwrap());
    }

    #[tokio::test]
    async fn who_is_to_end_does_not_wait() {
        let folder = tempfile::tempdir().unwrap();
        let (store, task, _other) = busy(folder.path()).await;
        let (stop, far) = (CancellationToken::new(), watch::Sender::new(Progress::default()));
        stop.cancel();
        let patience = RetryPolicy { stop: &stop, progress: &far };
        let started = patience.retry(|| store.start_task(task)).await;
        assert!(matches!(started, Err(store::Error::Busy)), "{started:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_waits_for_a_database_that_is_away_and_not_for_a_full_one() {
        let (stop, far) = (CancellationToken::new(), watch::Sender::new(Progress::default()));
        let patience = RetryPolicy { stop: &stop, progress: &far };
        let mut answers =
            vec![Ok(7), Err(store::Error::Unavailable("connection refused".into())), Err(store::Error::Busy)];
        let answered = patience.retry(|| std::future::ready(answers.pop().unwrap())).await;
        assert_eq!(answered.unwrap(), 7);
        let refused = patience.retry(|| std::future::ready(Err::<(), _>(store::Error::Full))).await;
        assert!(matches!(refused, Err(store::Error::Full)), "{refused:?}");
    }
}
