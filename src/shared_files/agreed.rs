//! What an instance and its database last agreed that a file says. It tells a change that was made here from one that others
//! made while this instance was not there.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::whole_file::{self, Access};

/// Where such things are kept, and who is at it.
#[derive(Debug)]
pub(super) struct Place(PathBuf);

/// What was agreed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Agreed {
    /// With which database.
    pub(super) history: String,
    pub(super) content: String,
}

/// As long as this is there, no other process of this machine exchanges anything.
#[derive(Debug)]
pub(super) struct Held(#[expect(dead_code, reason = "a lock is held by being there")] fs::File);

/// The folder in the storage.
const FOLDER: &str = "shared";

impl Place {
    pub(super) fn in_storage(storage: &Path) -> Place {
        Place(storage.join(FOLDER))
    }

    /// None while another process is at it.
    pub(super) fn hold(&self) -> io::Result<Option<Held>> {
        private_folder(&self.0)?;
        let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(self.0.join("lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Held(file))),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    /// What was agreed on with a database. What cannot be read was never agreed on.
    pub(super) fn read(&self, name: &str, history: &str) -> io::Result<Option<Agreed>> {
        let text = match fs::read_to_string(self.file(name)) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let agreed = serde_json::from_str(&text).ok();
        Ok(agreed.filter(|agreed: &Agreed| agreed.history == history))
    }

    pub(super) fn write(&self, name: &str, agreed: &Agreed) -> io::Result<()> {
        private_folder(&self.0)?;
        let text = serde_json::to_string(agreed)?;
        whole_file::prepare(&self.file(name), text.as_bytes(), Access::Owner)?.replace()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.json"))
    }
}

fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_agreed_with_another_database_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::in_storage(folder.path());
        let agreed = Agreed { history: "one".into(), content: "a".into() };
        assert_eq!(place.read("tokens", "one").unwrap(), None);
        place.write("tokens", &agreed).unwrap();
        assert_eq!(place.read("tokens", "one").unwrap(), Some(agreed));
        assert_eq!(place.read("tokens", "other").unwrap(), None);
        fs::write(place.file("tokens"), "{").unwrap();
        assert_eq!(place.read("tokens", "one").unwrap(), None);
    }

    #[test]
    fn two_do_not_exchange_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (place, other) = (Place::in_storage(folder.path()), Place::in_storage(folder.path()));
        let held = place.hold().unwrap();
        assert!(held.is_some() && other.hold().unwrap().is_none());
        drop(held);
        assert!(other.hold().unwrap().is_some());
    }
}
