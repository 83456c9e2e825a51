//! Device numbers of missing files, inferred from other files. No I/O.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::scan::ScannedFile;
use super::state::WatchState;
use crate::store::{RowUpdate, WatchedFile};

impl WatchState {
    /// Device numbers may change at a restart. Unchanged files reveal the new number of their device, which then also
    /// applies to missing files of that device. A copy reveals nothing: a disk that is being restored is a different
    /// one, and does not have all files yet.
    pub(super) fn renumber_devices(&self, files: &HashMap<String, ScannedFile>) -> Vec<RowUpdate> {
        let present: HashSet<u64> = files.values().map(|file| file.device).collect();
        let number = |(path, file): (&String, &ScannedFile)| {
            let row = self.rows.get(path)?;
            let tells = is_same_file(row, file) && !present.contains(&row.device);
            tells.then_some((row.device, file.device))
        };
        let numbers: HashMap<u64, u64> = files.iter().filter_map(number).collect();
        let renumber = |row: &WatchedFile| {
            let after = WatchedFile { device: *numbers.get(&row.device)?, ..row.clone() };
            Some(RowUpdate { before: Some(row.clone()), after })
        };
        self.rows.values().filter(|row| !files.contains_key(&row.path)).filter_map(renumber).collect()
    }

    /// Rows to create for documents without a row, and the documents that remain. A missing file gets a row once its
    /// folder is certainly mounted: the folder contains other files, or it is the watched folder itself.
    pub(super) fn track_untracked(
        &self,
        strays: Vec<WatchedFile>,
        files: &HashMap<String, ScannedFile>,
    ) -> (Vec<RowUpdate>, Vec<WatchedFile>) {
        let (mut turns, mut left) = (Vec::new(), Vec::new());
        if strays.is_empty() {
            return (turns, left);
        }
        let mut devices: HashMap<&Path, u64> = HashMap::new();
        for folder in self.folders.iter().filter(|folder| folder.is_authoritative) {
            devices.extend(folder.recorded_id.map(|place| (folder.root.as_path(), place.device)));
        }
        for (path, file) in files {
            devices.extend(Path::new(path).parent().map(|folder| (folder, file.device)));
        }
        // An existing file gets its row from the regular scan.
        for stray in strays.into_iter().filter(|stray| !self.rows.contains_key(&stray.path)) {
            let path = Path::new(&stray.path);
            let is_missing = !files.contains_key(&stray.path) && self.is_authoritative_for(path);
            let device = path.parent().filter(|_| is_missing).and_then(|folder| devices.get(folder).copied());
            match device {
                Some(device) => turns.push(RowUpdate { before: None, after: WatchedFile { device, ..stray } }),
                None => left.push(stray),
            }
        }
        (turns, left)
    }
}

/// Whether a file is identical to the picked-up one. A copy may have the same time and size, but has a later ctime.
fn is_same_file(row: &WatchedFile, file: &ScannedFile) -> bool {
    let is_known = row.inode != 0;
    is_known && row.stamp == file.stamp && row.inode == file.inode && row.ctime == file.ctime
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::DocumentId;
    use crate::store::{FileId, FileStamp, IngestState};
    use corbie_config::knowledge::WatchedFolder;

    const STAMP: FileStamp = FileStamp { modified: Some(1), size: 10 };

    /// A readable folder without rows.
    fn followed() -> WatchState {
        let watch = WatchedFolder { path: "/w".into(), recursive: true, knowledge_base: "default".into() };
        let mut followed = WatchState::group_by_base(vec![watch]).remove(0);
        followed.folders[0].is_authoritative = true;
        followed.folders[0].recorded_id = Some(FileId { device: 1, inode: 2 });
        followed
    }

    fn row(path: &str, device: u64) -> WatchedFile {
        let standing = IngestState::Done(Some(DocumentId::random()));
        WatchedFile { path: path.into(), stamp: STAMP, device, inode: 9, ctime: Some(5), state: standing }
    }

    fn file(path: &str, device: u64) -> (String, ScannedFile) {
        let within = std::path::Path::new("/w").into();
        (path.into(), ScannedFile { path: path.into(), within, stamp: STAMP, device, inode: 9, ctime: Some(5) })
    }

    /// Files that get a new device number.
    fn renumbered(followed: &WatchState, files: &HashMap<String, ScannedFile>) -> Vec<(String, u64)> {
        followed.renumber_devices(files).into_iter().map(|turn| (turn.after.path, turn.after.device)).collect()
    }

    #[test]
    fn files_that_are_there_tell_the_new_number_of_a_device_for_those_that_are_not() {
        let mut followed = followed();
        let rows = [row("/w/a.txt", 1), row("/w/gone.txt", 1), row("/w/disk/b.txt", 7)];
        followed.rows.extend(rows.map(|row| (row.path.clone(), row)));
        assert!(renumbered(&followed, &HashMap::from([file("/w/a.txt", 1)])).is_empty());
        let there = HashMap::from([file("/w/a.txt", 2)]);
        assert_eq!(renumbered(&followed, &there), [("/w/gone.txt".to_owned(), 2)]);
        let changes = followed.changes(&there).into_iter().map(|turn| (turn.after.path, turn.after.device));
        assert_eq!(changes.collect::<Vec<_>>(), [("/w/a.txt".to_owned(), 2), ("/w/gone.txt".to_owned(), 2)]);
    }

    #[test]
    fn a_disk_that_is_being_restored_tells_nothing_of_the_one_it_stands_for() {
        let mut followed = followed();
        let rows = [row("/w/a.txt", 1), row("/w/b.txt", 1), row("/w/not-yet.txt", 1)];
        followed.rows.extend(rows.map(|row| (row.path.clone(), row)));
        let (path, restored) = file("/w/a.txt", 2);
        for copy in [
            ScannedFile { inode: 10, ..restored.clone() },
            ScannedFile { ctime: Some(6), ..restored.clone() },
            ScannedFile { stamp: FileStamp { size: 11, ..STAMP }, ..restored.clone() },
        ] {
            let there = HashMap::from([(path.clone(), copy)]);
            assert!(renumbered(&followed, &there).is_empty(), "{there:?}");
        }
        let there = HashMap::from([(path.clone(), restored.clone()), file("/w/b.txt", 1)]);
        assert!(renumbered(&followed, &there).is_empty(), "the old number is in use");
        for row in followed.rows.values_mut() {
            row.inode = 0;
        }
        let there = HashMap::from([(path, ScannedFile { inode: 0, ..restored })]);
        assert!(renumbered(&followed, &there).is_empty(), "nobody knows which file it is");
    }

    #[test]
    fn a_document_that_nobody_remembers_is_placed_where_its_folder_is_there_for_sure() {
        let mut followed = followed();
        followed.rows.insert("/w/known.txt".into(), row("/w/known.txt", 1));
        let files = HashMap::from([file("/w/there.txt", 1), file("/w/deep/there.txt", 3)]);
        let names = [
            "/w/known.txt",
            "/w/gone.txt",
            "/w/there.txt",
            "/w/deep/gone.txt",
            // May be the mount point of an unmounted disk.
            "/w/disk/gone.txt",
            "/elsewhere/gone.txt",
        ];
        let strays = || Vec::from(names.map(|name| row(name, 0)));
        let (turns, left) = followed.track_untracked(strays(), &files);
        let placed: Vec<(&str, u64)> = turns.iter().map(|turn| (turn.after.path.as_str(), turn.after.device)).collect();
        assert_eq!(placed, [("/w/gone.txt", 1), ("/w/deep/gone.txt", 3)]);
        assert!(turns.iter().all(|turn| turn.before.is_none()));
        let left: Vec<&str> = left.iter().map(|stray| stray.path.as_str()).collect();
        assert_eq!(left, ["/w/there.txt", "/w/disk/gone.txt", "/elsewhere/gone.txt"]);
        followed.folders[0].is_authoritative = false;
        assert_eq!(followed.track_untracked(strays(), &files).0, []);
    }
}
