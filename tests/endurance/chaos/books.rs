//! What was acknowledged, kept outside of the program: the state of every document as far as its owner can know it.

use std::collections::BTreeMap;

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

#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) entries: BTreeMap<usize, Entry>,
    /// The last version that was given out; none is used twice.
    last: u64,
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
        let entry = self.entry(document);
        if !entry.may_be.contains(&becomes) {
            entry.may_be.push(becomes);
        }
    }

    /// It was acknowledged: this is true, and nothing else.
    pub(crate) fn is(&mut self, document: usize, version: Version, id: Option<String>) {
        *self.entry(document) = Entry { may_be: vec![version], id, task: None };
    }

    /// It was refused: nothing has changed by it.
    pub(crate) fn refused(&mut self, document: usize, version: Version) {
        self.entry(document).may_be.retain(|each| *each != version);
    }
}
