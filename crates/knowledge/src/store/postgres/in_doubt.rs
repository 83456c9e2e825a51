//! In-doubt task writes: the acknowledgement was lost for longer than the retry timeout.
//!
//! If a task row belongs to this instance but the instance does not know it, the task would wait forever, because no
//! other instance adopts tasks of a live instance. In-doubt tasks are therefore tracked until their state is resolved.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::document::Millis;
use crate::store::Error;
use crate::task::{TaskId, TaskRecord};
use corbie_util::lock::lock;

#[derive(Debug, Default)]
pub(super) struct InDoubtTasks {
    /// Tasks that may have started, with the start time.
    started: Mutex<HashMap<TaskId, Millis>>,
    /// Tasks that this instance may have added or adopted.
    acquired: Mutex<HashMap<Uuid, Instant>>,
}

/// Maximum number of entries per map. Callers stop sending writes when the database is unavailable.
const MAX_ENTRIES: usize = 10_000;
/// How long to check whether an in-doubt task is ours.
const RETENTION: Duration = Duration::from_secs(3600);

impl InDoubtTasks {
    /// Start time of a task that may have started.
    pub(super) fn start_time(&self, id: TaskId) -> Option<Millis> {
        lock(&self.started).get(&id).copied()
    }

    /// Records that a task may have started, or removes the entry if the outcome is certain.
    pub(super) fn record_start<T>(&self, id: TaskId, at: Millis, told: &Result<T, Error>) {
        let mut begun = lock(&self.started);
        match is_in_doubt(told) && begun.len() < MAX_ENTRIES {
            true => drop(begun.insert(id, at)),
            false => drop(begun.remove(&id)),
        }
    }

    pub(super) fn acquired(&self) -> Vec<Uuid> {
        lock(&self.acquired).keys().copied().collect()
    }

    /// Records that this instance may have acquired a task.
    pub(super) fn record_acquired(&self, id: Uuid) {
        let mut taken = lock(&self.acquired);
        if taken.len() < MAX_ENTRIES {
            taken.insert(id, Instant::now());
        }
    }

    /// Removes the tasks that are now known to be ours. The other requested tasks stay in doubt, because their
    /// transactions may still be running.
    pub(super) fn resolve(&self, asked: &[Uuid], known: &[TaskRecord]) {
        let mut taken = lock(&self.acquired);
        for id in asked {
            if taken.len() < MAX_ENTRIES {
                taken.entry(*id).or_insert_with(Instant::now);
            }
        }
        for task in known {
            taken.remove(&task.id.0);
        }
        // By then every transaction has ended, so a missing task was never written.
        taken.retain(|_, since| since.elapsed() < RETENTION);
    }
}

/// Whether the outcome of a write is unknown.
fn is_in_doubt<T>(told: &Result<T, Error>) -> bool {
    matches!(told, Err(Error::Unavailable(_) | Error::Busy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_doubt_is_kept_in_mind_until_it_is_known() {
        let (doubt, id) = (InDoubtTasks::default(), TaskId::random());
        let away = || Err::<(), _>(Error::Unavailable("gone".into()));
        doubt.record_start(id, 7, &away());
        assert_eq!(doubt.start_time(id), Some(7));
        doubt.record_start(id, 7, &Ok(true));
        assert_eq!(doubt.start_time(id), None);
        doubt.record_acquired(id.0);
        let other = Uuid::new_v4();
        doubt.resolve(&[id.0, other], &[]);
        assert_eq!(doubt.acquired().len(), 2, "nobody was given either, and both may be ours");
    }
}
