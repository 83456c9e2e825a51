//! Sync state: the last version that the instance and its database agreed on. It separates local changes from remote
//! changes that were made while the instance was down.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::knowledge::store::postgres::Version;
use crate::private_folder::private_folder;
use crate::whole_file::{self, Access};

/// The directory of the state files, one per shared file, and a lock: one local process syncs at a time.
#[derive(Debug)]
pub(super) struct Notes(PathBuf);

/// The sync state of one local file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    /// Id of the database.
    pub(super) history: String,
    /// The last agreed version.
    pub(super) agreed: Option<Version>,
    /// The version being written, recorded before the write: a crash in between does not count as a local change.
    pub(super) coming: Option<Version>,
}

/// The lock: while this value exists, no other local process syncs.
#[derive(Debug)]
pub(super) struct Held(#[expect(dead_code, reason = "a lock is held by being there")] fs::File);

/// Subdirectory of the storage directory.
const FOLDER: &str = "shared";

impl Notes {
    pub(super) fn in_storage(storage: &Path) -> Notes {
        Notes(storage.join(FOLDER))
    }

    /// Acquires the lock; `None` while another process holds it.
    pub(super) fn hold(&self) -> Result<Option<Held>, String> {
        let wrong = |error: io::Error| format!("`{}` cannot be used: {error}", self.0.display());
        private_folder(&self.0).map_err(wrong)?;
        let lock = fs::OpenOptions::new().create(true).truncate(false).write(true).open(self.0.join("lock"));
        let lock = lock.map_err(wrong)?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Held(lock))),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(wrong(error)),
        }
    }

    /// Reads the state of a file. An unparsable state counts as empty.
    pub(super) fn read(&self, name: &str) -> Result<Note, String> {
        match fs::read_to_string(self.file(name)) {
            Ok(text) => Ok(serde_json::from_str(&text).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Note::default()),
            Err(error) => Err(format!("`{}` cannot be read: {error}", self.file(name).display())),
        }
    }

    pub(super) fn write(&self, name: &str, note: &Note) -> Result<(), String> {
        let written = private_folder(&self.0).and_then(|()| {
            let text = serde_json::to_string(note)?;
            whole_file::prepare(&self.file(name), text.as_bytes(), Access::Owner)?.replace()
        });
        written.map_err(|error| format!("`{}` cannot be written: {error}", self.file(name).display()))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.json"))
    }
}

impl Note {
    /// The merge base for a database and the current local content.
    pub(super) fn base(&self, history: &str, ours: Option<&str>) -> Option<&Version> {
        let came = self.coming.as_ref().filter(|coming| Some(&*coming.content) == ours);
        came.or(self.agreed.as_ref()).filter(|_| self.history == history)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: i64, content: &str) -> Version {
        Version { number, content: content.to_owned(), places: Vec::new() }
    }

    #[test]
    fn what_was_agreed_with_another_database_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::in_storage(folder.path());
        let note = Note { history: "one".into(), agreed: Some(version(1, "a")), coming: None };
        assert_eq!(notes.read("tokens").unwrap(), Note::default());
        notes.write("tokens", &note).unwrap();
        assert_eq!(notes.read("tokens").unwrap(), note);
        assert_eq!(note.base("one", Some("b")), Some(&version(1, "a")));
        assert_eq!(note.base("other", Some("b")), None);
        fs::write(notes.file("tokens"), "{").unwrap();
        assert_eq!(notes.read("tokens").unwrap(), Note::default());
    }

    #[test]
    fn whoever_was_killed_while_a_file_came_has_not_changed_it() {
        let (agreed, coming) = (version(1, "a"), version(2, "b"));
        let note = Note { history: "one".into(), agreed: Some(agreed.clone()), coming: Some(coming.clone()) };
        assert_eq!(note.base("one", Some("a")), Some(&agreed));
        assert_eq!(note.base("one", Some("b")), Some(&coming));
        assert_eq!(note.base("one", Some("edited")), Some(&agreed));
    }

    #[test]
    fn two_do_not_exchange_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (notes, other) = (Notes::in_storage(folder.path()), Notes::in_storage(folder.path()));
        let held = notes.hold().unwrap();
        assert!(held.is_some() && other.hold().unwrap().is_none());
        drop(held);
        assert!(other.hold().unwrap().is_some());
    }
}
