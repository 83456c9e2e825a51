//! Client-side ledger of acknowledged writes: the possible states of every document as its client knows them.

use std::collections::{BTreeMap, VecDeque};

/// Version number of a document; `None` if the document does not exist.
pub(crate) type Version = Option<u64>;

/// One document. Only one client changes it, one change at a time.
#[derive(Debug, Default)]
pub(crate) struct LedgerEntry {
    /// All possible versions; exactly one when the state is certain.
    pub(crate) possible_versions: Vec<Version>,
    pub(crate) id: Option<String>,
    /// A task that was accepted and whose end the client has not seen.
    pub(crate) task: Option<String>,
}

impl LedgerEntry {
    pub(crate) fn certain_version(&self) -> Option<Version> {
        match self.possible_versions[..] {
            [] => Some(None),
            [version] if self.task.is_none() => Some(version),
            _ => None,
        }
    }
}

/// Number of dead versions to remember.
const MAX_REMEMBERED: usize = 200;

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) entries: BTreeMap<usize, LedgerEntry>,
    /// The last version number issued; none is reused.
    last_version: u64,
    /// The last removed, replaced or rejected versions with their documents. None of them may reappear.
    pub(crate) dead_versions: VecDeque<(usize, u64)>,
    /// Ids of the last removed documents. None may be listed again in any state.
    pub(crate) removed_ids: VecDeque<String>,
}

impl Ledger {
    pub(crate) fn next_version(&mut self) -> u64 {
        self.last_version += 1;
        self.last_version
    }

    pub(crate) fn entry(&mut self, document: usize) -> &mut LedgerEntry {
        self.entries
            .entry(document)
            .or_insert_with(|| LedgerEntry { possible_versions: vec![None], ..LedgerEntry::default() })
    }

    /// A change was sent and its outcome is unknown: from now on either state is possible.
    pub(crate) fn record_sent(&mut self, document: usize, becomes: Version) {
        let entry = self.entry(document);
        if !entry.possible_versions.contains(&becomes) {
            entry.possible_versions.push(becomes);
        }
    }

    /// The change was acknowledged: this version is the only possible one.
    pub(crate) fn record_acknowledged(&mut self, document: usize, version: Version, id: Option<String>) {
        let before = std::mem::replace(
            self.entry(document),
            LedgerEntry { possible_versions: vec![version], id, ..LedgerEntry::default() },
        );
        before
            .possible_versions
            .into_iter()
            .filter(|each| *each != version)
            .for_each(|each| self.record_dead(document, each));
    }

    /// The removal was acknowledged.
    pub(crate) fn record_removed(&mut self, document: usize) {
        if let Some(id) = self.entry(document).id.take() {
            self.removed_ids.push_back(id);
        }
        if self.removed_ids.len() > MAX_REMEMBERED {
            self.removed_ids.pop_front();
        }
        self.record_acknowledged(document, None, None);
    }

    /// All documents were removed.
    pub(crate) fn record_cleared(&mut self) {
        let documents: Vec<usize> = self.entries.keys().copied().collect();
        documents.into_iter().for_each(|document| self.record_removed(document));
    }

    /// The change was rejected and had no effect.
    pub(crate) fn record_refused(&mut self, document: usize, version: Version) {
        self.entry(document).possible_versions.retain(|each| *each != version);
        self.record_dead(document, version);
    }

    fn record_dead(&mut self, document: usize, version: Version) {
        let Some(version) = version else { return };
        self.dead_versions.push_back((document, version));
        if self.dead_versions.len() > MAX_REMEMBERED {
            self.dead_versions.pop_front();
        }
    }
}
