//! Whether the store works, measured when it is asked.

use std::fs;
use std::io::Write;
use std::path::Path;

use super::Store;
use crate::knowledge::store::{Error, Health, Trouble};

/// Which file it is, whatever its name. One that was deleted answers as long as it is open, and is lost all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity(Option<(u64, u64)>);

impl Store {
    pub async fn health(&self) -> Result<Health, Error> {
        let store = self.clone();
        let measured = tokio::task::spawn_blocking(move || store.known_health()).await;
        measured.map_err(|error| Error::Internal(error.to_string()))
    }

    /// Touches the disk for some microseconds.
    pub fn known_health(&self) -> Health {
        let answers = |connection: &rusqlite::Connection| {
            connection.query_row("SELECT count(*) FROM bases", [], |row| row.get::<_, i64>(0)).is_ok()
        };
        let same = Identity::of(&self.0.files.database) == self.0.file;
        let connected = match same && answers(self.watch().connection()) {
            true => Ok(()),
            false => Err(Trouble {
                what: "does not answer, or is not the file it was".to_owned(),
                next: "start the program again".to_owned(),
            }),
        };
        Health { connected, accessible: accessible(&self.0.files.folder) }
    }

    /// A file needs nothing.
    pub async fn look_after(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// The least room that lets anything be written.
const ROOM: usize = 64 << 10;

/// Asking for permissions says little about full disks and read-only ones, so a file is written; it has no name.
fn accessible(folder: &Path) -> Result<(), String> {
    let attempt = fs::read_dir(folder).and_then(|_| tempfile::tempfile_in(folder)?.write_all(&[0; ROOM]));
    attempt.map_err(|error| format!("Storage directory not accessible: {}", reason(&error)))
}

/// What the operating system says, without its number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").or_else(|| text.find(" at path")).unwrap_or(text.len());
    text[..end].to_owned()
}

impl Identity {
    #[cfg(unix)]
    pub(super) fn of(path: &Path) -> Identity {
        use std::os::unix::fs::MetadataExt;
        Identity(fs::metadata(path).ok().map(|found| (found.dev(), found.ino())))
    }

    #[cfg(not(unix))]
    pub(super) fn of(path: &Path) -> Identity {
        Identity(fs::metadata(path).ok().map(|_| (0, 0)))
    }
}
