//! Fair queue: round-robin over callers, and over the tasks of each caller.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::job::Job;
use crate::knowledge::far::Far;
use crate::knowledge::folder::FoundFile;
use crate::knowledge::task::TaskId;
use crate::locked::locked;

#[derive(Debug, Default)]
pub(super) struct Queue {
    /// All jobs by ID.
    pub(super) jobs: HashMap<TaskId, Arc<Job>>,
    /// Jobs with waiting files, by owner.
    waiting: HashMap<Arc<str>, VecDeque<Arc<Job>>>,
    /// Round-robin order of the owners.
    turns: VecDeque<Arc<str>>,
}

/// One unit of scheduled work.
pub(super) enum Unit {
    /// Expand the paths of an import into files.
    List,
    File(FoundFile),
}

impl Queue {
    pub(super) fn add(&mut self, job: Arc<Job>) {
        self.jobs.insert(job.id, job.clone());
        self.wait(job);
    }

    /// Puts a job at the end of its owner's queue.
    pub(super) fn wait(&mut self, job: Arc<Job>) {
        if !self.jobs.contains_key(&job.id) {
            return;
        }
        let owner = job.owner.clone();
        let waiting = self.waiting.entry(owner.clone()).or_default();
        if waiting.is_empty() {
            self.turns.push_back(owner);
        }
        waiting.push_back(job);
    }

    /// The next unit of work of the next owner.
    pub(super) fn next(&mut self) -> Option<(Arc<Job>, Unit)> {
        let owner = self.turns.pop_front()?;
        let waiting = self.waiting.get_mut(&owner)?;
        let job = waiting.pop_front()?;
        let (unit, more) = {
            let mut files = locked(&job.files);
            let unit = match files.listed {
                true => files.waiting.pop_front().map(Unit::File),
                false => Some(Unit::List),
            };
            if let Some(Unit::File(file)) = &unit {
                files.going.insert(file.path.clone(), Far::default());
            }
            (unit, !files.waiting.is_empty())
        };
        if more {
            waiting.push_back(job.clone());
        }
        match waiting.is_empty() {
            true => drop(self.waiting.remove(&owner)),
            false => self.turns.push_back(owner),
        }
        match unit {
            Some(unit) => Some((job, unit)),
            None => self.next(),
        }
    }

    pub(super) fn stop_waiting(&mut self, job: &Job) {
        if let Some(waiting) = self.waiting.get_mut(&job.owner) {
            waiting.retain(|other| other.id != job.id);
            if waiting.is_empty() {
                self.waiting.remove(&job.owner);
                self.turns.retain(|owner| *owner != job.owner);
            }
        }
    }

    pub(super) fn forget(&mut self, job: &Job) {
        self.stop_waiting(job);
        self.jobs.remove(&job.id);
    }
}
