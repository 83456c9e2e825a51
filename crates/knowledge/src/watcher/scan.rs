//! Scan of watched folders. Blocking file system access.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio_util::sync::CancellationToken;

use crate::file_discovery::FoundFile;
use crate::path_policy::{PathPolicy, canonical_name, is_visible_in};
use crate::store::{FileId, FileStamp};
use crate::{Error, file_discovery};
use corbie_config::knowledge::WatchedFolder;

/// Result of scanning a folder.
#[derive(Debug)]
pub(super) struct FolderScan {
    /// Canonical path.
    pub(super) root: PathBuf,
    pub(super) folder_id: FileId,
    /// By canonical path, so that a file found twice counts once.
    pub(super) files: HashMap<String, ScannedFile>,
    /// Number of symlinks that were skipped because they lead outside or to hidden files.
    pub(super) leaving: u64,
}

#[derive(Debug)]
pub(super) enum SkippedFolder {
    /// Its path resolves to this one, which differs from the initial one.
    Moved(PathBuf),
    /// Its path is a symbolic link.
    Link,
    Failed(Error),
}

impl From<Error> for SkippedFolder {
    fn from(error: Error) -> SkippedFolder {
        SkippedFolder::Failed(error)
    }
}

/// State of a file.
#[derive(Debug, Clone)]
pub(super) struct ScannedFile {
    /// Path under which it was found.
    pub(super) path: PathBuf,
    /// Canonical path of the watched folder.
    pub(super) within: Arc<Path>,
    pub(super) stamp: FileStamp,
    /// Device of its folder.
    pub(super) device: u64,
    /// 0 on platforms without inodes.
    pub(super) inode: u64,
    /// ctime in nanoseconds since 1970, if available.
    pub(super) ctime: Option<i64>,
}

/// Lists the files of a folder. A symbolic link is not followed (S-11). `known` is the path to which the folder resolved initially: a symlink that has replaced
/// a folder above it since is not followed either.
pub(super) fn scan(
    watch: &WatchedFolder,
    known: Option<&Path>,
    rules: &PathPolicy,
    stop: &CancellationToken,
) -> Result<FolderScan, SkippedFolder> {
    let missing = |_| Error::FileNotFound(watch.path.display().to_string());
    let named = canonical_name(&watch.path);
    let root = watch.path.canonicalize();
    if named.is_symlink() || root.as_ref().is_ok_and(|root| *root != named) {
        return Err(SkippedFolder::Link);
    }
    let root = root.map_err(missing)?;
    if known.is_some_and(|known| known != root) {
        return Err(SkippedFolder::Moved(root));
    }
    let place = file_id(&fs::metadata(&root).map_err(missing)?);
    if !root.is_dir() {
        return Err(Error::FileNotFound(watch.path.display().to_string()).into());
    }
    let options = file_discovery::Options { recursive: watch.recursive, follow_links: false };
    let found = file_discovery::discover(&watch.path.to_string_lossy(), options, rules, stop)?;
    let within: Arc<Path> = root.as_path().into();
    let mut devices: HashMap<PathBuf, u64> = HashMap::new();
    let mut files = HashMap::new();
    for FoundFile { path, .. } in found.files {
        // A file that was deleted in the meantime, or cannot be read, is handled by the next scan.
        let Ok(followed) = path.canonicalize() else { continue };
        if !is_visible_in(&followed, &root) {
            continue;
        }
        let (Ok(metadata), Some(folder)) = (fs::metadata(&followed), followed.parent()) else { continue };
        let device = match devices.get(folder) {
            Some(device) => *device,
            None => {
                let Ok(metadata) = fs::metadata(folder) else { continue };
                *devices.entry(folder.to_owned()).or_insert(self::file_id(&metadata).device)
            }
        };
        let look = FileStamp { modified: metadata.modified().ok().map(unix_nanos), size: metadata.len() };
        let (inode, changed) = (self::file_id(&metadata).inode, ctime_nanos(&metadata));
        files.entry(followed.to_string_lossy().into_owned()).or_insert(ScannedFile {
            path,
            within: within.clone(),
            stamp: look,
            device,
            inode,
            ctime: changed,
        });
    }
    Ok(FolderScan { root, folder_id: place, files, leaving: found.skipped.leaving() })
}

#[cfg(unix)]
pub(super) fn file_id(metadata: &Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt;
    FileId { device: metadata.dev(), inode: metadata.ino() }
}

/// On other platforms an unmounted disk makes the whole path disappear, which is detected without device numbers.
#[cfg(not(unix))]
pub(super) fn file_id(_: &Metadata) -> FileId {
    FileId { device: 0, inode: 0 }
}

#[cfg(unix)]
fn ctime_nanos(metadata: &Metadata) -> Option<i64> {
    use std::os::unix::fs::MetadataExt;
    metadata.ctime().checked_mul(1_000_000_000)?.checked_add(metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn ctime_nanos(_: &Metadata) -> Option<i64> {
    None
}

fn unix_nanos(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanoseconds| -nanoseconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_are_times() {
        let before = UNIX_EPOCH - std::time::Duration::from_nanos(5);
        assert_eq!((unix_nanos(before), unix_nanos(UNIX_EPOCH)), (-5, 0));
    }
}
