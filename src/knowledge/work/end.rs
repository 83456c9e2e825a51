//! How tasks end: by themselves, because they are cancelled, or because somebody else has them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Work;
use super::job::Job;
use crate::knowledge::task::{Outcome, TaskEnd, TaskId, TaskState};
use crate::knowledge::{Error, blocking, upload};
use crate::locked::locked;

/// How long to wait before the end of a task is written once more.
const AGAIN: Duration = Duration::from_secs(2);

impl Work {
    /// Stops the work on a task whose row says that it is cancelled, or is gone. Its upload goes with it.
    pub fn drop_task(&self, id: TaskId) {
        if let Some(job) = self.job(id) {
            self.stop_work(&job, Outcome::Cancelled);
            self.discard_upload(&job);
        }
    }

    /// Cancels a task whose caller never heard of it. Whether it is cancelled, or has ended.
    pub(super) async fn give_back(&self, id: TaskId) -> bool {
        match self.0.store.cancel_task(id).await {
            Ok(_) => {
                self.drop_task(id);
                true
            }
            Err(error) => {
                tracing::warn!(task = %id, %error, "a task that nobody waits for could not be cancelled");
                false
            }
        }
    }

    /// Removes the upload of a task, where it has one, once the store knows how the task ended (K-38). One that another
    /// task waits for stays.
    pub(super) fn discard_upload(&self, job: &Job) {
        let Some(path) = job.request.upload().map(Path::to_owned) else { return };
        let (store, folder) = (self.0.store.clone(), self.0.storage.clone());
        self.0.going.spawn(async move {
            let discarded = async {
                let named = store.uploads().await?;
                upload::shared::forget(&store, &path, &named).await?;
                blocking(move || upload::discard(&folder, &path, &named)).await
            };
            // Whoever looks for uploads that are left over finds it later.
            if let Err(error) = discarded.await {
                tracing::debug!(%error, "an upload could not be removed yet");
            }
        });
    }

    /// Stops the work on a task that another process goes on with, or the next start.
    pub(super) fn let_go(&self, job: &Job) {
        let message = format!(
            "Another process goes on with this task; knowledge-task-status tells how far it is (task {})",
            job.id
        );
        self.stop_work(job, Outcome::Failed { code: "interrupted".into(), message });
    }

    fn stop_work(&self, job: &Job, told: Outcome) {
        job.cancel.cancel();
        locked(&self.0.queue).forget(job);
        job.end(told);
    }

    /// Sees why the store writes nothing for a task any more, and does what follows.
    pub(super) async fn refused(&self, job: &Arc<Job>) {
        match self.0.store.task(job.id).await {
            Ok(None) => self.drop_task(job.id),
            Ok(Some(task)) => match task.state {
                TaskState::Cancelled => self.drop_task(job.id),
                TaskState::Completed(result) => self.stop_work(job, Outcome::Completed(result)),
                TaskState::Failed { code, message } => self.stop_work(job, Outcome::Failed { code, message }),
                TaskState::Queued | TaskState::Running(_) => self.let_go(job),
            },
            Err(error) => {
                tracing::warn!(task = %job.id, %error, "nobody can tell why a task may not go on");
                self.let_go(job);
            }
        }
    }

    /// Writes how a task ended, however often it takes: a full disk may be emptied. Whether it is written.
    pub(super) async fn end(&self, job: &Arc<Job>, outcome: Outcome) -> bool {
        locked(&self.0.queue).stop_waiting(job);
        let end = TaskEnd { task: job.id, outcome: outcome.clone() };
        let written = self.0.store.end_task(end.clone()).await;
        if let Ok(false) = written {
            self.refused(job).await;
            return false;
        }
        // Whoever hears of the end finds it in the store, unless that cannot be written.
        job.end(outcome);
        let is_written = match written {
            Ok(_) => true,
            Err(error) => {
                tracing::error!(task = %job.id, %error, "the end of a task cannot be written");
                self.write_end(end).await
            }
        };
        locked(&self.0.queue).forget(job);
        is_written
    }

    /// Ends a task that is not begun here.
    pub(super) fn give_up(&self, end: TaskEnd) {
        let work = self.clone();
        self.0.going.spawn(async move {
            if let Err(error) = work.0.store.end_task(end.clone()).await {
                tracing::error!(task = %end.task, %error, "the end of a task cannot be written");
                work.write_end(end).await;
            }
        });
    }

    /// Tries again and again until the end of a task is written, or the process ends. Whether it is written.
    async fn write_end(&self, end: TaskEnd) -> bool {
        loop {
            tokio::select! {
                () = tokio::time::sleep(AGAIN) => {}
                () = self.0.stop.cancelled() => return false,
            }
            match self.0.store.end_task(end.clone()).await {
                Ok(written) => return written,
                Err(error) => tracing::error!(task = %end.task, %error, "the end of a task cannot be written"),
            }
        }
    }
}

pub(super) fn failed(error: &Error) -> Outcome {
    match error {
        Error::Cancelled => Outcome::Cancelled,
        error => {
            if let Error::Internal(inward) = error {
                tracing::error!(%inward, "a task failed");
            }
            Outcome::Failed { code: error.code().to_owned(), message: error.to_string() }
        }
    }
}
