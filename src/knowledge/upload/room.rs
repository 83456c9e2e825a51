//! Upload quota per caller and in total.
//!
//! Quota is reserved before the first byte arrives, so concurrent uploads cannot exceed it. The folder name of an
//! upload identifies its owner, so the upload still counts after a restart.

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

/// The reservations of one process. Clones share the same state. Uploads of other processes count with their current
/// size.
#[derive(Debug, Clone, Default)]
pub(super) struct Room(Arc<Mutex<Promises>>);

/// Maximum size of uploads in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quota {
    pub(super) all: u64,
    /// Per caller; at most `all`.
    pub(super) own: u64,
}

/// Folders of uploads in progress, with their reserved bytes.
type Promises = HashMap<PathBuf, u64>;

/// A reserved upload folder. Dropping it deletes the folder and releases the reservation.
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
    /// Reserves quota for an upload. Files in the folder and uploads stored elsewhere count as used.
    pub(super) fn reserve(
        &self,
        uploads: &Path,
        kept: &[KeptUpload],
        caller: &str,
        bytes: u64,
        quota: Quota,
    ) -> Result<Place, Error> {
        private_folder(uploads).map_err(|error| unwritten(&error))?;
        // Held during the scan; otherwise two requests could reserve the same space.
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
        // Each upload has a separate folder, so the file keeps its name. Any caller that knows the path may add the
        // file, so the name must not be guessable.
        let prefix = format!("{prefix}{}-", uuid::Uuid::new_v4().simple());
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(uploads).map_err(|error| unwritten(&error))?;
        let path = folder.path().to_owned();
        promises.insert(path.clone(), bytes);
        Ok(Place { folder, _promise: Promise { room: self.clone(), folder: path } })
    }
}

impl Place {
    /// Retains the upload. From now on it counts with its actual size.
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
        _ => "upload_storage_failed",
    };
    Error::Storage { code, message: format!("the file cannot be kept: {error}") }
}

fn no_room(why: &str) -> Error {
    Error::Storage { code: "too_many_uploads", message: format!("there is no room: {why}") }
}

/// Rounded up, so that a used quota is never reported as zero.
fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// Folder name prefix of a caller's uploads. The identity is hashed because it may contain any character and is
/// confidential.
fn prefix_of(caller: &str) -> String {
    let digest = Sha256::digest(caller.as_bytes());
    let short: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{PREFIX}{short}-")
}

/// Used and reserved bytes.
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
    // Uploads that are also stored locally count once.
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
        // An aborted upload releases its reservation. A completed one counts with its actual size.
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
        // After a restart there are no reservations.
        let room = Room::default();
        assert!(reserve(&room, "a", 11).is_err());
        reserve(&room, "a", 10).unwrap();
        reserve(&room, "b", 50).unwrap();
    }
}
