//! How much uploads may take: of one caller, and together.
//!
//! Room is reserved before the first byte comes, so that many at once cannot take more than one after the other could.
//! Whose an upload is stands in the name of its folder, so that it still counts when the program was started again.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::PREFIX;
use crate::knowledge::Error;
use crate::knowledge::store::KeptUpload;
use crate::locked::locked;
use crate::private_folder::private_folder;

/// The room of one process. Cheap to clone; all clones are the same. What comes to other processes counts with what is
/// there of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Room(Arc<Mutex<Promises>>);

/// How many bytes uploads may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quota {
    pub(super) all: u64,
    /// Of one caller; never more than of all.
    pub(super) own: u64,
}

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
    /// Reserves room for an upload of so many bytes by this caller, beside those that are in the folder or kept elsewhere.
    pub(super) fn reserve(
        &self,
        uploads: &Path,
        kept: &[KeptUpload],
        caller: &str,
        bytes: u64,
        quota: Quota,
    ) -> Result<Place, Error> {
        private_folder(uploads).map_err(|error| unwritten(&error))?;
        // Held while the folder is looked through, or two would find the same room.
        let mut promises = locked(&self.0);
        let prefix = prefix_of(caller);
        let Taken { all, own } = taken(uploads, kept, &prefix, &promises);
        let is_over = |taken: u64, most: u64| taken.saturating_add(bytes) > most;
        if is_over(own, quota.own) {
            return Err(no_room(&format!(
                "{} of the {} MB that one caller may have are taken by uploads of yours that come or wait to be added; add \
                 them with `knowledge-add` first, or ask the operator to raise `knowledge.max_uploads_mb_per_caller`",
                megabytes(own),
                quota.own >> 20
            )));
        }
        if is_over(all, quota.all) {
            return Err(no_room(&format!(
                "{} of {} MB are taken by uploads that come or wait to be added; add them first, or try again later",
                megabytes(all),
                quota.all >> 20
            )));
        }
        // Each in a folder of its own, so that it keeps its name.
        // Whoever knows its name may add it, so that nobody must be able to guess it.
        let prefix = format!("{prefix}{}-", uuid::Uuid::new_v4().simple());
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(uploads).map_err(|error| unwritten(&error))?;
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

fn no_room(why: &str) -> Error {
    Error::Storage { code: "too_many_uploads", message: format!("there is no room: {why}") }
}

/// Rounded up: what is taken is never told as nothing.
fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// How the folders of a caller's uploads begin. Names of callers may hold anything, and are nobody else's business.
fn prefix_of(caller: &str) -> String {
    let digest = Sha256::digest(caller.as_bytes());
    let short: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{PREFIX}{short}-")
}

/// What uploads take, or will.
#[derive(Default)]
struct Taken {
    all: u64,
    own: u64,
}

fn taken(uploads: &Path, kept: &[KeptUpload], own_prefix: &str, promises: &Promises) -> Taken {
    let here = std::fs::read_dir(uploads).into_iter().flatten().flatten().map(|entry| {
        let path = entry.path();
        let size = promises.get(&path).copied().unwrap_or_else(|| size_of(&path));
        (entry.file_name().to_string_lossy().into_owned(), size)
    });
    let here: HashMap<String, u64> = here.collect();
    // What lies here too is counted once.
    let elsewhere = kept.iter().filter(|kept| !here.contains_key(&kept.folder)).map(|kept| (&kept.folder, kept.size));
    let mut taken = Taken::default();
    for (folder, size) in here.iter().map(|(folder, size)| (folder, *size)).chain(elsewhere) {
        taken.all += size;
        if folder.starts_with(own_prefix) {
            taken.own += size;
        }
    }
    taken
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
        let reserve = |bytes| room.reserve(&uploads, &[], "a", bytes, Quota { all: 100, own: 100 });
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

    #[test]
    fn k41_a_caller_has_a_share_that_another_process_still_knows() {
        let storage = tempfile::tempdir().unwrap();
        let uploads = storage.path().join("uploads");
        let reserve = |room: &Room, caller, mb: u64| {
            room.reserve(&uploads, &[], caller, mb << 20, Quota { all: 100 << 20, own: 60 << 20 })
        };
        let room = Room::default();
        let first = reserve(&room, "a", 50).unwrap();
        let refused = reserve(&room, "a", 11).unwrap_err().to_string();
        assert!(refused.contains("50 of the 60 MB") && refused.contains("max_uploads_mb_per_caller"), "{refused}");
        let other = reserve(&room, "b", 40).unwrap();
        let refused = reserve(&room, "b", 11).unwrap_err().to_string();
        assert!(refused.contains("90 of 100 MB"), "{refused}");
        drop(other);
        std::fs::File::create(first.folder.path().join("a.txt")).unwrap().set_len(50 << 20).unwrap();
        first.keep();
        // A program that was started again has made no promises.
        let room = Room::default();
        assert!(reserve(&room, "a", 11).is_err());
        reserve(&room, "a", 10).unwrap();
        reserve(&room, "b", 50).unwrap();
    }
}
