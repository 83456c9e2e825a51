//! Ledger of the operations on each file and its possible states.

use std::collections::BTreeMap;

/// A test file, identified by its number.
#[derive(Debug, Default)]
pub(crate) struct File {
    /// Possible contents of the document; one entry if certain. `None` means that it does not exist.
    pub(crate) may_be: Vec<Option<String>>,
    /// Document id, if known.
    pub(crate) id: Option<String>,
}

/// Effect of a sent call on a file if it is executed.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) file: usize,
    pub(crate) becomes: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) files: BTreeMap<usize, File>,
    /// In-doubt calls by id.
    pub(crate) open: BTreeMap<u64, Sent>,
}

impl Books {
    /// A call was sent: from now on either state is possible.
    pub(crate) fn sent(&mut self, call: u64, file: usize, becomes: Option<String>) {
        let entry = self.files.entry(file).or_default();
        if !entry.may_be.contains(&becomes) {
            entry.may_be.push(becomes.clone());
        }
        self.open.insert(call, Sent { file, becomes });
    }

    /// The call was acknowledged: only its state is possible, unless a later call for the same file is open.
    pub(crate) fn acknowledged(&mut self, call: u64, id: Option<String>) {
        let Some(Sent { file, becomes }) = self.open.remove(&call) else { return };
        let later: Vec<_> =
            self.open.values().filter(|sent| sent.file == file).map(|sent| sent.becomes.clone()).collect();
        let entry = self.files.entry(file).or_default();
        entry.may_be = std::iter::once(becomes).chain(later).collect();
        entry.id = id.or(entry.id.take());
    }

    /// The call was rejected and had no effect.
    pub(crate) fn refused(&mut self, call: u64) {
        self.open.remove(&call);
    }
}
