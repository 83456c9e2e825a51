//! Files of a store and their permissions.
//!
//! While a store is open, this process never opens SQLite's files by other means: closing such a handle would release
//! SQLite's POSIX locks. It only reads their metadata by name, and the content of the WAL, which SQLite does not lock.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use crate::folder_access;
use crate::knowledge::store::Error;
use crate::private_folder::private_folder;

/// Paths of a store.
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

    /// Creates the folders, private to the user. A folder that others can write to is refused.
    pub(super) fn create_folders(&self) -> Result<(), Error> {
        folder_access::prepare(&self.folder).map_err(Error::folder)?;
        private_folder(&self.instances).map_err(Error::io(&self.instances))
    }

    /// Creates an empty database that only the user can read, before any data is written, and syncs its directory
    /// entry. An existing database is made private.
    pub(super) fn make_database(&self) -> Result<(), Error> {
        match create_private(&self.database) {
            Err(Error::Exists(_)) => return tighten(&self.database),
            created => created?,
        }
        sync(&self.folder)?;
        self.folder.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or(Ok(()), sync)
    }

    /// The path of a companion file of a database, such as its WAL.
    pub(super) fn beside(database: &Path, ending: &str) -> PathBuf {
        let mut name = database.as_os_str().to_owned();
        name.push(ending);
        name.into()
    }

    /// Size of the database on disk in bytes, including the WAL.
    pub(super) fn size(&self) -> u64 {
        length(&self.database) + self.log_size()
    }

    /// Size of the WAL in bytes.
    pub(super) fn log_size(&self) -> u64 {
        length(&Files::beside(&self.database, "-wal"))
    }

    /// Lock file: shared while the store is open, exclusive while its file is replaced.
    pub(super) fn in_use(&self) -> Result<File, Error> {
        lock_file(&self.folder.join("in-use.lock"))
    }

    /// Lock file for creating or migrating the database.
    pub(super) fn setting_up(&self) -> Result<File, Error> {
        lock_file(&self.folder.join("setup.lock"))
    }

    /// Locks the store exclusively. Fails if another process has it open.
    pub(super) fn alone(&self) -> Result<File, Error> {
        let lock = self.in_use()?;
        match lock.try_lock() {
            Ok(()) => Ok(lock),
            Err(fs::TryLockError::WouldBlock) => Err(Error::InUse),
            Err(fs::TryLockError::Error(error)) => Err(Error::io(&self.folder)(error)),
        }
    }
}

/// Length of a file; 0 if it does not exist.
fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

/// Creates an empty file that only the user can read. Fails if the file exists.
pub(super) fn create_private(path: &Path) -> Result<(), Error> {
    options().create_new(true).open(path).map(drop).map_err(Error::io(path))
}

/// Syncs a file or folder to disk.
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
