//! Job scheduler: bounded concurrency and a fair queue per caller.
//!
//! A task is in the store before its caller receives the ID, and so is its outcome. This module holds the state that
//! exists only in a running process: progress and cancellation. A task is a list of files, usually of one. The unit of
//! scheduling is a file, so one caller's ten thousand files do not delay another caller's single file.

mod care;
mod end;
mod files;
mod job;
mod queue;
mod unit;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use job::{Job, Request};
use queue::Queue;

use super::document::{BaseName, DocumentId};
use super::estimate::{Estimates, Guess};
use super::finder::Finder;
use super::ingest::Reader;
use super::kept::Kept;
use super::store::Store;
use super::task::{NewTask, TaskId};
use super::{Error, blocking, source};
use crate::locked::locked;

/// The scheduler of this process. Clones share the same state.
#[derive(Debug, Clone)]
pub struct Work(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    reader: Reader,
    store: Store,
    finder: Finder,
    /// Folder of uploads.
    storage: PathBuf,
    queue: Mutex<Queue>,
    /// Notified when a job is enqueued.
    news: Notify,
    room: Arc<Semaphore>,
    /// Maximum number of documents processed concurrently.
    together: usize,
    going: TaskTracker,
    stop: CancellationToken,
    estimates: Estimates,
}

impl Work {
    pub fn new(reader: Reader, kept: Kept, together: usize, stop: CancellationToken) -> Work {
        Work(Arc::new(Shared {
            reader,
            store: kept.store,
            finder: kept.finder,
            storage: kept.storage,
            queue: Mutex::default(),
            news: Notify::new(),
            room: Arc::new(Semaphore::new(together)),
            together,
            going: TaskTracker::new(),
            stop,
            estimates: Estimates::default(),
        }))
    }

    /// Submits a task. When this returns, the store has it.
    pub async fn submit(
        &self,
        base: BaseName,
        owner: Arc<str>,
        request: Request,
        facts: Option<&source::Facts>,
    ) -> Result<Arc<Job>, Error> {
        let guess = match (&request, facts) {
            (Request::Import { paths, .. }, _) => self.guess(paths.clone()).await?,
            (_, facts) => Guess::one(facts.map(|facts| self.0.estimates.guess(facts.format, facts.size))),
        };
        let job = Arc::new(Job::new(TaskId::random(), base, owner, request, DocumentId::random(), guess));
        let task = NewTask {
            id: job.id,
            base: job.base.clone(),
            owner: job.owner.to_string(),
            kind: job.request.kind(),
            request: serde_json::to_value(&job.request).map_err(|error| Error::Internal(error.to_string()))?,
            document: facts.map(|_| job.document),
            filename: facts.map(|facts| facts.filename.clone()).or_else(|| job.request.imported()),
            format: facts.map(|facts| facts.format.to_string()),
            size_bytes: facts.map(|facts| facts.size),
        };
        // Spawned because the write continues when the caller disconnects. Otherwise the store would have a task that
        // no process runs.
        let (answer, answered) = oneshot::channel();
        let (work, taken) = (self.clone(), job.clone());
        self.0.going.spawn(async move {
            let added = work.0.store.add_task(&task).await;
            let (is_added, is_wanted) = (added.is_ok(), !answer.is_closed());
            if is_added && is_wanted {
                work.enqueue(taken.clone());
            }
            // The caller disconnected. A task that cannot be cancelled runs: other processes do not adopt tasks of a
            // live process.
            if answer.send(added).is_err() && is_added && !work.give_back(taken.id).await && !is_wanted {
                work.enqueue(taken);
            }
        });
        answered.await.map_err(|_| Error::Internal("a task was not taken".into()))??;
        Ok(job)
    }

    /// Estimated time until a job completes, including the jobs ahead of it.
    pub fn estimate(&self, job: &Job) -> Duration {
        let queue = locked(&self.0.queue);
        let others: Duration = queue.jobs.values().filter(|other| other.id != job.id).map(|other| other.rest()).sum();
        let together = u32::try_from(self.0.together).unwrap_or(u32::MAX).max(1);
        job.guess() + others / together
    }

    /// Estimated duration of these files, as far as their sizes can be read.
    async fn guess<P: AsRef<Path> + Send + 'static>(&self, paths: Vec<P>) -> Result<Guess, Error> {
        let work = self.clone();
        blocking(move || work.0.estimates.guess_all(&paths, work.0.together, &work.0.reader.folders)).await
    }

    fn enqueue(&self, job: Arc<Job>) {
        locked(&self.0.queue).add(job);
        self.0.news.notify_one();
    }

    /// Number of waiting and of running jobs in this process.
    pub fn open(&self) -> (usize, usize) {
        let queue = locked(&self.0.queue);
        let running = queue.jobs.values().filter(|job| job.began().is_some()).count();
        (queue.jobs.len() - running, running)
    }

    /// A job of this process that has not ended.
    pub fn job(&self, id: TaskId) -> Option<Arc<Job>> {
        locked(&self.0.queue).jobs.get(&id).cloned()
    }

    /// All jobs of this process that have not ended.
    pub fn jobs(&self) -> HashMap<TaskId, Arc<Job>> {
        locked(&self.0.queue).jobs.clone()
    }

    /// Runs until shutdown. Work in progress continues until [`Work::finished`] or the end of the process.
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

    /// Waits for the work in progress.
    pub async fn finished(&self) {
        self.0.going.close();
        self.0.going.wait().await;
    }
}
