//! Registry of processes and their liveness.
//!
//! Each open store holds a lock on a file with its instance name. The operating system releases the lock however the
//! process ends, so an instance with a missing or unlocked file is dead.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::files::{self, StoreFiles};
use crate::store::Error;

/// This process, as other processes see it.
#[derive(Debug)]
pub(super) struct Instance {
    name: String,
    path: PathBuf,
    _lock: File,
}

impl Instance {
    /// Registers a new instance. The file is locked before it gets its final name, so no process ever sees it
    /// unlocked.
    pub(super) fn register(files: &StoreFiles) -> Result<Instance, Error> {
        let name = Uuid::new_v4().to_string();
        let path = lock_path(files, &name);
        let new = path.with_extension("new");
        let lock = files::create_private(&new)?;
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
        // A remaining file is unlocked as soon as this process ends.
        let _ = fs::remove_file(&self.path);
    }
}

/// Liveness of processes, as seen by one of them.
#[derive(Debug)]
pub(super) struct Liveness {
    pub(super) files: StoreFiles,
    /// The process that checks.
    pub(super) instance: String,
}

impl Liveness {
    /// Whether the task has a runner and the runner is alive.
    pub(super) fn is_alive(&self, runner: Option<&str>) -> bool {
        runner.is_some_and(|name| name == self.instance || is_process_alive(&self.files, name))
    }
}

/// Whether a process is alive. If this cannot be determined, it counts as alive: running a task twice is worse than
/// waiting.
fn is_process_alive(files: &StoreFiles, name: &str) -> bool {
    let path = lock_path(files, name);
    match files::open(&path) {
        Ok(file) => !is_unlocked(&file),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

/// Removes the files of dead processes.
pub(super) fn remove_dead_instances(files: &StoreFiles) {
    let Ok(entries) = fs::read_dir(&files.instances) else { return };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| is_lock(path)) {
        if files::open(&path).is_ok_and(|file| is_unlocked(&file)) {
            // Another process may have removed it first.
            let _ = fs::remove_file(&path);
        }
    }
}

fn is_unlocked(file: &File) -> bool {
    file.try_lock_shared().is_ok()
}

fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "lock")
}

/// Names come from the database; only UUIDs, as assigned by us, become paths.
fn lock_path(files: &StoreFiles, name: &str) -> PathBuf {
    let name = name.parse::<Uuid>().unwrap_or_default();
    files.instances.join(format!("{name}.lock"))
}
