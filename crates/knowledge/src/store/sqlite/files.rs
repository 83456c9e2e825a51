//! Files of a store and their permissions.
//!
//! While a store is open, this process never closes a handle of the database or of its shared memory that is not SQLite's:
//! that would release SQLite's POSIX locks. The WAL has no locks.
//!
//! No symbolic link in the folder is followed. Root may use the folder of another user, who could otherwise make root
//! open, change or remove files elsewhere.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::store::Error;
use corbie_util::fs::dir_permissions;

/// Paths of a store.
#[derive(Debug, Clone)]
pub(super) struct StoreFiles {
    pub(super) folder: PathBuf,
    pub(super) database: PathBuf,
    pub(super) instances: PathBuf,
}

const DATABASE_FILE: &str = "knowledge.db";

impl StoreFiles {
    pub(super) fn of(folder: &Path) -> StoreFiles {
        StoreFiles {
            folder: folder.to_owned(),
            database: folder.join(DATABASE_FILE),
            instances: folder.join("instances"),
        }
    }

    /// Creates the folders, private to the user. A folder that others can write to is refused.
    pub(super) fn create_folders(&self) -> Result<(), Error> {
        dir_permissions::prepare(&self.folder).map_err(Error::folder)?;
        dir_permissions::create_private_subdir(&self.instances).map_err(Error::folder)
    }

    /// Creates an empty database that only the user can read, before any data is written, and syncs its directory
    /// entry. An existing database is made private.
    pub(super) fn create_database(&self) -> Result<(), Error> {
        match create_private(&self.database) {
            Err(Error::Exists(_)) => return make_private(&self.database),
            created => drop(created?),
        }
        sync(&self.folder)?;
        self.folder.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or(Ok(()), sync)
    }

    /// The path of a companion file of a database, such as its WAL.
    pub(super) fn companion(database: &Path, ending: &str) -> PathBuf {
        let mut name = database.as_os_str().to_owned();
        name.push(ending);
        name.into()
    }

    /// Size of the database on disk in bytes, including the WAL.
    pub(super) fn size(&self) -> u64 {
        length(&self.database) + self.log_size()
    }

    /// Whether the database file has any pages.
    pub(super) fn has_content(&self) -> bool {
        length(&self.database) > 0
    }

    /// Size of the WAL in bytes.
    pub(super) fn log_size(&self) -> u64 {
        length(&StoreFiles::companion(&self.database, "-wal"))
    }

    /// Lock file: shared while the store is open, exclusive while its file is replaced.
    pub(super) fn in_use_lock(&self) -> Result<File, Error> {
        lock_file(&self.folder.join("in-use.lock"))
    }

    /// Lock file for creating or migrating the database.
    pub(super) fn setup_lock(&self) -> Result<File, Error> {
        lock_file(&self.folder.join("setup.lock"))
    }

    /// Locks the store exclusively. Fails if another process has it open.
    pub(super) fn lock_exclusive(&self) -> Result<File, Error> {
        let lock = self.in_use_lock()?;
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
pub(super) fn create_private(path: &Path) -> Result<File, Error> {
    options().create_new(true).open(path).map_err(failed(path))
}

/// Opens an existing file for reading.
pub(super) fn open(path: &Path) -> io::Result<File> {
    reading().open(path)
}

/// Copies a file into a new one that only the user can read, and syncs it to disk.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let mut source = open(from).map_err(failed(from))?;
    let mut target = create_private(to)?;
    io::copy(&mut source, &mut target).and_then(|_| target.sync_all()).map_err(Error::io(to))
}

/// Syncs a file or folder to disk.
pub(super) fn sync(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|file| file.sync_all()).map_err(Error::io(path))
}

fn lock_file(path: &Path) -> Result<File, Error> {
    options().create(true).truncate(false).open(path).map_err(failed(path))
}

fn options() -> OpenOptions {
    let mut options = reading();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Fails for a link, and does not wait for the other end of a pipe.
fn reading() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    options
}

/// Makes an existing file private. Works on a descriptor, because another user may replace the file meanwhile.
#[cfg(unix)]
fn make_private(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    let found = fs::symlink_metadata(path).map_err(Error::io(path))?;
    if found.is_symlink() {
        return Err(link(path));
    }
    if found.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    let file = options().open(path).map_err(failed(path))?;
    let tightened = file.set_permissions(fs::Permissions::from_mode(0o600)).map_err(Error::io(path));
    // Closing it would release the locks of a store that is open in this process.
    std::mem::forget(file);
    tightened
}

#[cfg(not(unix))]
fn make_private(_: &Path) -> Result<(), Error> {
    Ok(())
}

/// The error of a failed open.
fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |error| match is_link(&error) {
        true => link(path),
        false => Error::io(path)(error),
    }
}

fn link(path: &Path) -> Error {
    Error::Exposed(dir_permissions::Error::Link { path: path.to_owned() })
}

#[cfg(unix)]
fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

#[cfg(not(unix))]
fn is_link(_: &io::Error) -> bool {
    false
}
