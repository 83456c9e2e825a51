//! Ledger of the operations on each file and its possible states.

use std::collections::BTreeMap;

/// A test file, identified by its number.
#[derive(Debug, Default)]
pub(crate) struct TrackedFile {
    /// Possible contents of the document; one entry if certain. `None` means that it does not exist.
    pub(crate) possible_contents: Vec<Option<String>>,
    /// Document id, if known.
    pub(crate) id: Option<String>,
}

/// Effect of a sent call on a file if it is executed.
#[derive(Debug)]
pub(crate) struct PendingChange {
    pub(crate) file: usize,
    pub(crate) new_content: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) files: BTreeMap<usize, TrackedFile>,
    /// In-doubt calls by id.
    pub(crate) pending: BTreeMap<u64, PendingChange>,
}

impl Ledger {
    /// A call was sent: from now on either state is possible.
    pub(crate) fn record_sent(&mut self, call: u64, file: usize, becomes: Option<String>) {
        let entry = self.files.entry(file).or_default();
        if !entry.possible_contents.contains(&becomes) {
            entry.possible_contents.push(becomes.clone());
        }
        self.pending.insert(call, PendingChange { file, new_content: becomes });
    }

    /// The call was acknowledged: only its state is possible, unless a later call for the same file is open.
    pub(crate) fn record_acknowledged(&mut self, call: u64, id: Option<String>) {
        let Some(PendingChange { file, new_content: becomes }) = self.pending.remove(&call) else { return };
        let later: Vec<_> =
            self.pending.values().filter(|sent| sent.file == file).map(|sent| sent.new_content.clone()).collect();
        let entry = self.files.entry(file).or_default();
        entry.possible_contents = std::iter::once(becomes).chain(later).collect();
        entry.id = id.or(entry.id.take());
    }

    /// The call was rejected and had no effect.
    pub(crate) fn record_refused(&mut self, call: u64) {
        self.pending.remove(&call);
    }
}
