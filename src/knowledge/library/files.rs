//! The files of indexes: a folder for each base, with its segments.
//!
//! They have the words of documents in them. So what is of no use any more is taken away, and with it what somebody
//! wanted to be forgotten: segments of bases that are empty, and all that was made for another store or another model.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use corbie_index::{Index, SegmentId};

use crate::private_folder::private_folder;

/// What the folder of a base begins with.
pub(super) const BASE: &str = "base-";
/// Files with this ending are ours.
const ENDING: &str = "segment";
/// What a file is called before it is whole.
const UNFINISHED: &str = ".new-";
/// A file that was begun so long ago will never be whole: the program was ended while it wrote.
const GIVEN_UP: Duration = Duration::from_secs(3600);
/// A segment is never larger than this.
const LARGEST: u64 = 4 << 30;

/// What there is; a file that cannot be read is one that is not there.
pub(super) fn read(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let small = |path: &PathBuf| fs::metadata(path).is_ok_and(|metadata| metadata.len() <= LARGEST);
    let segments = names(folder).into_iter().filter(|name| is_segment(name)).map(|name| folder.join(name));
    segments
        .filter(small)
        .filter_map(|path| {
            let bytes = fs::read(&path).ok()?;
            Some((path, bytes))
        })
        .collect()
}

/// Writes what is in no file, and removes what is not in use. Each file is whole or not there, however the program ends.
pub(super) fn write(folder: &Path, index: &Index) -> io::Result<()> {
    private_folder(folder)?;
    let name = |id: &SegmentId| format!("{id}.{ENDING}");
    let there = names(folder);
    let known = there
        .iter()
        .filter_map(|name| {
            let (id, ending) = name.split_once('.')?;
            u64::from_str_radix(id, 16).ok().filter(|_| ending == ENDING).map(SegmentId)
        })
        .collect();
    let saved = index.save(&known);
    for (id, bytes) in &saved.fresh {
        let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.persist(folder.join(name(id))).map_err(|error| error.error)?;
    }
    let used: HashSet<String> = saved.in_use.iter().map(name).collect();
    for old in there {
        let path = folder.join(&old);
        if (is_segment(&old) && !used.contains(&old)) || (old.starts_with(UNFINISHED) && is_given_up(&path)) {
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
}

/// Whether a folder of indexes has segments of any store.
pub(in crate::knowledge) fn holds_segments(index: &Path) -> bool {
    let within = |folder: &Path| names(folder).into_iter().map(|name| folder.join(name)).collect::<Vec<_>>();
    let bases = within(index).into_iter().flat_map(|generation| within(&generation));
    bases.into_iter().any(|base| names(&base).iter().any(|name| is_segment(name)))
}

/// Empties the folders of bases that have no documents.
pub(super) fn sweep_bases(folder: &Path, used: &HashSet<String>) {
    for name in names(folder).into_iter().filter(|name| name.starts_with(BASE) && !used.contains(name)) {
        empty(&folder.join(name));
    }
}

/// Empties the folders beside this one, which were made for a store or a model that is not in use. Another process may
/// have one of them open: it has read it, and writes it anew.
pub(super) fn sweep_others(folder: &Path) {
    let (Some(parent), Some(own)) = (folder.parent(), folder.file_name()) else { return };
    let is_generation = |name: &String| {
        let is_hex = name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_hex && name.len() == own.len() && name.as_str() != own
    };
    for other in names(parent).into_iter().filter(is_generation).map(|name| parent.join(name)) {
        for base in names(&other).into_iter().filter(|name| name.starts_with(BASE)) {
            empty(&other.join(base));
        }
        // Fails where somebody else has put something.
        let _ = fs::remove_dir(other);
    }
}

/// Removes what we wrote, and the folder if that was all.
fn empty(folder: &Path) {
    for name in names(folder).into_iter().filter(|name| is_segment(name) || name.starts_with(UNFINISHED)) {
        let _ = fs::remove_file(folder.join(name));
    }
    let _ = fs::remove_dir(folder);
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn is_segment(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == ENDING)
}

fn is_given_up(path: &Path) -> bool {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > GIVEN_UP))
}
