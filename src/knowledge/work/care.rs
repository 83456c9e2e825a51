//! Adoption of orphaned tasks, and cancellation requested by other processes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Work;
use super::job::Job;
use crate::knowledge::estimate::Guess;
use crate::knowledge::store::Whose;
use crate::knowledge::task::{TaskEnd, TaskId};
use crate::knowledge::{Error, source};
use crate::locked::locked;

/// A task is not restarted after its process has died this many times while running it.
const ATTEMPTS: u32 = 3;
/// Progress is stored for other processes once a task has run this long.
const NOTED: Duration = Duration::from_secs(1);
/// Interval between two scans for orphaned tasks.
const ADOPT: Duration = Duration::from_secs(5);

impl Work {
    /// Applies cancellations by other processes to this process's tasks, and stores the progress of the remaining
    /// tasks. It takes one query, regardless of the number of tasks.
    pub async fn look_after(&self) -> Result<(), Error> {
        let ids: Vec<TaskId> = locked(&self.0.queue).jobs.keys().copied().collect();
        if ids.is_empty() {
            return Ok(());
        }
        let whose = self.0.store.whose_tasks(&ids).await?;
        for id in ids {
            let Some(job) = self.job(id) else { continue };
            match whose.get(&id) {
                None | Some(Whose::Cancelled) => self.drop_task(id),
                // The task is stored as completed, but its document may still be entering the index. Cancelling now
                // would interrupt that.
                Some(Whose::Ended) => {}
                Some(Whose::Others) => self.let_go(&job),
                Some(Whose::Ours) => self.note(&job).await?,
            }
        }
        Ok(())
    }

    /// Stores the progress of a task that has been running for a while.
    async fn note(&self, job: &Job) -> Result<(), Error> {
        let is_telling = job.began().is_some_and(|began| began.elapsed() > NOTED);
        if let Some(progress) = is_telling.then(|| job.news()).flatten() {
            self.0.store.note_progress(job.id, progress).await?;
        }
        Ok(())
    }

    /// Adopts orphaned tasks until shutdown. Runs separately from the other maintenance so that a slow or failing
    /// adoption delays no other task.
    pub async fn keep_adopting(self) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(ADOPT) => {}
                () = self.0.stop.cancelled() => return,
            }
            if let Err(error) = self.adopt().await {
                tracing::debug!(%error, "nobody can tell what others have left behind");
            }
        }
    }

    /// Resumes tasks of processes that ended without finishing them.
    pub async fn adopt(&self) -> Result<(), Error> {
        // A store may return them in batches.
        loop {
            let orphans = self.0.store.orphaned_tasks().await?;
            if orphans.is_empty() {
                return Ok(());
            }
            for task in orphans {
                let (id, attempts) = (task.id, task.attempts);
                let guess = match (task.size_bytes, task.filename.as_deref().map(Path::new).map(source::format_of)) {
                    (Some(size), Some(Ok(format))) => Some(self.0.estimates.guess(format, size)),
                    _ => None,
                };
                match Job::of(task, Guess::one(guess)) {
                    Some(job) if attempts < ATTEMPTS => self.enqueue(Arc::new(job)),
                    Some(_) => {
                        let message = format!(
                            "The program ended {ATTEMPTS} times while this was processed; add it again to try once more"
                        );
                        self.give_up(TaskEnd::failed(id, "interrupted", &message));
                    }
                    None => {
                        let message = "The task was written by another version of the program; add the file again";
                        self.give_up(TaskEnd::failed(id, "interrupted", message));
                    }
                }
            }
        }
    }
}
