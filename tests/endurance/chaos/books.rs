//! Client-side ledger of acknowledged writes: the possible states of every document as its client knows them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Version number of a document; `None` if the document does not exist.
pub(crate) type Version = Option<u64>;

/// One document. Only one client changes it, one change at a time.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// All possible versions; exactly one when the state is certain.
    pub(crate) may_be: Vec<Version>,
    pub(crate) id: Option<String>,
    /// A task that was accepted and whose end the client has not seen.
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

/// Number of dead versions to remember.
const MOST_DEAD: usize = 200;

#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) entries: BTreeMap<usize, Entry>,
    /// The last version number issued; none is reused.
    last: u64,
    /// The last removed, replaced or rejected versions with their documents. None of them may reappear.
    pub(crate) dead: VecDeque<(usize, u64)>,
    /// Documents with a version sent since the last clear. Failed ones are listed as failed, each with its own id.
    pub(crate) tried: BTreeSet<usize>,
    /// Ids of the last removed documents. None may be listed again in any state.
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

    /// A change was sent and its outcome is unknown: from now on either state is possible.
    pub(crate) fn sent(&mut self, document: usize, becomes: Version) {
        if becomes.is_some() {
            self.tried.insert(document);
        }
        let entry = self.entry(document);
        if !entry.may_be.contains(&becomes) {
            entry.may_be.push(becomes);
        }
    }

    /// The change was acknowledged: this version is the only possible one.
    pub(crate) fn is(&mut self, document: usize, version: Version, id: Option<String>) {
        let before = std::mem::replace(self.entry(document), Entry { may_be: vec![version], id, ..Entry::default() });
        before.may_be.into_iter().filter(|each| *each != version).for_each(|each| self.bury(document, each));
    }

    /// The removal was acknowledged.
    pub(crate) fn removed(&mut self, document: usize) {
        if let Some(id) = self.entry(document).id.take() {
            self.removed.push_back(id);
        }
        if self.removed.len() > MOST_DEAD {
            self.removed.pop_front();
        }
        self.is(document, None, None);
    }

    /// All documents were removed, including the records of failed ones.
    pub(crate) fn cleared(&mut self) {
        let documents: Vec<usize> = self.entries.keys().copied().collect();
        documents.into_iter().for_each(|document| self.removed(document));
        self.tried.clear();
    }

    /// The change was rejected and had no effect.
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
