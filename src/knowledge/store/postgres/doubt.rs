//! What may have been done by writes whose answers were lost, and stayed lost for longer than anybody waits.
//!
//! A task whose row is this instance's, while nobody here knows it, would wait for ever: nobody takes over the tasks of an
//! instance that lives. So what is in doubt is kept in mind until the database tells.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use uuid::Uuid;

use crate::knowledge::document::Millis;
use crate::knowledge::store::Error;
use crate::knowledge::task::TaskId;
use crate::locked::locked;

#[derive(Debug, Default)]
pub(super) struct Doubt {
    /// Tasks that may have begun, and when.
    begun: Mutex<HashMap<TaskId, Millis>>,
    /// Tasks that may have been taken on, or taken over.
    taken: Mutex<HashSet<Uuid>>,
}

/// More are not kept in mind: whoever is told that the database is away asks for no more.
const MOST: usize = 10_000;

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
        locked(&self.taken).iter().copied().collect()
    }

    /// Keeps in mind that tasks may be ours, or forgets it where that is known.
    pub(super) fn note_taken<T>(&self, ids: impl IntoIterator<Item = Uuid>, told: &Result<T, Error>) {
        let mut taken = locked(&self.taken);
        for id in ids {
            match is_lost(told) && taken.len() < MOST {
                true => taken.insert(id),
                false => taken.remove(&id),
            };
        }
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
        doubt.note_taken([id.0], &away());
        assert_eq!(doubt.taken(), [id.0]);
        doubt.note_taken([id.0], &Ok(()));
        assert!(doubt.taken().is_empty());
    }
}
