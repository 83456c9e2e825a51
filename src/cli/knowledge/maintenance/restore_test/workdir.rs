//! Temporary folder of a drill. It is deleted at the end; the folder of a drill that was killed is deleted by the next
//! one.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use tempfile::TempDir;

use crate::cli::demo::workdir;
use crate::cli::interrupt::CleanupOnInterrupt;
use crate::cli::knowledge::error::KnowledgeError;
use crate::cli::sanitize_line;
use crate::util::fs::free_space::free_bytes;

/// A locked folder: no other drill deletes it while this value exists.
pub(super) struct DrillDir {
    folder: TempDir,
    cleanup: CleanupOnInterrupt,
    /// Locked during the drill, which distinguishes the folder from an abandoned one.
    _in_use: File,
}

/// Prefix of the folder names.
const DIR_PREFIX: &str = "corbie-drill-";
/// Name of the lock file in the folder.
const LOCK_FILE: &str = "in-use.lock";
/// The backup. SQLite may create further files with this prefix.
pub(super) const BACKUP_FILE: &str = "backup.db";
/// Folder of the restored knowledge base.
pub(super) const RESTORED_DIR: &str = "knowledge";
/// Number of attempts to create a folder: another drill may delete a folder that is not locked yet, as if it were
/// abandoned.
const MAX_ATTEMPTS: u32 = 10;

impl DrillDir {
    pub(super) fn new(within: &Path) -> io::Result<DrillDir> {
        let mut tried = 0;
        loop {
            let folder = tempfile::Builder::new().prefix(DIR_PREFIX).tempdir_in(within)?;
            tried += 1;
            match lock_dir(folder.path()) {
                Ok(in_use) => {
                    let unfinished = CleanupOnInterrupt::folder(folder.path());
                    return Ok(DrillDir { folder, cleanup: unfinished, _in_use: in_use });
                }
                Err(error) if tried == MAX_ATTEMPTS => return Err(error),
                Err(_) => {}
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Removes the folder and its content.
    pub(super) fn remove(self) -> io::Result<()> {
        let DrillDir { folder, cleanup: unfinished, .. } = self;
        workdir::remove(folder.path())?;
        drop(unfinished);
        Ok(())
    }
}

/// Deletes abandoned folders of drills that were killed. Ignores errors: if the disk space is insufficient, a later
/// check reports it.
pub(super) fn remove_stale(within: &Path) {
    let Ok(entries) = std::fs::read_dir(within) else { return };
    for entry in entries.flatten() {
        let is_of_a_drill = entry.file_name().to_string_lossy().starts_with(DIR_PREFIX);
        // The metadata are those of a symbolic link itself, not of its target.
        if is_of_a_drill
            && entry.metadata().is_ok_and(|found| found.is_dir() && is_ours(&found))
            && is_drill_dir(&entry.path())
            && let Ok(_in_use) = lock_dir(&entry.path())
        {
            let _ = workdir::remove(&entry.path());
        }
    }
}

/// Whether a folder contains only files that drills create.
fn is_drill_dir(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let names: Option<Vec<String>> = entries.map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.is_some_and(|names| {
        let is_known = |name: &String| name == LOCK_FILE || name == RESTORED_DIR || name.starts_with(BACKUP_FILE);
        names.iter().any(|name| name == LOCK_FILE) && names.iter().all(is_known)
    })
}

/// Fails if the free space of a folder is insufficient, before anything is written.
pub(super) fn check_space(within: &Path, needed: u64) -> Result<(), KnowledgeError> {
    match free_bytes(within) {
        Some(free) if free < needed => {
            Err(KnowledgeError::NoSpace { folder: sanitize_line(&within.display().to_string()), needed, free })
        }
        _ => Ok(()),
    }
}

/// Locks a folder. Fails if another drill has locked or deleted it.
fn lock_dir(folder: &Path) -> io::Result<File> {
    let path = folder.join(LOCK_FILE);
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
        TryLockError::Error(error) => error,
    })?;
    // The previous owner of the lock may have deleted the folder.
    path.symlink_metadata().map(|_| file)
}

/// In a shared folder such as `/tmp`, other users may have drills, or folders with similar names.
#[cfg(unix)]
fn is_ours(found: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(found) == rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_ours(_: &Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_is_removed_and_what_is_in_use_or_another_thing_is_not() {
        let within = tempfile::tempdir().unwrap();
        let at = |name: &str| within.path().join(name);
        let running = DrillDir::new(within.path()).unwrap();
        std::fs::create_dir_all(at("corbie-drill-killed/knowledge")).unwrap();
        std::fs::write(at("corbie-drill-killed/knowledge/knowledge.db"), "half").unwrap();
        std::fs::write(at("corbie-drill-killed/in-use.lock"), "").unwrap();
        std::fs::create_dir_all(at("corbie-drill-mine/knowledge")).unwrap();
        std::fs::create_dir(at("corbie-drill-minutes")).unwrap();
        std::fs::write(at("corbie-drill-minutes/in-use.lock"), "").unwrap();
        std::fs::write(at("corbie-drill-minutes/minutes.txt"), "of somebody").unwrap();
        std::fs::write(at("corbie-drill-notes.txt"), "of somebody").unwrap();
        std::fs::create_dir(at("documents")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(at("documents"), at("corbie-drill-link")).unwrap();
        remove_stale(within.path());
        assert!(!at("corbie-drill-killed").exists());
        assert!(at("corbie-drill-mine/knowledge").exists() && at("corbie-drill-minutes/minutes.txt").exists());
        assert!(running.path().join(LOCK_FILE).exists() && at("corbie-drill-notes.txt").exists());
        assert!(std::fs::read_dir(at("documents")).unwrap().next().is_none(), "nothing is made where a link leads");
        let path = running.path().to_owned();
        running.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn drills_that_begin_at_once_do_not_take_each_other_for_one_that_was_left() {
        let within = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        remove_stale(within.path());
                        let folder = DrillDir::new(within.path()).unwrap();
                        remove_stale(within.path());
                        assert!(folder.path().join(LOCK_FILE).exists());
                        folder.remove().unwrap();
                    }
                });
            }
        });
    }
}
