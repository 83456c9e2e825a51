//! Fair queue: round-robin over callers, and over the tasks of each caller.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::job::Job;
use crate::file_discovery::FoundFile;
use crate::progress::Progress;
use crate::task::TaskId;
use corbie_util::lock::lock;

#[derive(Debug, Default)]
pub(super) struct JobQueue {
    /// All jobs by ID.
    pub(super) jobs: HashMap<TaskId, Arc<Job>>,
    /// Jobs with waiting files, by owner.
    waiting: HashMap<Arc<str>, VecDeque<Arc<Job>>>,
    /// Round-robin order of the owners.
    rotation: VecDeque<Arc<str>>,
}

/// One unit of scheduled work.
pub(super) enum WorkItem {
    /// Expand the paths of an import into files.
    ListFiles,
    AddFile(FoundFile),
}

impl JobQueue {
    pub(super) fn add(&mut self, job: Arc<Job>) {
        self.jobs.insert(job.id, job.clone());
        self.requeue(job);
    }

    /// Puts a job at the end of its owner's queue.
    pub(super) fn requeue(&mut self, job: Arc<Job>) {
        if !self.jobs.contains_key(&job.id) {
            return;
        }
        let owner = job.owner.clone();
        let waiting = self.waiting.entry(owner.clone()).or_default();
        if waiting.is_empty() {
            self.rotation.push_back(owner);
        }
        waiting.push_back(job);
    }

    /// The next unit of work of the next owner.
    pub(super) fn next(&mut self) -> Option<(Arc<Job>, WorkItem)> {
        let owner = self.rotation.pop_front()?;
        let waiting = self.waiting.get_mut(&owner)?;
        let job = waiting.pop_front()?;
        let (unit, more) = {
            let mut files = lock(&job.files);
            let unit = match files.is_listed {
                true => files.pending.pop_front().map(WorkItem::AddFile),
                false => Some(WorkItem::ListFiles),
            };
            if let Some(WorkItem::AddFile(file)) = &unit {
                files.in_progress.insert(file.path.clone(), Progress::default());
            }
            (unit, !files.pending.is_empty())
        };
        if more {
            waiting.push_back(job.clone());
        }
        match waiting.is_empty() {
            true => drop(self.waiting.remove(&owner)),
            false => self.rotation.push_back(owner),
        }
        match unit {
            Some(unit) => Some((job, unit)),
            None => self.next(),
        }
    }

    pub(super) fn dequeue(&mut self, job: &Job) {
        if let Some(waiting) = self.waiting.get_mut(&job.owner) {
            waiting.retain(|other| other.id != job.id);
            if waiting.is_empty() {
                self.waiting.remove(&job.owner);
                self.rotation.retain(|owner| *owner != job.owner);
            }
        }
    }

    pub(super) fn remove(&mut self, job: &Job) {
        self.dequeue(job);
        self.jobs.remove(&job.id);
    }
}
