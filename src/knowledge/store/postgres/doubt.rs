//! What may have been done by writes whose answers were lost, and stayed lost for longer than anybody waits.
//!
//! A task whose row is this instance's, while nobody here knows it, would wait for ever: nobody takes over the tasks of an
//! instance that lives. So what is in doubt is kept in mind until the database tells.

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
    /// Tasks that may have begun, and when.
    begun: Mutex<HashMap<TaskId, Millis>>,
    /// Tasks that may have been taken on, or taken over.
    taken: Mutex<HashMap<Uuid, Instant>>,
}

/// More are not kept in mind: whoever is told that the database is away asks for no more.
const MOST: usize = 10_000;
/// How long tasks are looked for that may be ours.
const FORGOTTEN: Duration = Duration::from_secs(3600);

impl Doubt {
    /// When a task may have begun.
    pub(super) fn begun(&self, id: TaskId) -> Option<Millis> {
        locked(&self.begun).get(&id).copied()
    }

    /// Keeps in mind that a task may have begun, or forgets it where that is known.
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

    /// Keeps in mind that a task may have been taken on.
    pub(super) fn note_taken(&self, id: Uuid) {
        let mut taken = locked(&self.taken);
        if taken.len() < MOST {
            taken.insert(id, Instant::now());
        }
    }

    /// Forgets those that were given back as ours; the others of those that were asked for may be somebody's who has not
    /// come to his end yet.
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
        // By then everything that was sent has come to its end, and what is not there was never written.
        taken.retain(|_, since| since.elapsed() < FORGOTTEN);
    }
}

/// Whether nobody knows what became of a write.
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
