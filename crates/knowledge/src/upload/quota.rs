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

use super::{DIR_PREFIX, is_upload_dir};
use crate::Error;
use crate::store::{self, StoredUpload};
use corbie_util::fs::dir_permissions::{self, create_private_subdir};
use corbie_util::lock::lock;

/// The reservations of one process. Clones share the same state. Uploads of other processes count with their current
/// size.
#[derive(Debug, Clone, Default)]
pub(super) struct QuotaTracker(Arc<Mutex<Reservations>>);

/// Maximum size of uploads in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quota {
    pub(super) total: u64,
    /// Per caller; at most `all`.
    pub(super) per_caller: u64,
}

/// Folders of uploads in progress, with their reserved bytes.
type Reservations = HashMap<PathBuf, u64>;

/// A reserved upload folder. Dropping it deletes the folder and releases the reservation.
#[derive(Debug)]
pub(super) struct ReservedDir {
    pub(super) dir: TempDir,
    _reservation: Reservation,
}

#[derive(Debug)]
struct Reservation {
    tracker: QuotaTracker,
    folder: PathBuf,
}

impl QuotaTracker {
    /// Reserves quota for an upload. Files in the folder and uploads stored elsewhere count as used.
    pub(super) fn reserve(
        &self,
        uploads: &Path,
        kept: &[StoredUpload],
        caller: &str,
        bytes: u64,
        quota: Quota,
    ) -> Result<ReservedDir, Error> {
        create_private_subdir(uploads).map_err(folder_error)?;
        // Held during the scan; otherwise two requests could reserve the same space.
        let mut promises = lock(&self.0);
        let prefix = dir_prefix(caller);
        let UploadUsage { total: all, by_caller: own } = upload_usage(uploads, kept, &prefix, &promises);
        let is_over = |taken: u64, most: u64| taken.saturating_add(bytes) > most;
        if is_over(own, quota.per_caller) {
            return Err(quota_exceeded(&format!(
                "upload quota exceeded: your pending uploads use {} of {} MB; add them with `knowledge-add` first; the \
                 operator can increase `knowledge.max_uploads_mb_per_caller`",
                to_megabytes(own),
                quota.per_caller >> 20
            )));
        }
        if is_over(all, quota.total) {
            return Err(quota_exceeded(&format!(
                "upload quota exceeded: pending uploads use {} of {} MB; add them first, or try again later",
                to_megabytes(all),
                quota.total >> 20
            )));
        }
        // Each upload has a separate folder, so the file keeps its name. Any caller that knows the path may add the
        // file, so the name must not be guessable.
        let prefix = format!("{prefix}{}-", uuid::Uuid::new_v4().simple());
        let folder =
            tempfile::Builder::new().prefix(&prefix).tempdir_in(uploads).map_err(|error| write_error(&error))?;
        let path = folder.path().to_owned();
        promises.insert(path.clone(), bytes);
        Ok(ReservedDir { dir: folder, _reservation: Reservation { tracker: self.clone(), folder: path } })
    }
}

impl ReservedDir {
    /// Retains the upload. From now on it counts with its actual size.
    pub(super) fn persist(self) -> PathBuf {
        self.dir.keep()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        lock(&self.tracker.0).remove(&self.folder);
    }
}

pub(super) fn write_error(error: &io::Error) -> Error {
    let code = match error.kind() {
        io::ErrorKind::StorageFull => "storage_full",
        _ => "upload_storage_failed",
    };
    Error::Storage { code, message: format!("cannot store the file: {error}") }
}

/// The error of creating a folder for uploads.
pub(super) fn folder_error(error: dir_permissions::Error) -> Error {
    match error {
        dir_permissions::Error::Io { error, .. } => write_error(&error),
        exposed => store::Error::folder(exposed).into(),
    }
}

fn quota_exceeded(why: &str) -> Error {
    Error::Storage { code: "too_many_uploads", message: format!("insufficient storage: {why}") }
}

/// Rounded up, so that a used quota is never reported as zero.
fn to_megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// Folder name prefix of a caller's uploads. The identity is hashed because it may contain any character and is
/// confidential.
fn dir_prefix(caller: &str) -> String {
    let digest = Sha256::digest(caller.as_bytes());
    let short: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{DIR_PREFIX}{short}-")
}

/// Used and reserved bytes.
#[derive(Default)]
struct UploadUsage {
    total: u64,
    by_caller: u64,
}

fn upload_usage(uploads: &Path, kept: &[StoredUpload], own_prefix: &str, promises: &Reservations) -> UploadUsage {
    let entries = std::fs::read_dir(uploads).into_iter().flatten().flatten();
    let here = entries.filter(|entry| is_upload_dir(&entry.file_name())).map(|entry| {
        let path = entry.path();
        let size = promises.get(&path).copied().unwrap_or_else(|| dir_size(&path));
        (entry.file_name().to_string_lossy().into_owned(), size)
    });
    let here: HashMap<String, u64> = here.collect();
    // Uploads that are also stored locally count once.
    let elsewhere = kept.iter().filter(|kept| !here.contains_key(&kept.folder)).map(|kept| (&kept.folder, kept.size));
    let mut taken = UploadUsage::default();
    for (folder, size) in here.iter().map(|(folder, size)| (folder, *size)).chain(elsewhere) {
        taken.total += size;
        if folder.starts_with(own_prefix) {
            taken.by_caller += size;
        }
    }
    taken
}

fn dir_size(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => dir_size(&entry.path()),
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
        let (uploads, room) = (storage.path().join("uploads"), QuotaTracker::default());
        let reserve = |bytes| room.reserve(&uploads, &[], "a", bytes, Quota { total: 100, per_caller: 100 });
        let first = reserve(60).unwrap();
        assert_eq!(reserve(41).unwrap_err().code(), "too_many_uploads");
        let second = reserve(40).unwrap();
        assert_eq!(reserve(1).unwrap_err().code(), "too_many_uploads");
        // An aborted upload releases its reservation. A completed one counts with its actual size.
        drop(second);
        std::fs::write(first.dir.path().join("a.txt"), [0; 10]).unwrap();
        first.persist();
        assert_eq!(reserve(91).unwrap_err().code(), "too_many_uploads");
        reserve(90).unwrap();
    }

    #[test]
    fn k41_a_caller_has_a_share_that_another_process_still_knows() {
        let storage = tempfile::tempdir().unwrap();
        let uploads = storage.path().join("uploads");
        let reserve = |room: &QuotaTracker, caller, mb: u64| {
            room.reserve(&uploads, &[], caller, mb << 20, Quota { total: 100 << 20, per_caller: 60 << 20 })
        };
        let room = QuotaTracker::default();
        let first = reserve(&room, "a", 50).unwrap();
        let refused = reserve(&room, "a", 11).unwrap_err().to_string();
        assert!(refused.contains("50 of 60 MB") && refused.contains("max_uploads_mb_per_caller"), "{refused}");
        let other = reserve(&room, "b", 40).unwrap();
        let refused = reserve(&room, "b", 11).unwrap_err().to_string();
        assert!(refused.contains("90 of 100 MB"), "{refused}");
        drop(other);
        std::fs::File::create(first.dir.path().join("a.txt")).unwrap().set_len(50 << 20).unwrap();
        first.persist();
        // After a restart there are no reservations.
        let room = QuotaTracker::default();
        assert!(reserve(&room, "a", 11).is_err());
        reserve(&room, "a", 10).unwrap();
        reserve(&room, "b", 50).unwrap();
    }
}
