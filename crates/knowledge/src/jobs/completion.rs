//! Completion of tasks: success, failure, cancellation, and takeover by another process.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::JobScheduler;
use super::job::Job;
use crate::task::{TaskEnd, TaskId, TaskOutcome, TaskState};
use crate::{Error, run_blocking, upload};
use corbie_util::lock::lock;

/// Delay before the outcome of a task is written again.
const RETRY_DELAY: Duration = Duration::from_secs(2);

impl JobScheduler {
    /// Stops a task whose row is cancelled or deleted, and removes its upload.
    pub fn drop_task(&self, id: TaskId) {
        if let Some(job) = self.job(id) {
            self.stop_work(&job, TaskOutcome::Cancelled);
            self.discard_upload(&job);
        }
    }

    /// Cancels a task whose ID the caller never received. Returns whether it is cancelled or has ended.
    pub(super) async fn cancel_unclaimed(&self, id: TaskId) -> bool {
        match self.0.store.cancel_task(id).await {
            Ok(_) => {
                self.drop_task(id);
                true
            }
            Err(error) => {
                tracing::warn!(task = %id, %error, "cannot cancel an abandoned task");
                false
            }
        }
    }

    /// Removes the upload of a task after the outcome is stored (K-38), unless another task references the upload.
    pub(super) fn discard_upload(&self, job: &Job) {
        let Some(path) = job.request.upload_path().map(Path::to_owned) else { return };
        let (store, folder) = (self.0.store.clone(), self.0.storage.clone());
        self.0.background_tasks.spawn(async move {
            let discarded = async {
                let named = store.upload_refs().await?;
                upload::shared_store::remove_unreferenced(&store, &path, &named).await?;
                run_blocking(move || upload::discard(&folder, &path, &named)).await
            };
            // The periodic cleanup of unreferenced uploads removes it later.
            if let Err(error) = discarded.await {
                tracing::debug!(%error, "cannot remove an upload; retrying later");
            }
        });
    }

    /// Stops a task that another process, or the next start, continues.
    pub(super) fn release(&self, job: &Job) {
        let message = format!(
            "Another process continues this task; use knowledge-task-status to follow its progress (task {})",
            job.id
        );
        self.stop_work(job, TaskOutcome::Failed { code: "interrupted".into(), message });
    }

    fn stop_work(&self, job: &Job, told: TaskOutcome) {
        job.cancel.cancel();
        lock(&self.0.queue).remove(job);
        job.set_outcome(told);
    }

    /// Determines why the store rejected a write for this task, and stops the task accordingly.
    pub(super) async fn resolve_refusal(&self, job: &Arc<Job>) {
        match self.0.store.task(job.id).await {
            Ok(None) => self.drop_task(job.id),
            Ok(Some(task)) => match task.state {
                TaskState::Cancelled => self.drop_task(job.id),
                TaskState::Completed(result) => self.stop_work(job, TaskOutcome::Completed(result)),
                TaskState::Failed { code, message } => self.stop_work(job, TaskOutcome::Failed { code, message }),
                TaskState::Queued | TaskState::Running(_) => self.release(job),
            },
            Err(error) => {
                tracing::warn!(task = %job.id, %error, "cannot read the state of a task that was stopped");
                self.release(job);
            }
        }
    }

    /// Stores the outcome of a task, with unlimited retries because a full disk may be freed. Returns whether it was
    /// stored.
    pub(super) async fn finish(&self, job: &Arc<Job>, outcome: TaskOutcome) -> bool {
        lock(&self.0.queue).dequeue(job);
        let end = TaskEnd { task: job.id, outcome: outcome.clone() };
        let written = self.0.store.end_task(end.clone()).await;
        if let Ok(false) = written {
            self.resolve_refusal(job).await;
            return false;
        }
        // The outcome is announced after it is stored, so that a waiting caller finds it there, unless the write
        // failed.
        job.set_outcome(outcome);
        let is_written = match written {
            Ok(_) => true,
            Err(error) => {
                tracing::error!(task = %job.id, %error, "cannot store the result of a task; retrying");
                self.retry_end(end).await
            }
        };
        lock(&self.0.queue).remove(job);
        is_written
    }

    /// Ends a task that was not started in this process.
    pub(super) fn end_unstarted(&self, end: TaskEnd) {
        let work = self.clone();
        self.0.background_tasks.spawn(async move {
            if let Err(error) = work.0.store.end_task(end.clone()).await {
                tracing::error!(task = %end.task, %error, "cannot store the result of a task; retrying");
                work.retry_end(end).await;
            }
        });
    }

    /// Retries until the outcome is stored or the process shuts down. Returns whether it was stored.
    async fn retry_end(&self, end: TaskEnd) -> bool {
        loop {
            tokio::select! {
                () = tokio::time::sleep(RETRY_DELAY) => {}
                () = self.0.stop.cancelled() => return false,
            }
            match self.0.store.end_task(end.clone()).await {
                Ok(written) => return written,
                Err(error) => tracing::error!(task = %end.task, %error, "cannot store the result of a task; retrying"),
            }
        }
    }
}

pub(super) fn failure_outcome(error: &Error) -> TaskOutcome {
    match error {
        Error::Cancelled => TaskOutcome::Cancelled,
        error => {
            if let Error::Internal(inward) = error {
                tracing::error!(error = %inward, "task failed");
            }
            TaskOutcome::Failed { code: error.code().to_owned(), message: error.to_string() }
        }
    }
}
