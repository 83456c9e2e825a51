//! What was done to each file, and what may therefore be true of it.

use std::collections::BTreeMap;

/// A file, by its number.
#[derive(Debug, Default)]
pub(crate) struct File {
    /// What the document may say: one entry where it is certain. `None` is no document.
    pub(crate) may_be: Vec<Option<String>>,
    /// Its document, where it is known.
    pub(crate) id: Option<String>,
}

/// What a call that was sent does to a file if it is carried out.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) file: usize,
    pub(crate) becomes: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) files: BTreeMap<usize, File>,
    /// Calls by number, of which it is not known whether they were carried out.
    pub(crate) open: BTreeMap<u64, Sent>,
}

impl Books {
    /// A call was sent: from now on either may be true.
    pub(crate) fn sent(&mut self, call: u64, file: usize, becomes: Option<String>) {
        let entry = self.files.entry(file).or_default();
        if !entry.may_be.contains(&becomes) {
            entry.may_be.push(becomes.clone());
        }
        self.open.insert(call, Sent { file, becomes });
    }

    /// It was answered: only what it said is true, unless a later call about the same file is open.
    pub(crate) fn acknowledged(&mut self, call: u64, id: Option<String>) {
        let Some(Sent { file, becomes }) = self.open.remove(&call) else { return };
        let later: Vec<_> =
            self.open.values().filter(|sent| sent.file == file).map(|sent| sent.becomes.clone()).collect();
        let entry = self.files.entry(file).or_default();
        entry.may_be = std::iter::once(becomes).chain(later).collect();
        entry.id = id.or(entry.id.take());
    }

    /// It was refused: nothing has changed by it.
    pub(crate) fn refused(&mut self, call: u64) {
        self.open.remove(&call);
    }
}
