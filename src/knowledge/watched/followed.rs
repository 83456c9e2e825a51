//! Watcher state of one base between two scans. No I/O.
//!
//! The store has the state that must survive a restart. This module has the state that detects that a file is unchanged
//! between two scans, that it is missing in two scans, and that a retry is due.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use super::look::File;
use crate::config::knowledge::Watch;
use crate::knowledge::document::{BaseName, DocumentId};
use crate::knowledge::store::{Look, Place, Standing, Turn, Watched};
use crate::knowledge::task::TaskId;

/// The watched folders of one base. They are scanned together, so that a file in two of them counts once.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) base: BaseName,
    pub(super) folders: Vec<Folder>,
    /// Row of each file, as last read from the store.
    pub(super) rows: HashMap<String, Watched>,
    /// Whether `rows` is up to date: no task was in progress at the last scan, so no process had a reason to change the
    /// rows.
    pub(super) is_current: bool,
    /// Whether the last task could not be submitted. Logged once.
    pub(super) is_full: bool,
    /// Documents without a row that have no device yet. `None` until the store has been queried.
    pub(super) strays: Option<Vec<Watched>>,
    /// Modification time and size of each file in the last scan.
    last: HashMap<String, Look>,
    /// Number of consecutive scans in which a file was missing.
    missed: HashMap<String, u32>,
    again: HashMap<String, Again>,
}

#[derive(Debug)]
pub(super) struct Folder {
    pub(super) watch: Watch,
    /// Canonical path, once the folder exists.
    pub(super) root: PathBuf,
    /// Whether `root` is canonical. It does not change afterwards.
    pub(super) is_resolved: bool,
    /// Whether the path was a symlink or resolved to something other than `root` in the last scan. Logged once.
    pub(super) is_moved: bool,
    /// Identity of the folder when it last contained files.
    pub(super) recorded: Option<Place>,
    /// Whether a missing entry means that the file was deleted. False for an unreadable folder, and for an empty folder
    /// that replaced it.
    pub(super) vouches: bool,
    /// Whether the last scan failed. Logged once.
    pub(super) told: bool,
    /// Number of symlinks that led outside in the last scan. Logged once.
    pub(super) leaving: u64,
}

/// Retry state of a file that could not be added.
#[derive(Debug, Clone, Copy)]
struct Again {
    look: Look,
    tries: u32,
    /// Time of the next attempt. `None` means at the next start.
    at: Option<Instant>,
}

/// Number of consecutive scans that must miss a file before it counts as deleted.
const LOOKS: u32 = 2;
/// Initial and maximum backoff. It doubles with each attempt.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

impl Followed {
    /// Groups the configured folders by base.
    pub(super) fn all(watches: Vec<Watch>) -> Vec<Followed> {
        let mut all: Vec<Followed> = Vec::new();
        for watch in watches {
            let Ok(base) = watch.knowledge_base.parse::<BaseName>() else { continue };
            let folder = Folder::new(watch);
            match all.iter_mut().find(|followed| followed.base == base) {
                Some(followed) => followed.folders.push(folder),
                None => all.push(Followed::new(base, vec![folder])),
            }
        }
        all
    }

    fn new(base: BaseName, folders: Vec<Folder>) -> Followed {
        Followed {
            base,
            folders,
            rows: HashMap::new(),
            is_current: false,
            is_full: false,
            strays: None,
            last: HashMap::new(),
            missed: HashMap::new(),
            again: HashMap::new(),
        }
    }

    /// Row updates for files that have changed and were unchanged between the last two scans.
    pub(super) fn changes(&self, files: &HashMap<String, File>) -> Vec<Turn> {
        let change = |(path, file): (&String, &File)| {
            let before = self.rows.get(path);
            let standing = match before {
                // The previous version is still being added, and must not overwrite the new one.
                Some(Watched { standing: Standing::Going(_), .. }) => return None,
                Some(row) if row.look == file.look && row.device == file.device => return None,
                Some(row) if row.look == file.look => row.standing,
                _ if self.last.get(path) == Some(&file.look) => Standing::Waiting,
                _ => return None,
            };
            let File { look, device, inode, changed, .. } = *file;
            let after = Watched { path: path.clone(), look, device, inode, changed, standing };
            Some(Turn { before: before.cloned(), after })
        };
        files.iter().filter_map(change).chain(self.renumbered(files)).collect()
    }

    /// Files to add now, sorted by name.
    pub(super) fn due(&self, files: &HashMap<String, File>, now: Instant) -> Vec<String> {
        let mut due: Vec<String> = files.keys().filter(|path| self.is_due(path, &files[*path], now)).cloned().collect();
        due.sort_unstable();
        due
    }

    fn is_due(&self, path: &str, file: &File, now: Instant) -> bool {
        let waits = self.rows.get(path).is_some_and(|row| row.look == file.look && row.standing == Standing::Waiting);
        let rests = |again: &Again| again.look == file.look && again.at.is_none_or(|at| now < at);
        waits && !self.again.get(path).is_some_and(rests)
    }

    /// Files that are being added, with their tasks.
    pub(super) fn all_going(&self) -> Vec<(Watched, TaskId)> {
        let going = self.rows.values().filter_map(|row| match row.standing {
            Standing::Going(task) => Some((row.clone(), task)),
            Standing::Waiting | Standing::Settled(_) => None,
        });
        going.collect()
    }

    /// Schedules a retry with backoff after a transient failure. Returns whether it was the first failure.
    pub(super) fn put_off(&mut self, path: &str, look: Look, now: Instant) -> bool {
        let tries = self.again.get(path).filter(|again| again.look == look).map_or(0, |again| again.tries) + 1;
        let pause = FIRST_PAUSE.saturating_mul(1 << (tries - 1).min(16)).min(LONGEST_PAUSE);
        self.again.insert(path.to_owned(), Again { look, tries, at: Some(now + pause) });
        tries == 1
    }

    /// Suspends a file that the settings reject until it changes, or until the next start with possibly different
    /// settings.
    pub(super) fn refuse(&mut self, path: &str, look: Look) {
        self.again.insert(path.to_owned(), Again { look, tries: 0, at: None });
    }

    /// Files that count as deleted. A file is retained while its content may have just appeared under another name,
    /// because a moved file keeps its document.
    pub(super) fn missing(&mut self, files: &HashMap<String, File>, now: Instant) -> Vec<Watched> {
        let moving: HashSet<u64> =
            files.iter().filter(|(path, file)| self.is_busy(path, file, now)).map(|(_, file)| file.look.size).collect();
        let mut missing = Vec::new();
        let mut missed = HashMap::new();
        for (path, row) in self.rows.iter().filter(|(path, _)| !files.contains_key(*path)) {
            if !self.is_vouched(Path::new(path)) {
                continue;
            }
            let looks = self.missed.get(path).map_or(1, |looks| looks.saturating_add(1));
            missed.insert(path.clone(), looks);
            let is_going = matches!(row.standing, Standing::Going(_));
            if looks >= LOOKS && !is_going && !moving.contains(&row.look.size) {
                missing.push(row.clone());
            }
        }
        self.missed = missed;
        missing
    }

    /// Whether all folders that cover a file report it as missing.
    pub(super) fn is_vouched(&self, path: &Path) -> bool {
        let mut covering = self.folders.iter().filter(|folder| folder.covers(path)).peekable();
        covering.peek().is_some() && covering.all(|folder| folder.vouches)
    }

    /// Whether a file is waiting to be added or being added.
    fn is_busy(&self, path: &str, file: &File, now: Instant) -> bool {
        match self.rows.get(path) {
            Some(Watched { standing: Standing::Going(_), .. }) => true,
            Some(row) if row.look == file.look => self.is_due(path, file, now),
            _ => true,
        }
    }

    /// Another existing file with the same document, which was skipped as a duplicate.
    pub(super) fn copy_of(&self, document: DocumentId, files: &HashMap<String, File>) -> Option<&Watched> {
        let is_copy =
            |row: &&Watched| row.standing == Standing::Settled(Some(document)) && files.contains_key(&row.path);
        self.rows.values().filter(is_copy).min_by(|one, other| one.path.cmp(&other.path))
    }

    /// Finishes a scan.
    pub(super) fn looked(&mut self, files: &HashMap<String, File>, now: Instant) {
        let is_busy = files.iter().any(|(path, file)| self.is_busy(path, file, now));
        self.is_current = !is_busy && self.missed.is_empty() && self.all_going().is_empty();
        self.last = files.iter().map(|(path, file)| (path.clone(), file.look)).collect();
        self.again.retain(|path, again| files.get(path).is_some_and(|file| file.look == again.look));
    }
}

impl Folder {
    fn new(watch: Watch) -> Folder {
        let root = std::path::absolute(&watch.path).unwrap_or_else(|_| watch.path.clone());
        Folder {
            watch,
            root,
            is_resolved: false,
            is_moved: false,
            recorded: None,
            vouches: false,
            told: false,
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

    const LOOK: Look = Look { modified: Some(1), size: 10 };

    fn folder(path: &str, recursive: bool, vouches: bool) -> Folder {
        let watch = Watch { path: path.into(), recursive, knowledge_base: "default".into() };
        Folder { vouches, ..Folder::new(watch) }
    }

    /// Watcher state with one row.
    fn followed(folders: Vec<Folder>, path: &str, standing: Standing) -> Followed {
        let mut followed = Followed::new(BaseName::default(), folders);
        let row = Watched { path: path.into(), look: LOOK, device: 1, inode: 9, changed: Some(1), standing };
        followed.rows.insert(path.into(), row);
        followed
    }

    fn files(files: &[(&str, Look)]) -> HashMap<String, File> {
        let file = |path: &str, look| File {
            path: path.into(),
            within: Path::new("/w").into(),
            look,
            device: 1,
            inode: 9,
            changed: Some(1),
        };
        files.iter().map(|&(path, look)| (path.to_owned(), file(path, look))).collect()
    }

    /// Number of missing files in each of several identical scans.
    fn missing<const N: usize>(followed: &mut Followed, files: &HashMap<String, File>) -> [usize; N] {
        [(); N].map(|()| {
            let missing = followed.missing(files, Instant::now()).len();
            followed.looked(files, Instant::now());
            missing
        })
    }

    #[test]
    fn a_file_is_missing_after_two_looks_in_a_row() {
        let mut followed = followed(vec![folder("/w", true, true)], "/w/a/b.txt", Standing::Settled(None));
        assert_eq!(missing(&mut followed, &files(&[])), [0]);
        assert_eq!(missing(&mut followed, &files(&[("/w/a/b.txt", LOOK)])), [0]);
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
            let mut followed = followed(folders, "/w/disk/a.txt", Standing::Settled(None));
            assert_eq!(missing(&mut followed, &files(&[])), [0, expected], "{shown}");
        }
    }

    #[test]
    fn a_file_waits_for_one_of_its_size_that_has_just_appeared() {
        let mut followed = followed(vec![folder("/w", true, true)], "/w/old.txt", Standing::Settled(None));
        let new = files(&[("/w/new.txt", LOOK)]);
        assert_eq!(missing(&mut followed, &new), [0, 0, 0]);
        let turns = followed.changes(&new);
        assert_eq!((turns.len(), turns[0].after.standing), (1, Standing::Waiting));
        let settled = Watched { standing: Standing::Settled(None), ..turns[0].after.clone() };
        followed.rows.insert(settled.path.clone(), settled);
        assert_eq!(missing(&mut followed, &new), [1]);
    }

    #[test]
    fn a_file_that_is_being_added_is_left_until_that_has_ended() {
        let going = Standing::Going(TaskId::random());
        let mut followed = followed(vec![folder("/w", true, true)], "/w/a.txt", going);
        let changed = files(&[("/w/a.txt", Look { modified: Some(0), ..LOOK })]);
        followed.looked(&changed, Instant::now());
        assert_eq!(followed.changes(&changed), []);
        assert_eq!(missing(&mut followed, &files(&[])), [0, 0]);
    }

    #[test]
    fn an_older_time_is_a_change_once_it_stays() {
        let mut followed = followed(vec![folder("/w", true, true)], "/w/a.txt", Standing::Settled(None));
        let changed = files(&[("/w/a.txt", Look { modified: Some(0), ..LOOK })]);
        assert_eq!(followed.changes(&changed), []);
        followed.looked(&changed, Instant::now());
        assert_eq!(followed.changes(&changed)[0].after.standing, Standing::Waiting);
    }

    #[test]
    fn what_could_not_be_added_is_tried_again_less_and_less_often() {
        let mut followed = followed(vec![folder("/w", true, true)], "/w/a.txt", Standing::Waiting);
        let (files, mut now) = (files(&[("/w/a.txt", LOOK)]), Instant::now());
        assert_eq!(followed.due(&files, now), ["/w/a.txt"]);
        assert!(followed.put_off("/w/a.txt", LOOK, now), "the first time is told");
        assert_eq!(followed.due(&files, now), [""; 0]);
        now += FIRST_PAUSE;
        assert_eq!(followed.due(&files, now), ["/w/a.txt"]);
        for _ in 0..40 {
            assert!(!followed.put_off("/w/a.txt", LOOK, now));
        }
        assert_eq!(followed.due(&files, now + LONGEST_PAUSE / 2), [""; 0]);
        assert_eq!(followed.due(&files, now + LONGEST_PAUSE), ["/w/a.txt"]);
        followed.refuse("/w/a.txt", LOOK);
        assert_eq!(followed.due(&files, now + LONGEST_PAUSE * 9), [""; 0]);
        followed.refuse("/w/a.txt", Look { size: 11, ..LOOK });
        assert_eq!(followed.due(&files, now), ["/w/a.txt"], "it has changed since");
    }
}
