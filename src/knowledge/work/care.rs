//! What the tasks of a process have to do with other processes: some are cancelled elsewhere, some were left behind there.

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

/// A task whose process ended so often while it ran is not begun again.
const ATTEMPTS: u32 = 3;
/// How far a task is that takes longer is noted for other processes.
const NOTED: Duration = Duration::from_secs(1);
/// How often is looked for what others have left behind.
const ADOPT: Duration = Duration::from_secs(5);

impl Work {
    /// Looks whether others have cancelled tasks of this process, and lets them know how far those are. However many wait,
    /// it is one question.
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
                // One that is stored as completed is still being made findable, which is not to be cut off.
                Some(Whose::Ended) => {}
                Some(Whose::Others) => self.let_go(&job),
                Some(Whose::Ours) => self.note(&job).await?,
            }
        }
        Ok(())
    }

    /// Tells how far a task is that has begun a while ago.
    async fn note(&self, job: &Job) -> Result<(), Error> {
        let is_telling = job.began().is_some_and(|began| began.elapsed() > NOTED);
        if let Some(progress) = is_telling.then(|| job.news()).flatten() {
            self.0.store.note_progress(job.id, progress).await?;
        }
        Ok(())
    }

    /// Goes on with what others leave behind, for as long as this process takes up work. Aside from everything else that is
    /// looked after: whatever takes long or fails there, nobody's task waits for it.
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

    /// Goes on with what other processes have left behind, when they ended without finishing it.
    pub async fn adopt(&self) -> Result<(), Error> {
        // A store may give some at a time.
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
