//! Which process is which, and which of them still live.
//!
//! Each open store holds a lock on a file with its name. The operating system gives the lock back however the process
//! ends, so a name whose file is gone or free belongs to nobody.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::files::Files;
use crate::knowledge::store::Error;

/// This process, for the others.
#[derive(Debug)]
pub(super) struct Instance {
    name: String,
    path: PathBuf,
    _lock: File,
}

impl Instance {
    /// Takes a name. The file gets its name when it is locked, so that nobody ever sees it free.
    pub(super) fn take(files: &Files) -> Result<Instance, Error> {
        let name = Uuid::new_v4().to_string();
        let path = lock_path(files, &name);
        let new = path.with_extension("new");
        super::files::create_private(&new)?;
        let lock = File::open(&new).map_err(Error::io(&new))?;
        lock.lock().map_err(Error::io(&new))?;
        fs::rename(&new, &path).map_err(Error::io(&path))?;
        Ok(Instance { name, path, _lock: lock })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // A file that stays is free as soon as this process has ended.
        let _ = fs::remove_file(&self.path);
    }
}

/// Which processes live, as seen by one of them.
#[derive(Debug)]
pub(super) struct Living {
    pub(super) files: Files,
    /// The one that looks.
    pub(super) instance: String,
}

impl Living {
    /// Whether there is a process, and it lives.
    pub(super) fn has(&self, runner: Option<&str>) -> bool {
        runner.is_some_and(|name| name == self.instance || lives(&self.files, name))
    }
}

/// Whether a process lives. What cannot be told counts as living: two that do the same work are worse than a wait.
fn lives(files: &Files, name: &str) -> bool {
    let path = lock_path(files, name);
    match File::open(&path) {
        Ok(file) => !is_free(&file),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

/// Removes the files of processes that have ended.
pub(super) fn forget_the_dead(files: &Files) {
    let Ok(entries) = fs::read_dir(&files.instances) else { return };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| is_lock(path)) {
        if File::open(&path).is_ok_and(|file| is_free(&file)) {
            // Somebody else may have been faster.
            let _ = fs::remove_file(&path);
        }
    }
}

fn is_free(file: &File) -> bool {
    file.try_lock_shared().is_ok()
}

fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "lock")
}

/// Names come out of the database; only those that we have given become paths.
fn lock_path(files: &Files, name: &str) -> PathBuf {
    let name = name.parse::<Uuid>().unwrap_or_default();
    files.instances.join(format!("{name}.lock"))
}
