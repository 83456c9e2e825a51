//! The files of a store, and who may read them.
//!
//! None of SQLite's files is ever opened by anything else while a store is open in this process: closing it would give up
//! the locks that SQLite has on it, as POSIX has it. They are looked at by their names alone.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use crate::knowledge::store::Error;
use crate::private_folder::private_folder;

/// Where everything stands.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) folder: PathBuf,
    pub(super) database: PathBuf,
    pub(super) instances: PathBuf,
}

const DATABASE: &str = "knowledge.db";

impl Files {
    pub(super) fn of(folder: &Path) -> Files {
        Files { folder: folder.to_owned(), database: folder.join(DATABASE), instances: folder.join("instances") }
    }

    /// Makes the folders, private to the user.
    pub(super) fn create_folders(&self) -> Result<(), Error> {
        private_folder(&self.instances).map_err(Error::io(&self.instances))
    }

    /// Makes an empty database that only the user can read, before anything is written to it, and whose name outlives a loss
    /// of power. One that is there is made private.
    pub(super) fn make_database(&self) -> Result<(), Error> {
        match create_private(&self.database) {
            Err(Error::Exists(_)) => return tighten(&self.database),
            created => created?,
        }
        sync(&self.folder)?;
        self.folder.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or(Ok(()), sync)
    }

    /// What stands beside a database: its log, and the index of that.
    pub(super) fn beside(database: &Path, ending: &str) -> PathBuf {
        let mut name = database.as_os_str().to_owned();
        name.push(ending);
        name.into()
    }

    /// How many bytes the database takes on the disk, its log included.
    pub(super) fn size(&self) -> u64 {
        let log = Files::beside(&self.database, "-wal");
        [&self.database, &log].into_iter().filter_map(|path| fs::metadata(path).ok()).map(|found| found.len()).sum()
    }

    /// Held by all who have the store open, and alone by whoever replaces its file.
    pub(super) fn in_use(&self) -> Result<File, Error> {
        lock_file(&self.folder.join("in-use.lock"))
    }

    /// Held by whoever makes the database, or brings it up to date.
    pub(super) fn setting_up(&self) -> Result<File, Error> {
        lock_file(&self.folder.join("setup.lock"))
    }

    /// Nobody else may have the store open.
    pub(super) fn alone(&self) -> Result<File, Error> {
        let lock = self.in_use()?;
        match lock.try_lock() {
            Ok(()) => Ok(lock),
            Err(fs::TryLockError::WouldBlock) => Err(Error::InUse),
            Err(fs::TryLockError::Error(error)) => Err(Error::io(&self.folder)(error)),
        }
    }
}

/// Makes an empty file that only the user can read, where there is none.
pub(super) fn create_private(path: &Path) -> Result<(), Error> {
    options().create_new(true).open(path).map(drop).map_err(Error::io(path))
}

/// Writes what has been written to a file, or a folder, down to the disk.
pub(super) fn sync(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|file| file.sync_all()).map_err(Error::io(path))
}

fn lock_file(path: &Path) -> Result<File, Error> {
    options().create(true).truncate(false).open(path).map_err(Error::io(path))
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(unix)]
fn tighten(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(path).map_err(Error::io(path))?.permissions().mode();
    match mode & 0o077 {
        0 => Ok(()),
        _ => fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(Error::io(path)),
    }
}

#[cfg(not(unix))]
fn tighten(_: &Path) -> Result<(), Error> {
    Ok(())
}
