//! Tasks that wait and run: at most so many documents at a time, and every caller in turn.
//!
//! The store knows of each task before its caller does, and how it ended; what only a living process has stands here:
//! how far it is, and the way to cancel it. A task is a list of files, mostly of one; files are what takes turns, so
//! somebody's ten thousand files do not keep another's one waiting.

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

/// All work of one process. Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub struct Work(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    reader: Reader,
    store: Store,
    finder: Finder,
    /// Where uploads lie.
    storage: PathBuf,
    queue: Mutex<Queue>,
    /// There is something new in the queue.
    news: Notify,
    room: Arc<Semaphore>,
    /// How many documents are processed at a time.
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

    /// Takes a task: once this returns, the store has it.
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
        // Spawned, as a write goes on when its caller is gone: a task that nobody here knew of would wait for ever.
        let (answer, answered) = oneshot::channel();
        let (work, taken) = (self.clone(), job.clone());
        self.0.going.spawn(async move {
            let added = work.0.store.add_task(&task).await;
            let (is_added, is_wanted) = (added.is_ok(), !answer.is_closed());
            if is_added && is_wanted {
                work.enqueue(taken.clone());
            }
            // Whoever was to hear of it has given it up. What cannot be given back is done: nobody else takes up a task
            // of a process that lives.
            if answer.send(added).is_err() && is_added && !work.give_back(taken.id).await && !is_wanted {
                work.enqueue(taken);
            }
        });
        answered.await.map_err(|_| Error::Internal("a task was not taken".into()))??;
        Ok(job)
    }

    /// How long it may take until a job is done, with what waits before it.
    pub fn estimate(&self, job: &Job) -> Duration {
        let queue = locked(&self.0.queue);
        let others: Duration = queue.jobs.values().filter(|other| other.id != job.id).map(|other| other.rest()).sum();
        let together = u32::try_from(self.0.together).unwrap_or(u32::MAX).max(1);
        job.guess() + others / together
    }

    /// How long so many files may take, as far as they are known.
    async fn guess<P: AsRef<Path> + Send + 'static>(&self, paths: Vec<P>) -> Result<Guess, Error> {
        let work = self.clone();
        blocking(move || work.0.estimates.guess_all(&paths, work.0.together, &work.0.reader.folders)).await
    }

    fn enqueue(&self, job: Arc<Job>) {
        locked(&self.0.queue).add(job);
        self.0.news.notify_one();
    }

    /// How many jobs of this process wait, and how many it is at.
    pub fn open(&self) -> (usize, usize) {
        let queue = locked(&self.0.queue);
        let running = queue.jobs.values().filter(|job| job.began().is_some()).count();
        (queue.jobs.len() - running, running)
    }

    /// A job of this process that has not ended.
    pub fn job(&self, id: TaskId) -> Option<Arc<Job>> {
        locked(&self.0.queue).jobs.get(&id).cloned()
    }

    /// All of them.
    pub fn jobs(&self) -> HashMap<TaskId, Arc<Job>> {
        locked(&self.0.queue).jobs.clone()
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
}
