//! In-doubt task writes: the acknowledgement was lost for longer than the retry timeout.
//!
//! If a task row belongs to this instance but the instance does not know it, the task would wait forever, because no
//! other instance adopts tasks of a live instance. In-doubt tasks are therefore tracked until their state is resolved.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::knowledge::document::Millis;
use crate::knowledge::store::Error;
use crate::knowledge::task::{Task, TaskId};
use crate::locked::locked;

#[derive(Debug, Default)]
pub(super) struct Doubt {
    /// Tasks that may have started, with the start time.
    begun: Mutex<HashMap<TaskId, Millis>>,
    /// Tasks that this instance may have added or adopted.
    taken: Mutex<HashMap<Uuid, Instant>>,
}

/// Maximum number of entries per map. Callers stop sending writes when the database is unavailable.
const MOST: usize = 10_000;
/// How long to check whether an in-doubt task is ours.
const FORGOTTEN: Duration = Duration::from_secs(3600);

impl Doubt {
    /// Start time of a task that may have started.
    pub(super) fn begun(&self, id: TaskId) -> Option<Millis> {
        locked(&self.begun).get(&id).copied()
    }

    /// Records that a task may have started, or removes the entry if the outcome is certain.
    pub(super) fn note_begun<T>(&self, id: TaskId, at: Millis, told: &Result<T, Error>) {
        let mut begun = locked(&self.begun);
        match is_lost(told) && begun.len() < MOST {
            true => drop(begun.insert(id, at)),
            false => drop(begun.remove(&id)),
        }
    }

    pub(super) fn taken(&self) -> Vec<Uuid> {
        locked(&self.taken).keys().copied().collect()
    }

    /// Records that this instance may have acquired a task.
    pub(super) fn note_taken(&self, id: Uuid) {
        let mut taken = locked(&self.taken);
        if taken.len() < MOST {
            taken.insert(id, Instant::now());
        }
    }

    /// Removes the tasks that are now known to be ours. The other requested tasks stay in doubt, because their
    /// transactions may still be running.
    pub(super) fn settle(&self, asked: &[Uuid], known: &[Task]) {
        let mut taken = locked(&self.taken);
        for id in asked {
            if taken.len() < MOST {
                taken.entry(*id).or_insert_with(Instant::now);
            }
        }
        for task in known {
            taken.remove(&task.id.0);
        }
        // By then every transaction has ended, so a missing task was never written.
        taken.retain(|_, since| since.elapsed() < FORGOTTEN);
    }
}

/// Whether the outcome of a write is unknown.
fn is_lost<T>(told: &Result<T, Error>) -> bool {
    matches!(told, Err(Error::Away(_) | Error::Busy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_doubt_is_kept_in_mind_until_it_is_known() {
        let (doubt, id) = (Doubt::default(), TaskId::random());
        let away = || Err::<(), _>(Error::Away("gone".into()));
        doubt.note_begun(id, 7, &away());
        assert_eq!(doubt.begun(id), Some(7));
        doubt.note_begun(id, 7, &Ok(true));
        assert_eq!(doubt.begun(id), None);
        doubt.note_taken(id.0);
        let other = Uuid::new_v4();
        doubt.settle(&[id.0, other], &[]);
        assert_eq!(doubt.taken().len(), 2, "nobody was given either, and both may be ours");
    }
}
