//! Watcher state of one base between two scans. No I/O.
//!
//! The store has the state that must survive a restart. This module has the state that detects that a file is unchanged
//! between two scans, that it is missing in two scans, and that a retry is due.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use super::scan::ScannedFile;
use crate::document::{BaseName, DocumentId};
use crate::store::{FileId, FileStamp, IngestState, RowUpdate, WatchedFile};
use crate::task::TaskId;
use corbie_config::knowledge::WatchedFolder;
use corbie_util::backoff::Backoff;

/// The watched folders of one base. They are scanned together, so that a file in two of them counts once.
#[derive(Debug)]
pub(super) struct WatchState {
    pub(super) base: BaseName,
    pub(super) folders: Vec<FolderState>,
    /// Row of each file, as last read from the store.
    pub(super) rows: HashMap<String, WatchedFile>,
    /// Whether `rows` is up to date: no task was in progress at the last scan, so no process had a reason to change the
    /// rows.
    pub(super) is_current: bool,
    /// Whether the last task could not be submitted. Logged once.
    pub(super) is_queue_full: bool,
    /// Documents without a row that have no device yet. `None` until the store has been queried.
    pub(super) untracked: Option<Vec<WatchedFile>>,
    /// Modification time and size of each file in the last scan.
    previous_stamps: HashMap<String, FileStamp>,
    /// Number of consecutive scans in which a file was missing.
    pub(super) missed_scans: HashMap<String, u32>,
    retries: HashMap<String, RetryState>,
}

#[derive(Debug)]
pub(super) struct FolderState {
    pub(super) watch: WatchedFolder,
    /// Canonical path, once the folder exists.
    pub(super) root: PathBuf,
    /// Whether `root` is canonical. It does not change afterwards.
    pub(super) is_resolved: bool,
    /// Whether the path was a symlink or resolved to something other than `root` in the last scan. Logged once.
    pub(super) is_moved: bool,
    /// Identity of the folder when it last contained files.
    pub(super) recorded_id: Option<FileId>,
    /// Whether a missing entry means that the file was deleted. False for an unreadable folder, and for an empty folder
    /// that replaced it.
    pub(super) is_authoritative: bool,
    /// Whether the last scan failed. Logged once.
    pub(super) is_warned: bool,
    /// Number of symlinks that led outside in the last scan. Logged once.
    pub(super) leaving: u64,
}

/// Retry state of a file that could not be added.
#[derive(Debug, Clone, Copy)]
struct RetryState {
    stamp: FileStamp,
    attempts: u32,
    /// Time of the next attempt. `None` means at the next start.
    retry_at: Option<Instant>,
}

const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(600);
const RETRY_BACKOFF: Backoff = Backoff::new(INITIAL_BACKOFF, MAX_BACKOFF);

impl WatchState {
    /// Groups the configured folders by base.
    pub(super) fn group_by_base(watches: Vec<WatchedFolder>) -> Vec<WatchState> {
        let mut all: Vec<WatchState> = Vec::new();
        for watch in watches {
            let Ok(base) = watch.knowledge_base.parse::<BaseName>() else { continue };
            let folder = FolderState::new(watch);
            match all.iter_mut().find(|followed| followed.base == base) {
                Some(followed) => followed.folders.push(folder),
                None => all.push(WatchState::new(base, vec![folder])),
            }
        }
        all
    }

    fn new(base: BaseName, folders: Vec<FolderState>) -> WatchState {
        WatchState {
            base,
            folders,
            rows: HashMap::new(),
            is_current: false,
            is_queue_full: false,
            untracked: None,
            previous_stamps: HashMap::new(),
            missed_scans: HashMap::new(),
            retries: HashMap::new(),
        }
    }

    /// Row updates for files that have changed and were unchanged between the last two scans.
    pub(super) fn changes(&self, files: &HashMap<String, ScannedFile>) -> Vec<RowUpdate> {
        let change = |(path, file): (&String, &ScannedFile)| {
            let before = self.rows.get(path);
            let standing = match before {
                // The previous version is still being added, and must not overwrite the new one.
                Some(WatchedFile { state: IngestState::InProgress(_), .. }) => return None,
                Some(row) if row.stamp == file.stamp && row.device == file.device => return None,
                Some(row) if row.stamp == file.stamp => row.state,
                _ if self.previous_stamps.get(path) == Some(&file.stamp) => IngestState::Pending,
                _ => return None,
            };
            let ScannedFile { stamp: look, device, inode, ctime: changed, .. } = *file;
            let after = WatchedFile { path: path.clone(), stamp: look, device, inode, ctime: changed, state: standing };
            Some(RowUpdate { before: before.cloned(), after })
        };
        files.iter().filter_map(change).chain(self.renumber_devices(files)).collect()
    }

    /// Files to add now, sorted by name.
    pub(super) fn due(&self, files: &HashMap<String, ScannedFile>, now: Instant) -> Vec<String> {
        let mut due: Vec<String> = files.keys().filter(|path| self.is_due(path, &files[*path], now)).cloned().collect();
        due.sort_unstable();
        due
    }

    fn is_due(&self, path: &str, file: &ScannedFile, now: Instant) -> bool {
        let waits = self.rows.get(path).is_some_and(|row| row.stamp == file.stamp && row.state == IngestState::Pending);
        let rests = |again: &RetryState| again.stamp == file.stamp && again.retry_at.is_none_or(|at| now < at);
        waits && !self.retries.get(path).is_some_and(rests)
    }

    /// Files that are being added, with their tasks.
    pub(super) fn files_in_progress(&self) -> Vec<(WatchedFile, TaskId)> {
        let going = self.rows.values().filter_map(|row| match row.state {
            IngestState::InProgress(task) => Some((row.clone(), task)),
            IngestState::Pending | IngestState::Done(_) => None,
        });
        going.collect()
    }

    /// Schedules a retry with backoff after a transient failure. Returns whether it was the first failure.
    pub(super) fn schedule_retry(&mut self, path: &str, look: FileStamp, now: Instant) -> bool {
        let tries = self.retries.get(path).filter(|again| again.stamp == look).map_or(0, |again| again.attempts) + 1;
        let retry_at = Some(now + RETRY_BACKOFF.delay_after(tries));
        self.retries.insert(path.to_owned(), RetryState { stamp: look, attempts: tries, retry_at });
        tries == 1
    }

    /// Suspends a file that the settings reject until it changes, or until the next start with possibly different
    /// settings.
    pub(super) fn suspend_until_changed(&mut self, path: &str, look: FileStamp) {
        self.retries.insert(path.to_owned(), RetryState { stamp: look, attempts: 0, retry_at: None });
    }

    /// Whether a file is waiting to be added or being added.
    pub(super) fn is_busy(&self, path: &str, file: &ScannedFile, now: Instant) -> bool {
        match self.rows.get(path) {
            Some(WatchedFile { state: IngestState::InProgress(_), .. }) => true,
            Some(row) if row.stamp == file.stamp => self.is_due(path, file, now),
            _ => true,
        }
    }

    /// Another existing file with the same document, which was skipped as a duplicate.
    pub(super) fn duplicate_of(
        &self,
        document: DocumentId,
        files: &HashMap<String, ScannedFile>,
    ) -> Option<&WatchedFile> {
        let is_copy =
            |row: &&WatchedFile| row.state == IngestState::Done(Some(document)) && files.contains_key(&row.path);
        self.rows.values().filter(is_copy).min_by(|one, other| one.path.cmp(&other.path))
    }

    /// Finishes a scan.
    pub(super) fn finish_scan(&mut self, files: &HashMap<String, ScannedFile>, now: Instant) {
        let is_busy = files.iter().any(|(path, file)| self.is_busy(path, file, now));
        self.is_current = !is_busy && self.missed_scans.is_empty() && self.files_in_progress().is_empty();
        self.previous_stamps = files.iter().map(|(path, file)| (path.clone(), file.stamp)).collect();
        self.retries.retain(|path, again| files.get(path).is_some_and(|file| file.stamp == again.stamp));
    }
}

impl FolderState {
    fn new(watch: WatchedFolder) -> FolderState {
        let root = std::path::absolute(&watch.path).unwrap_or_else(|_| watch.path.clone());
        FolderState {
            watch,
            root,
            is_resolved: false,
            is_moved: false,
            recorded_id: None,
            is_authoritative: false,
            is_warned: false,
            leaving: 0,
        }
    }

    /// Whether a scan of this folder would list the path.
    pub(super) fn covers(&self, path: &Path) -> bool {
        match self.watch.recursive {
            true => path.starts_with(&self.root),
            false => path.parent() == Some(&self.root),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: FileStamp = FileStamp { modified: Some(1), size: 10 };

    fn folder(path: &str, recursive: bool, vouches: bool) -> FolderState {
        let watch = WatchedFolder { path: path.into(), recursive, knowledge_base: "default".into() };
        FolderState { is_authoritative: vouches, ..FolderState::new(watch) }
    }

    /// Watcher state with one row.
    fn followed(folders: Vec<FolderState>, path: &str, standing: IngestState) -> WatchState {
        let mut followed = WatchState::new(BaseName::default(), folders);
        let row = WatchedFile { path: path.into(), stamp: STAMP, device: 1, inode: 9, ctime: Some(1), state: standing };
        followed.rows.insert(path.into(), row);
        followed
    }

    fn files(files: &[(&str, FileStamp)]) -> HashMap<String, ScannedFile> {
        let file = |path: &str, look| ScannedFile {
            path: path.into(),
            within: Path::new("/w").into(),
            stamp: look,
            device: 1,
            inode: 9,
            ctime: Some(1),
        };
        files.iter().map(|&(path, look)| (path.to_owned(), file(path, look))).collect()
    }

    /// Number of missing files in each of several identical scans.
    fn missing<const N: usize>(followed: &mut WatchState, files: &HashMap<String, ScannedFile>) -> [usize; N] {
        [(); N].map(|()| {
            let missing = followed.missing(files, Instant::now()).len();
            followed.finish_scan(files, Instant::now());
            missing
        })
    }

    #[test]
    fn a_file_is_missing_after_two_looks_in_a_row() {
        let mut followed = followed(vec![folder("/w", true, true)], "/w/a/b.txt", IngestState::Done(None));
        assert_eq!(missing(&mut followed, &files(&[])), [0]);
        assert_eq!(missing(&mut followed, &files(&[("/w/a/b.txt", STAMP)])), [0]);
        assert_eq!(missing(&mut followed, &files(&[])), [0, 1]);
    }

    #[test]
    fn all_folders_that_would_show_a_file_must_say_that_it_is_not_there() {
        for (folders, expected) in [
            (vec![folder("/w", true, true), folder("/w/disk", true, true)], 1),
            (vec![folder("/w", true, true), folder("/w/disk", true, false)], 0),
            (vec![folder("/w", true, true), folder("/other", true, false)], 1),
            (vec![folder("/w", false, true)], 0),
            (vec![folder("/w/disk", false, true)], 1),
            (vec![], 0),
        ] {
            let shown = format!("{folders:?}");
            let mut followed = followed(folders, "/w/disk/a.txt", IngestState::Done(None));
            assert_eq!(missing(&mut followed, &files(&[])), [0, expected], "{shown}");
        }
    }

    #[test]
    fn a_file_waits_for_one_of_its_size_that_has_just_appeared() {
        let mut followed = followed(vec![folder("/w", true, true)], "/w/old.txt", IngestState::Done(None));
        let new = files(&[("/w/new.txt", STAMP)]);
        assert_eq!(missing(&mut followed, &new), [0, 0, 0]);
        let turns = followed.changes(&new);
        assert_eq!((turns.len(), turns[0].after.state), (1, IngestState::Pending));
        let settled = WatchedFile { state: IngestState::Done(None), ..turns[0].after.clone() };
        followed.rows.insert(settled.path.clone(), settled);
        assert_eq!(missing(&mut followed, &new), [1]);
    }

    #[test]
    fn a_file_that_is_being_added_is_left_until_that_has_ended() {
        let going = IngestState::InProgress(TaskId::random());
        let mut followed = followed(vec![folder("/w", true, true)], "/w/a.txt", going);
        let changed = files(&[("/w/a.txt", FileStamp { modified: Some(0), ..STAMP })]);
        followed.finish_scan(&changed, Instant::now());
        assert_eq!(followed.changes(&changed), []);
        assert_eq!(missing(&mut followed, &files(&[])), [0, 0]);
    }

    #[test]
    fn an_older_time_is_a_change_once_it_stays() {
        let mut followed = followed(vec![folder("/w", true, true)], "/w/a.txt", IngestState::Done(None));
        let changed = files(&[("/w/a.txt", FileStamp { modified: Some(0), ..STAMP })]);
        assert_eq!(followed.changes(&changed), []);
        followed.finish_scan(&changed, Instant::now());
        assert_eq!(followed.changes(&changed)[0].after.state, IngestState::Pending);
    }

    #[test]
    fn what_could_not_be_added_is_tried_again_less_and_less_often() {
        let mut followed = followed(vec![folder("/w", true, true)], "/w/a.txt", IngestState::Pending);
        let (files, mut now) = (files(&[("/w/a.txt", STAMP)]), Instant::now());
        assert_eq!(followed.due(&files, now), ["/w/a.txt"]);
        assert!(followed.schedule_retry("/w/a.txt", STAMP, now), "the first time is told");
        assert_eq!(followed.due(&files, now), [""; 0]);
        now += INITIAL_BACKOFF;
        assert_eq!(followed.due(&files, now), ["/w/a.txt"]);
        for _ in 0..40 {
            assert!(!followed.schedule_retry("/w/a.txt", STAMP, now));
        }
        assert_eq!(followed.due(&files, now + MAX_BACKOFF / 2), [""; 0]);
        assert_eq!(followed.due(&files, now + MAX_BACKOFF), ["/w/a.txt"]);
        followed.suspend_until_changed("/w/a.txt", STAMP);
        assert_eq!(followed.due(&files, now + MAX_BACKOFF * 9), [""; 0]);
        followed.suspend_until_changed("/w/a.txt", FileStamp { size: 11, ..STAMP });
        assert_eq!(followed.due(&files, now), ["/w/a.txt"], "it has changed since");
    }
}
