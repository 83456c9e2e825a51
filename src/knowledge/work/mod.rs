//! Tasks that wait and run: at most so many documents at a time, and every caller in turn.
//!
//! The store knows of each task before its caller does, and how it ended; what only a living process has stands here:
//! how far it is, and the way to cancel it. A task is a list of files, mostly of one; files are what takes turns, so
//! somebody's ten thousand files do not keep another's one waiting.

mod files;
mod job;
mod queue;

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use job::{Job, Request};
use queue::{Queue, Unit};

use super::document::{BaseName, DocumentId, Origin};
use super::estimate::Estimates;
use super::far::Far;
use super::ingest::{Became, Reader, Target};
use super::library::Library;
use super::store::Store;
use super::task::{NewTask, Outcome, Progress, TaskEnd, TaskId, TaskState};
use super::{Error, blocking, folder, source};
use crate::locked::locked;

/// All work of one process. Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub struct Work(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    reader: Reader,
    store: Store,
    library: Library,
    queue: Mutex<Queue>,
    /// There is something new in the queue.
    news: Notify,
    room: Arc<Semaphore>,
    going: TaskTracker,
    stop: CancellationToken,
    estimates: Estimates,
}

/// A task whose process ended so often while it ran is not begun again.
const ATTEMPTS: u32 = 3;
/// How far a task is that takes longer is noted for other processes.
const NOTED: Duration = Duration::from_secs(1);
/// How long to wait before the end of a task is written once more.
const AGAIN: Duration = Duration::from_secs(2);
impl Work {
    pub fn new(reader: Reader, store: Store, library: Library, together: usize, stop: CancellationToken) -> Work {
        Work(Arc::new(Shared {
            reader,
            store,
            library,
            queue: Mutex::default(),
            news: Notify::new(),
            room: Arc::new(Semaphore::new(together)),
            going: TaskTracker::new(),
            stop,
            estimates: Estimates::default(),
        }))
    }

    /// Takes a task: once this returns, the store has it.
    pub async fn submit(
        &self,
        base: BaseName,
        owner: Arc<str>,
        request: Request,
        facts: Option<&source::Facts>,
    ) -> Result<Arc<Job>, Error> {
        let guess = facts.map_or(Duration::from_secs(5), |facts| self.0.estimates.guess(facts.format, facts.size));
        let job = Arc::new(Job::new(TaskId::random(), base, owner, request, DocumentId::random(), guess));
        let task = NewTask {
            id: job.id,
            base: job.base.clone(),
            owner: job.owner.to_string(),
            kind: job.request.kind(),
            request: serde_json::to_value(&job.request).map_err(|error| Error::Internal(error.to_string()))?,
            document: facts.map(|_| job.document),
            filename: facts.map(|facts| facts.filename.clone()),
            format: facts.map(|facts| facts.format.to_string()),
            size_bytes: facts.map(|facts| facts.size),
        };
        self.0.store.add_task(&task).await?;
        self.enqueue(job.clone());
        Ok(job)
    }

    /// How long it may take until a job is done, with what waits before it.
    pub fn estimate(&self, job: &Job) -> Duration {
        let queue = locked(&self.0.queue);
        let others: Duration = queue.jobs.values().filter(|other| other.id != job.id).map(|other| other.guess).sum();
        let together = u32::try_from(self.0.room.available_permits().max(1)).unwrap_or(1);
        job.guess + others / together.max(1)
    }

    /// Goes on with what other processes have left behind, when they ended without finishing it.
    pub async fn adopt(&self) -> Result<usize, Error> {
        let orphans = self.0.store.orphaned_tasks().await?;
        let count = orphans.len();
        for task in orphans {
            let (id, attempts) = (task.id, task.attempts);
            match Job::of(task) {
                Some(job) if attempts < ATTEMPTS => self.enqueue(Arc::new(job)),
                Some(_) => {
                    let message = format!(
                        "The program ended {ATTEMPTS} times while this was processed; add it again to try once more"
                    );
                    self.0.store.end_task(TaskEnd::failed(id, "interrupted", &message)).await?;
                }
                None => {
                    let message = "The task was written by another version of the program; add the file again";
                    self.0.store.end_task(TaskEnd::failed(id, "interrupted", message)).await?;
                }
            }
        }
        Ok(count)
    }

    fn enqueue(&self, job: Arc<Job>) {
        locked(&self.0.queue).add(job);
        self.0.news.notify_one();
    }

    /// A job of this process that has not ended.
    pub fn job(&self, id: TaskId) -> Option<Arc<Job>> {
        locked(&self.0.queue).jobs.get(&id).cloned()
    }

    /// How many tasks of this process are being worked on, and how many wait.
    pub fn waiting(&self) -> (usize, usize) {
        let queue = locked(&self.0.queue);
        let running = queue.jobs.values().filter(|job| job.began().is_some()).count();
        (running, queue.jobs.len() - running)
    }

    /// Stops the work on a task whose row says that it is cancelled, or is gone.
    pub fn drop_task(&self, id: TaskId) {
        if let Some(job) = self.job(id) {
            job.cancel.cancel();
            locked(&self.0.queue).forget(&job);
            job.end(Outcome::Cancelled);
        }
    }

    /// Looks whether others have cancelled tasks of this process, and lets them know how far those are.
    pub async fn look_after(&self) -> Result<(), Error> {
        let ids: Vec<TaskId> = locked(&self.0.queue).jobs.keys().copied().collect();
        for id in ids {
            // One that is stored as completed is still being made findable, which is not to be cut off.
            if self.0.store.task(id).await?.is_none_or(|task| task.state == TaskState::Cancelled) {
                self.drop_task(id);
            } else if let Some(job) =
                self.job(id).filter(|job| job.began().is_some_and(|began| began.elapsed() > NOTED))
            {
                let Far { step, completed, total, .. } = job.far().borrow().clone();
                self.0.store.note_progress(id, Progress { step, done: completed, total }).await?;
            }
        }
        Ok(())
    }

    /// Works until it is stopped. What is begun by then goes on until [`Work::finished`] or the end of the process.
    pub async fn run(self) {
        loop {
            let room = tokio::select! {
                room = self.0.room.clone().acquire_owned() => room,
                () = self.0.stop.cancelled() => return,
            };
            let Ok(room) = room else { return };
            let (job, unit) = loop {
                let heard = self.0.news.notified();
                if let Some(next) = locked(&self.0.queue).next() {
                    break next;
                }
                tokio::select! {
                    () = heard => {}
                    () = self.0.stop.cancelled() => return,
                }
            };
            let work = self.clone();
            self.0.going.spawn(async move {
                work.unit(&job, unit).await;
                drop(room);
            });
        }
    }

    /// Waits for what is going on.
    pub async fn finished(&self) {
        self.0.going.close();
        self.0.going.wait().await;
    }

    async fn unit(&self, job: &Arc<Job>, unit: Unit) {
        if !job.begin() {
            match self.0.store.start_task(job.id).await {
                Ok(true) => {}
                Ok(false) => return self.drop_task(job.id),
                Err(error) => return self.end(job, failed(&error.into())).await,
            }
        }
        let cancelled = job.cancel.clone().cancelled_owned();
        let work = AssertUnwindSafe(async {
            match unit {
                Unit::List => self.list(job).await,
                Unit::File(path) => self.file(job, path).await,
            }
        });
        let ended = tokio::select! {
            ended = work.catch_unwind() => ended,
            () = cancelled => return,
        };
        match ended {
            Ok(None) => {}
            Ok(Some(outcome)) => self.end(job, outcome).await,
            Err(_) => {
                tracing::error!(task = %job.id, "the work on a task panicked");
                self.end(job, failed(&Error::Internal("it panicked".into()))).await;
            }
        }
    }

    /// Sees which files an import has.
    async fn list(&self, job: &Arc<Job>) -> Option<Outcome> {
        let Request::Import { paths, recursive, .. } = &job.request else { return None };
        let (paths, recursive, rules) = (paths.clone(), *recursive, self.0.reader.rules.clone());
        let found = blocking(move || {
            let mut all = folder::Found::default();
            for path in paths {
                match folder::files(&path, recursive, &rules) {
                    Ok(found) => {
                        all.files.extend(found.files);
                        all.failed.extend(found.failed);
                    }
                    Err(error) => all.failed.push((PathBuf::from(path), error)),
                }
            }
            // Two patterns may mean the same file.
            let mut seen = std::collections::HashSet::new();
            all.files.retain(|file| seen.insert(file.clone()));
            all
        });
        let found = match found.await {
            Ok(found) => found,
            Err(error) => return Some(failed(&error)),
        };
        let more = {
            let mut files = locked(&job.files);
            files.listed = true;
            files.count = found.files.len() + found.failed.len();
            for (path, error) in found.failed {
                files.fail(&path, &error);
            }
            files.waiting = found.files.into();
            !files.waiting.is_empty()
        };
        if more {
            locked(&self.0.queue).wait(job.clone());
            self.0.news.notify_one();
            return None;
        }
        Some(Outcome::Completed(locked(&job.files).summary()))
    }

    /// Adds one file. The last file of a task ends it.
    async fn file(&self, job: &Arc<Job>, path: PathBuf) -> Option<Outcome> {
        let (wish, ends) = job.request.wish(&path);
        let target = Target {
            store: &self.0.store,
            library: &self.0.library,
            base: &job.base,
            id: if ends { job.document } else { DocumentId::random() },
            task: job.id,
            ends,
        };
        let began = Instant::now();
        let added = self.0.reader.add(&wish, target, |far| job.tell(&path, far)).await;
        if let (Ok(added), Ok(metadata)) = (&added, tokio::fs::metadata(&path).await)
            && added.became != Became::Unchanged
            && let Ok(format) = source::format_of(&path)
        {
            self.0.estimates.learn(format, metadata.len(), began.elapsed());
        }
        if wish.origin == Origin::Uploaded && !matches!(added, Err(Error::Cancelled)) {
            // An upload has served its purpose, whatever came of it (K-38).
            let _ = tokio::fs::remove_file(&path).await;
            if let Some(folder) = path.parent() {
                let _ = tokio::fs::remove_dir(folder).await;
            }
        }
        match (added, ends) {
            // The store has the end of the task already, with the document.
            (Ok(added), true) => {
                locked(&self.0.queue).forget(job);
                job.end(Outcome::Completed(added.result()));
                None
            }
            (Err(error), true) => Some(failed(&error)),
            (Err(Error::Cancelled), false) => Some(Outcome::Cancelled),
            (added, false) => {
                let mut files = locked(&job.files);
                files.going.remove(&path);
                match added {
                    Ok(added) => files.succeed(&path, &added),
                    Err(error) => files.fail(&path, &error),
                }
                job.far.send_modify(|far| far.advance(files.far("Adding documents")));
                let is_done = files.waiting.is_empty() && files.going.is_empty();
                is_done.then(|| Outcome::Completed(files.summary()))
            }
        }
    }

    /// Writes how a task ended, however often it takes: a full disk may be emptied.
    async fn end(&self, job: &Arc<Job>, outcome: Outcome) {
        locked(&self.0.queue).stop_waiting(job);
        let end = TaskEnd { task: job.id, outcome: outcome.clone() };
        let mut written = self.0.store.end_task(end.clone()).await;
        // Whoever hears of the end finds it in the store, unless that cannot be written.
        job.end(outcome);
        while let Err(error) = written {
            tracing::error!(task = %job.id, %error, "the end of a task cannot be written");
            tokio::select! {
                () = tokio::time::sleep(AGAIN) => {}
                () = self.0.stop.cancelled() => break,
            }
            written = self.0.store.end_task(end.clone()).await;
        }
        locked(&self.0.queue).forget(job);
    }
}

fn failed(error: &Error) -> Outcome {
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
