//! Job scheduler: bounded concurrency and a fair queue per caller.
//!
//! A task is in the store before its caller receives the ID, and so is its outcome. This module holds the state that
//! exists only in a running process: progress and cancellation. A task is a list of files, usually of one. The unit of
//! scheduling is a file, so one caller's ten thousand files do not delay another caller's single file.

mod adoption;
mod completion;
mod file_progress;
mod job;
mod queue;
mod work_item;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use job::{Job, JobRequest};
use queue::JobQueue;

use super::backend::StorageBackend;
use super::document::{BaseName, DocumentId};
use super::estimate::{DurationEstimator, Estimate};
use super::ingest::Ingester;
use super::retriever::Retriever;
use super::store::Store;
use super::task::{NewTask, TaskId};
use super::{Error, path_policy, run_blocking};
use corbie_util::lock::lock;

/// The scheduler of this process. Clones share the same state.
#[derive(Debug, Clone)]
pub struct JobScheduler(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ingester: Ingester,
    store: Store,
    retriever: Retriever,
    /// Folder of uploads.
    storage: PathBuf,
    queue: Mutex<JobQueue>,
    /// Notified when a job is enqueued.
    work_available: Notify,
    permits: Arc<Semaphore>,
    /// Maximum number of documents processed concurrently.
    max_concurrent: usize,
    background_tasks: TaskTracker,
    stop: CancellationToken,
    estimator: DurationEstimator,
}

impl JobScheduler {
    pub fn new(reader: Ingester, kept: StorageBackend, together: usize, stop: CancellationToken) -> JobScheduler {
        JobScheduler(Arc::new(Inner {
            ingester: reader,
            store: kept.store,
            retriever: kept.retriever,
            storage: kept.storage,
            queue: Mutex::default(),
            work_available: Notify::new(),
            permits: Arc::new(Semaphore::new(together)),
            max_concurrent: together,
            background_tasks: TaskTracker::new(),
            stop,
            estimator: DurationEstimator::default(),
        }))
    }

    /// Submits a task. When this returns, the store has it.
    pub async fn submit(
        &self,
        base: BaseName,
        owner: Arc<str>,
        request: JobRequest,
        facts: Option<&path_policy::FileInfo>,
    ) -> Result<Arc<Job>, Error> {
        let guess = match (&request, facts) {
            (JobRequest::Import { paths, .. }, _) => self.estimate_paths(paths.clone()).await?,
            (_, facts) => Estimate::single(facts.map(|facts| self.0.estimator.estimate(facts.format, facts.size))),
        };
        let job = Arc::new(Job::new(TaskId::random(), base, owner, request, DocumentId::random(), guess));
        let task = NewTask {
            id: job.id,
            base: job.base.clone(),
            owner: job.owner.to_string(),
            kind: job.request.kind(),
            request: serde_json::to_value(&job.request).map_err(|error| Error::Internal(error.to_string()))?,
            document: facts.map(|_| job.document),
            filename: facts.map(|facts| facts.filename.clone()).or_else(|| job.request.import_label()),
            format: facts.map(|facts| facts.format.to_string()),
            size_bytes: facts.map(|facts| facts.size),
        };
        // Spawned because the write continues when the caller disconnects. Otherwise the store would have a task that
        // no process runs.
        let (answer, answered) = oneshot::channel();
        let (work, taken) = (self.clone(), job.clone());
        self.0.background_tasks.spawn(async move {
            let added = work.0.store.add_task(&task).await;
            let (is_added, is_wanted) = (added.is_ok(), !answer.is_closed());
            if is_added && is_wanted {
                work.enqueue(taken.clone());
            }
            // The caller disconnected. A task that cannot be cancelled runs: other processes do not adopt tasks of a
            // live process.
            if answer.send(added).is_err() && is_added && !work.cancel_unclaimed(taken.id).await && !is_wanted {
                work.enqueue(taken);
            }
        });
        answered.await.map_err(|_| Error::Internal("task rejected".into()))??;
        Ok(job)
    }

    /// Estimated time until a job completes, including the jobs ahead of it.
    pub fn time_to_completion(&self, job: &Job) -> Duration {
        let queue = lock(&self.0.queue);
        let others: Duration =
            queue.jobs.values().filter(|other| other.id != job.id).map(|other| other.remaining()).sum();
        let together = u32::try_from(self.0.max_concurrent).unwrap_or(u32::MAX).max(1);
        job.estimate() + others / together
    }

    /// Estimated duration of these files, as far as their sizes can be read.
    async fn estimate_paths<P: AsRef<Path> + Send + 'static>(&self, paths: Vec<P>) -> Result<Estimate, Error> {
        let work = self.clone();
        run_blocking(move || {
            work.0.estimator.estimate_all(&paths, work.0.max_concurrent, &work.0.ingester.listing_policy)
        })
        .await
    }

    fn enqueue(&self, job: Arc<Job>) {
        lock(&self.0.queue).add(job);
        self.0.work_available.notify_one();
    }

    /// Number of waiting and of running jobs in this process.
    pub fn job_counts(&self) -> (usize, usize) {
        let queue = lock(&self.0.queue);
        let running = queue.jobs.values().filter(|job| job.started_at().is_some()).count();
        (queue.jobs.len() - running, running)
    }

    /// A job of this process that has not ended.
    pub fn job(&self, id: TaskId) -> Option<Arc<Job>> {
        lock(&self.0.queue).jobs.get(&id).cloned()
    }

    /// All jobs of this process that have not ended.
    pub fn jobs(&self) -> HashMap<TaskId, Arc<Job>> {
        lock(&self.0.queue).jobs.clone()
    }

    /// Runs until shutdown. Work in progress continues until [`JobScheduler::wait_finished`] or the end of the process.
    pub async fn run(self) {
        loop {
            let room = tokio::select! {
                room = self.0.permits.clone().acquire_owned() => room,
                () = self.0.stop.cancelled() => return,
            };
            let Ok(room) = room else { return };
            let (job, unit) = loop {
                let heard = self.0.work_available.notified();
                if let Some(next) = lock(&self.0.queue).next() {
                    break next;
                }
                tokio::select! {
                    () = heard => {}
                    () = self.0.stop.cancelled() => return,
                }
            };
            let work = self.clone();
            self.0.background_tasks.spawn(async move {
                work.run_item(&job, unit).await;
                drop(room);
            });
        }
    }

    /// Waits for the work in progress.
    pub async fn wait_finished(&self) {
        self.0.background_tasks.close();
        self.0.background_tasks.wait().await;
    }
}
