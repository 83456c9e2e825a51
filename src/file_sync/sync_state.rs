//! Sync state: the last version that the instance and its database agreed on. It separates local changes from remote
//! changes that were made while the instance was down.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::knowledge::store::postgres::FileVersion;
use crate::util::fs::atomic_write::{self, FilePermissions};
use crate::util::fs::private_dir::create_private_dir;

/// The directory of the state files, one per shared file, and a lock: one local process syncs at a time.
#[derive(Debug)]
pub(super) struct SyncStateDir(PathBuf);

/// The sync state of one local file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SyncState {
    /// Id of the database.
    pub(super) history: String,
    /// The last agreed version.
    pub(super) agreed: Option<FileVersion>,
    /// The version being written, recorded before the write: a crash in between does not count as a local change.
    pub(super) coming: Option<FileVersion>,
}

/// The lock: while this value exists, no other local process syncs.
#[derive(Debug)]
pub(super) struct SyncLock(#[expect(dead_code, reason = "the lock is held until drop")] fs::File);

/// Subdirectory of the storage directory.
const STATE_DIR: &str = "shared";

impl SyncStateDir {
    pub(super) fn in_storage(storage: &Path) -> SyncStateDir {
        SyncStateDir(storage.join(STATE_DIR))
    }

    /// Acquires the lock; `None` while another process holds it.
    pub(super) fn try_lock(&self) -> Result<Option<SyncLock>, String> {
        let wrong = |error: io::Error| format!("cannot use `{}`: {error}", self.0.display());
        create_private_dir(&self.0).map_err(wrong)?;
        let lock = fs::OpenOptions::new().create(true).truncate(false).write(true).open(self.0.join("lock"));
        let lock = lock.map_err(wrong)?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(SyncLock(lock))),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(wrong(error)),
        }
    }

    /// Reads the state of a file. An unparsable state counts as empty.
    pub(super) fn read(&self, name: &str) -> Result<SyncState, String> {
        match fs::read_to_string(self.file(name)) {
            Ok(text) => Ok(serde_json::from_str(&text).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(SyncState::default()),
            Err(error) => Err(format!("cannot read `{}`: {error}", self.file(name).display())),
        }
    }

    pub(super) fn write(&self, name: &str, note: &SyncState) -> Result<(), String> {
        let written = create_private_dir(&self.0).and_then(|()| {
            let text = serde_json::to_string(note)?;
            atomic_write::prepare(&self.file(name), text.as_bytes(), FilePermissions::OwnerOnly)?.replace()
        });
        written.map_err(|error| format!("cannot write `{}`: {error}", self.file(name).display()))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.json"))
    }
}

impl SyncState {
    /// The merge base for a database and the current local content.
    pub(super) fn base(&self, history: &str, ours: Option<&str>) -> Option<&FileVersion> {
        let came = self.coming.as_ref().filter(|coming| Some(&*coming.content) == ours);
        came.or(self.agreed.as_ref()).filter(|_| self.history == history)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: i64, content: &str) -> FileVersion {
        FileVersion { number, content: content.to_owned(), places: Vec::new() }
    }

    #[test]
    fn what_was_agreed_with_another_database_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let notes = SyncStateDir::in_storage(folder.path());
        let note = SyncState { history: "one".into(), agreed: Some(version(1, "a")), coming: None };
        assert_eq!(notes.read("tokens").unwrap(), SyncState::default());
        notes.write("tokens", &note).unwrap();
        assert_eq!(notes.read("tokens").unwrap(), note);
        assert_eq!(note.base("one", Some("b")), Some(&version(1, "a")));
        assert_eq!(note.base("other", Some("b")), None);
        fs::write(notes.file("tokens"), "{").unwrap();
        assert_eq!(notes.read("tokens").unwrap(), SyncState::default());
    }

    #[test]
    fn whoever_was_killed_while_a_file_came_has_not_changed_it() {
        let (agreed, coming) = (version(1, "a"), version(2, "b"));
        let note = SyncState { history: "one".into(), agreed: Some(agreed.clone()), coming: Some(coming.clone()) };
        assert_eq!(note.base("one", Some("a")), Some(&agreed));
        assert_eq!(note.base("one", Some("b")), Some(&coming));
        assert_eq!(note.base("one", Some("edited")), Some(&agreed));
    }

    #[test]
    fn two_do_not_exchange_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (notes, other) = (SyncStateDir::in_storage(folder.path()), SyncStateDir::in_storage(folder.path()));
        let held = notes.try_lock().unwrap();
        assert!(held.is_some() && other.try_lock().unwrap().is_none());
        drop(held);
        assert!(other.try_lock().unwrap().is_some());
    }
}
