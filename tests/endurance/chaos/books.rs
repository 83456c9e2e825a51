//! What was acknowledged, kept outside of the program: the state of every document as far as its owner can know it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A version of a document, by its number; None is no document.
pub(crate) type Version = Option<u64>;

/// One document. Only one client changes it, and one thing at a time.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// What it is, where there is no doubt; otherwise all that it may be.
    pub(crate) may_be: Vec<Version>,
    pub(crate) id: Option<String>,
    /// A task that was promised and whose end was not seen.
    pub(crate) task: Option<String>,
}

impl Entry {
    pub(crate) fn certain(&self) -> Option<Version> {
        match self.may_be[..] {
            [] => Some(None),
            [version] if self.task.is_none() => Some(version),
            _ => None,
        }
    }
}

/// How many versions that are no more are remembered.
const MOST_DEAD: usize = 200;

#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) entries: BTreeMap<usize, Entry>,
    /// The last version that was given out; none is used twice.
    last: u64,
    /// The last versions that were removed, replaced or refused, with their documents: none of them is ever seen again.
    pub(crate) dead: VecDeque<(usize, u64)>,
    /// Documents of which a version was sent since all were cleared away: those that failed are listed as failed, each
    /// under an id of its own.
    pub(crate) tried: BTreeSet<usize>,
    /// The ids of the last documents that were removed: none of them is ever listed again, as whatever.
    pub(crate) removed: VecDeque<String>,
}

impl Books {
    pub(crate) fn next_version(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(crate) fn entry(&mut self, document: usize) -> &mut Entry {
        self.entries.entry(document).or_insert_with(|| Entry { may_be: vec![None], ..Entry::default() })
    }

    /// A change was sent, and nothing is known of it: from now on either may be true.
    pub(crate) fn sent(&mut self, document: usize, becomes: Version) {
        if becomes.is_some() {
            self.tried.insert(document);
        }
        let entry = self.entry(document);
        if !entry.may_be.contains(&becomes) {
            entry.may_be.push(becomes);
        }
    }

    /// It was acknowledged: this is true, and nothing else.
    pub(crate) fn is(&mut self, document: usize, version: Version, id: Option<String>) {
        let before = std::mem::replace(self.entry(document), Entry { may_be: vec![version], id, ..Entry::default() });
        before.may_be.into_iter().filter(|each| *each != version).for_each(|each| self.bury(document, each));
    }

    /// It was removed, and that was acknowledged.
    pub(crate) fn removed(&mut self, document: usize) {
        if let Some(id) = self.entry(document).id.take() {
            self.removed.push_back(id);
        }
        if self.removed.len() > MOST_DEAD {
            self.removed.pop_front();
        }
        self.is(document, None, None);
    }

    /// All were removed at once, with everything that is left of failures.
    pub(crate) fn cleared(&mut self) {
        let documents: Vec<usize> = self.entries.keys().copied().collect();
        documents.into_iter().for_each(|document| self.removed(document));
        self.tried.clear();
    }

    /// It was refused: nothing has changed by it.
    pub(crate) fn refused(&mut self, document: usize, version: Version) {
        self.entry(document).may_be.retain(|each| *each != version);
        self.bury(document, version);
    }

    fn bury(&mut self, document: usize, version: Version) {
        let Some(version) = version else { return };
        self.dead.push_back((document, version));
        if self.dead.len() > MOST_DEAD {
            self.dead.pop_front();
        }
    }
}
