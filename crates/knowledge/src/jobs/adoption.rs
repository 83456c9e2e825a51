//! Adoption of orphaned tasks, and cancellation requested by other processes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::JobScheduler;
use super::job::Job;
use crate::estimate::Estimate;
use crate::store::TaskOwnership;
use crate::task::{TaskEnd, TaskId};
use crate::{Error, path_policy};
use corbie_util::lock::lock;

/// A task is not restarted after its process has died this many times while running it.
const MAX_ATTEMPTS: u32 = 3;
/// Progress is stored for other processes once a task has run this long.
const PROGRESS_DELAY: Duration = Duration::from_secs(1);
/// Interval between two scans for orphaned tasks.
const ADOPT_INTERVAL: Duration = Duration::from_secs(5);

impl JobScheduler {
    /// Applies cancellations by other processes to this process's tasks, and stores the progress of the remaining
    /// tasks. It takes one query, regardless of the number of tasks.
    pub async fn sync_with_store(&self) -> Result<(), Error> {
        let ids: Vec<TaskId> = lock(&self.0.queue).jobs.keys().copied().collect();
        if ids.is_empty() {
            return Ok(());
        }
        let whose = self.0.store.task_ownership(&ids).await?;
        for id in ids {
            let Some(job) = self.job(id) else { continue };
            match whose.get(&id) {
                None | Some(TaskOwnership::Cancelled) => self.drop_task(id),
                // The task is stored as completed, but its document may still be entering the index. Cancelling now
                // would interrupt that.
                Some(TaskOwnership::Ended) => {}
                Some(TaskOwnership::Other) => self.release(&job),
                Some(TaskOwnership::Own) => self.publish_progress(&job).await?,
            }
        }
        Ok(())
    }

    /// Stores the progress of a task that has been running for a while.
    async fn publish_progress(&self, job: &Job) -> Result<(), Error> {
        let is_telling = job.started_at().is_some_and(|began| began.elapsed() > PROGRESS_DELAY);
        if let Some(progress) = is_telling.then(|| job.unpublished_progress()).flatten() {
            self.0.store.record_progress(job.id, progress).await?;
        }
        Ok(())
    }

    /// Adopts orphaned tasks until shutdown. Runs separately from the other maintenance so that a slow or failing
    /// adoption delays no other task.
    pub async fn adopt_loop(self) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(ADOPT_INTERVAL) => {}
                () = self.0.stop.cancelled() => return,
            }
            if let Err(error) = self.adopt().await {
                tracing::debug!(%error, "cannot look for orphaned tasks");
            }
        }
    }

    /// Resumes tasks of processes that ended without finishing them.
    pub async fn adopt(&self) -> Result<(), Error> {
        // A store may return them in batches.
        loop {
            let orphans = self.0.store.adopt_orphaned_tasks().await?;
            if orphans.is_empty() {
                return Ok(());
            }
            for task in orphans {
                let (id, attempts) = (task.id, task.attempts);
                let guess = match (task.size_bytes, task.filename.as_deref().map(Path::new).map(path_policy::format_of))
                {
                    (Some(size), Some(Ok(format))) => Some(self.0.estimator.estimate(format, size)),
                    _ => None,
                };
                match Job::from_task(task, Estimate::single(guess)) {
                    Some(job) if attempts < MAX_ATTEMPTS => self.enqueue(Arc::new(job)),
                    Some(_) => {
                        let message = format!(
                            "The process terminated {MAX_ATTEMPTS} times while processing this file; add it again to \
                             retry"
                        );
                        self.end_unstarted(TaskEnd::failed(id, "interrupted", &message));
                    }
                    None => {
                        let message = "The task was created by an incompatible version; add the file again";
                        self.end_unstarted(TaskEnd::failed(id, "interrupted", message));
                    }
                }
            }
        }
    }
}
