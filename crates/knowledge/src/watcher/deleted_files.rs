//! Decides which files of watched folders were deleted, and not just renamed, unmounted or temporarily missing.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use tokio::time::Instant;

use super::scan::{ScannedFile, file_id};
use super::state::WatchState;
use crate::store::{IngestState, WatchedFile};

/// Number of consecutive scans that must miss a file before it counts as deleted.
const MISSED_SCANS_UNTIL_REMOVED: u32 = 2;

impl WatchState {
    /// Files that count as deleted. A file is retained while its content may have just appeared under another name,
    /// because a moved file keeps its document.
    pub(super) fn missing(&mut self, files: &HashMap<String, ScannedFile>, now: Instant) -> Vec<WatchedFile> {
        let moving: HashSet<u64> = files
            .iter()
            .filter(|(path, file)| self.is_busy(path, file, now))
            .map(|(_, file)| file.stamp.size)
            .collect();
        let mut missing = Vec::new();
        let mut missed = HashMap::new();
        for (path, row) in self.rows.iter().filter(|(path, _)| !files.contains_key(*path)) {
            if !self.is_authoritative_for(Path::new(path)) {
                continue;
            }
            let looks = self.missed_scans.get(path).map_or(1, |looks| looks.saturating_add(1));
            missed.insert(path.clone(), looks);
            let is_going = matches!(row.state, IngestState::InProgress(_));
            if looks >= MISSED_SCANS_UNTIL_REMOVED && !is_going && !moving.contains(&row.stamp.size) {
                missing.push(row.clone());
            }
        }
        self.missed_scans = missed;
        missing
    }

    /// Whether all folders that cover a file report it as missing.
    pub(super) fn is_authoritative_for(&self, path: &Path) -> bool {
        let mut covering = self.folders.iter().filter(|folder| folder.covers(path)).peekable();
        covering.peek().is_some() && covering.all(|folder| folder.is_authoritative)
    }
}

/// Whether a file was deleted. False if its disk is not mounted or its state cannot be determined: the nearest existing
/// ancestor must be on the recorded device.
pub(super) fn is_deleted(path: &Path, device: u64) -> bool {
    let is_missing = |kind| matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory);
    if !fs::symlink_metadata(path).is_err_and(|error| is_missing(error.kind())) {
        return false;
    }
    for folder in path.ancestors().skip(1) {
        match fs::metadata(folder) {
            Ok(metadata) => return file_id(&metadata).device == device,
            Err(error) if is_missing(error.kind()) => {}
            Err(_) => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_gone_only_where_its_device_is_still_there() {
        let folder = tempfile::tempdir().unwrap();
        let device = file_id(&fs::metadata(folder.path()).unwrap()).device;
        let deep = folder.path().join("a/b/c.txt");
        assert!(is_deleted(&deep, device), "its folders are gone with it");
        assert!(!is_deleted(&deep, device.wrapping_add(1)), "another disk is there");
        fs::create_dir_all(deep.parent().unwrap()).unwrap();
        fs::write(&deep, "text").unwrap();
        assert!(!is_deleted(&deep, device));
        assert!(is_deleted(&deep.join("below.txt"), device), "a file stands where its folder was");
    }
}
