//! How much uploads may take together.
//!
//! Room is reserved before the first byte comes, so that many at once cannot take more than one after the other could.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use super::PREFIX;
use crate::knowledge::{Error, private_folder};
use crate::locked::locked;

/// The room of one process. Cheap to clone; all clones are the same. What comes to other processes counts with what is
/// there of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Room(Arc<Mutex<Promises>>);

/// The folders of uploads that are on their way, and how much each may take.
type Promises = HashMap<PathBuf, u64>;

/// A place for one upload. Dropped, it is gone with all that is in it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) folder: TempDir,
    _promise: Promise,
}

#[derive(Debug)]
struct Promise {
    room: Room,
    folder: PathBuf,
}

impl Room {
    /// Reserves room for an upload of so many bytes, where all uploads may have `all`.
    pub(super) fn reserve(&self, uploads: &Path, bytes: u64, all: u64) -> Result<Place, Error> {
        private_folder(uploads).map_err(|error| unwritten(&error))?;
        // Held while the folder is looked through, or two would find the same room.
        let mut promises = locked(&self.0);
        let taken = taken(uploads, &promises);
        if taken.saturating_add(bytes) > all {
            let message = format!(
                "there is no room: {} of {} MB are taken by uploads that come or wait to be added; add them first, or try \
                 again later",
                taken >> 20,
                all >> 20
            );
            return Err(Error::Storage { code: "too_many_uploads", message });
        }
        // Each in a folder of its own, so that it keeps its name.
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(uploads).map_err(|error| unwritten(&error))?;
        let path = folder.path().to_owned();
        promises.insert(path.clone(), bytes);
        Ok(Place { folder, _promise: Promise { room: self.clone(), folder: path } })
    }
}

impl Place {
    /// Keeps what is there; from now on it counts with what it takes.
    pub(super) fn keep(self) -> PathBuf {
        self.folder.keep()
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        locked(&self.room.0).remove(&self.folder);
    }
}

pub(super) fn unwritten(error: &io::Error) -> Error {
    let code = match error.kind() {
        io::ErrorKind::StorageFull => "storage_full",
        _ => "storage_unavailable",
    };
    Error::Storage { code, message: format!("the file cannot be kept: {error}") }
}

/// What uploads take, or will.
fn taken(uploads: &Path, promises: &Promises) -> u64 {
    let Ok(entries) = std::fs::read_dir(uploads) else { return 0 };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.map(|path| promises.get(&path).copied().unwrap_or_else(|| size_of(&path))).sum()
}

fn size_of(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => size_of(&entry.path()),
        _ => entry.metadata().map_or(0, |metadata| metadata.len()),
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k41_uploads_at_once_have_no_more_room_than_one_after_the_other() {
        let storage = tempfile::tempdir().unwrap();
        let (uploads, room) = (storage.path().join("uploads"), Room::default());
        let reserve = |bytes| room.reserve(&uploads, bytes, 100);
        let first = reserve(60).unwrap();
        assert_eq!(reserve(41).unwrap_err().code(), "too_many_uploads");
        let second = reserve(40).unwrap();
        assert_eq!(reserve(1).unwrap_err().code(), "too_many_uploads");
        // One that broke off gives its room back, and one that is there counts with what it takes.
        drop(second);
        std::fs::write(first.folder.path().join("a.txt"), [0; 10]).unwrap();
        first.keep();
        assert_eq!(reserve(91).unwrap_err().code(), "too_many_uploads");
        reserve(90).unwrap();
    }
}
