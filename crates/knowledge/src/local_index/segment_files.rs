//! Segment files: one folder per base.
//!
//! The files contain terms of documents. Obsolete files are therefore deleted, so that deleted content does not remain
//! on disk: segments of empty bases, and all segments of another store or embedding model.
//!
//! The folders of an index are not used if they are symbolic links: root may use the storage folder of another user, who
//! could otherwise make root write and delete segment files elsewhere. The index folder itself may be a link if the
//! operator named it.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use corbie_index::{Index, SegmentId};

use corbie_util::fs::dir_permissions::create_private_subdir;

/// Name prefix of the folder of a base.
pub(super) const BASE_PREFIX: &str = "base-";
/// Extension of segment files.
const SEGMENT_EXTENSION: &str = "segment";
/// Name prefix of files that are being written.
const TEMP_PREFIX: &str = ".new-";
/// Age after which an unfinished file is left over from a crash.
const TEMP_FILE_MAX_AGE: Duration = Duration::from_secs(3600);
/// Maximum size of a segment file.
const MAX_SEGMENT_BYTES: u64 = 4 << 30;

/// Reads all segment files. Skips unreadable ones.
pub(super) fn read_segments(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let small = |path: &PathBuf| fs::metadata(path).is_ok_and(|metadata| metadata.len() <= MAX_SEGMENT_BYTES);
    let segments = own_entry_names(folder).into_iter().filter(|name| is_segment(name)).map(|name| folder.join(name));
    segments
        .filter(small)
        .filter_map(|path| {
            let bytes = fs::read(&path).ok()?;
            Some((path, bytes))
        })
        .collect()
}

/// Writes new segments and deletes unused files. Each file is written atomically, so a crash leaves no partial segment.
pub(super) fn write_segments(folder: &Path, index: &Index) -> io::Result<()> {
    for folder in folder.parent().into_iter().chain([folder]) {
        create_private_subdir(folder).map_err(io::Error::other)?;
    }
    let name = |id: &SegmentId| format!("{id}.{SEGMENT_EXTENSION}");
    let there = entry_names(folder);
    let known = there
        .iter()
        .filter_map(|name| {
            let (id, ending) = name.split_once('.')?;
            u64::from_str_radix(id, 16).ok().filter(|_| ending == SEGMENT_EXTENSION).map(SegmentId)
        })
        .collect();
    let saved = index.save(&known);
    for (id, bytes) in &saved.new_segments {
        let mut file = tempfile::Builder::new().prefix(TEMP_PREFIX).tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.persist(folder.join(name(id))).map_err(|error| error.error)?;
    }
    let used: HashSet<String> = saved.in_use.iter().map(name).collect();
    for old in there {
        let path = folder.join(&old);
        if (is_segment(&old) && !used.contains(&old)) || (old.starts_with(TEMP_PREFIX) && is_abandoned(&path)) {
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
}

/// Whether an index folder contains segments of any store.
pub(crate) fn holds_segments(index: &Path) -> bool {
    let paths = |folder: &Path, names: Vec<String>| names.into_iter().map(|name| folder.join(name)).collect::<Vec<_>>();
    let generations = paths(index, entry_names(index)).into_iter();
    let mut bases = generations.flat_map(|generation| paths(&generation, own_entry_names(&generation)));
    bases.any(|base| own_entry_names(&base).iter().any(|name| is_segment(name)))
}

/// Deletes the segments of bases without documents.
pub(super) fn sweep_bases(folder: &Path, used: &HashSet<String>) {
    let unused = |name: &String| name.starts_with(BASE_PREFIX) && !used.contains(name);
    for name in own_entry_names(folder).into_iter().filter(unused) {
        remove_segments(&folder.join(name));
    }
}

/// Deletes the sibling folders, which belong to a store or model that is not in use. Another process may have one of
/// them open: it has already loaded the segments, and writes them again.
pub(super) fn sweep_other_generations(folder: &Path) {
    let (Some(parent), Some(own)) = (folder.parent(), folder.file_name()) else { return };
    let is_generation = |name: &String| {
        let is_hex = name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_hex && name.len() == own.len() && name.as_str() != own
    };
    for other in entry_names(parent).into_iter().filter(is_generation).map(|name| parent.join(name)) {
        for base in own_entry_names(&other).into_iter().filter(|name| name.starts_with(BASE_PREFIX)) {
            remove_segments(&other.join(base));
        }
        // Fails if the folder contains foreign files.
        let _ = fs::remove_dir(other);
    }
}

/// Deletes our files, and the folder if it is empty afterwards.
fn remove_segments(folder: &Path) {
    for name in own_entry_names(folder).into_iter().filter(|name| is_segment(name) || name.starts_with(TEMP_PREFIX)) {
        let _ = fs::remove_file(folder.join(name));
    }
    let _ = fs::remove_dir(folder);
}

/// The entries of a folder that corbie created; none if a link is in its place.
fn own_entry_names(folder: &Path) -> Vec<String> {
    if folder.is_symlink() { Vec::new() } else { entry_names(folder) }
}

fn entry_names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn is_segment(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == SEGMENT_EXTENSION)
}

fn is_abandoned(path: &Path) -> bool {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > TEMP_FILE_MAX_AGE))
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder with a segment and a file that a crash left, in the folder of a base.
    fn foreign_index() -> tempfile::TempDir {
        let foreign = tempfile::tempdir().unwrap();
        let base = foreign.path().join("base-default");
        fs::create_dir(&base).unwrap();
        for file in ["1.segment", ".new-1"] {
            fs::write(base.join(file), "of somebody else").unwrap();
        }
        foreign
    }

    #[test]
    fn s14_links_in_an_index_folder_lead_to_no_foreign_files() {
        let (place, foreign) = (tempfile::tempdir().unwrap(), foreign_index());
        let (own, other) = ("0123456789abcdef", "fedcba9876543210");
        let index = place.path().join("index");
        fs::create_dir_all(index.join(own)).unwrap();
        let foreign_base = foreign.path().join("base-default");
        symlink(foreign.path(), index.join(other)).unwrap();
        symlink(&foreign_base, index.join(own).join("base-linked")).unwrap();
        assert!(!holds_segments(&index));
        assert!(read_segments(&index.join(own).join("base-linked")).is_empty());
        sweep_bases(&index.join(own), &HashSet::new());
        sweep_other_generations(&index.join(own));
        assert!(["1.segment", ".new-1"].iter().all(|file| foreign_base.join(file).exists()));
        let empty = Index::new(0);
        for linked in [index.join(own).join("base-linked"), index.join(other).join("base-default")] {
            let refused = write_segments(&linked, &empty).unwrap_err();
            assert!(refused.to_string().contains("symbolic link"), "{refused}");
        }
        write_segments(&index.join(own).join("base-default"), &empty).unwrap();
    }
}
