//! Online backup and restore.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::check;
use super::checksum;
use super::files::{self, StoreFiles};
use super::{Store, connection, damaged_log, index_binding, schema};
use crate::date;
use crate::document::DocumentId;
use crate::store::{CheckReport, Error};

/// Pages copied per step; writers run between two steps.
const PAGES_PER_STEP: i32 = 256;
/// How long a copy waits for a lock.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

impl Store {
    /// Copies the store into a new file that only the user can read, while the store is in use. Never overwrites a
    /// file, and leaves no file behind on failure.
    pub async fn backup(&self, to: &Path) -> Result<(), Error> {
        let to = to.to_owned();
        self.read(move |source| write_backup(source, &to)).await
    }

    /// Replaces a store that no process has open by a backup. The backup is checked first. An existing store is
    /// renamed; its new name is returned.
    pub fn restore(folder: &Path, from: &Path) -> Result<Option<PathBuf>, Error> {
        let files = StoreFiles::of(folder);
        files.create_folders()?;
        let _alone = files.lock_exclusive()?;
        damaged_log::preserve(&files)?;
        let new = unused_path(&files, "restoring");
        files::create_private(&new)?;
        let restored =
            open_verified(from).and_then(|source| copy_database(&source, &new)).and_then(|()| migrate_copy(&new));
        let aside = restored.and_then(|()| replace(&files, &new, "before-restore")).inspect_err(|_| discard(&new))?;
        damaged_log::acknowledge(&files)?;
        Ok(aside)
    }
}

/// Copies the snapshot of one transaction into a new file.
pub(super) fn write_backup(source: &Connection, to: &Path) -> Result<(), Error> {
    drop(files::create_private(to)?);
    copy_database(source, to).inspect_err(|_| discard(to))
}

/// Opens a backup if it passes all checks.
pub(super) fn open_verified(from: &Path) -> Result<Connection, Error> {
    let metadata = std::fs::metadata(from).map_err(Error::io(from))?;
    if !metadata.is_file() {
        return Err(Error::ForeignFile);
    }
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    source.busy_timeout(LOCK_TIMEOUT)?;
    checksum::prepare(&source)?;
    let read = source.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
    if read.is_err_and(|error| error.sqlite_error_code() == Some(ErrorCode::NotADatabase))
        || schema::version(&source)? == 0
    {
        return Err(Error::ForeignFile);
    }
    // The check uses only tables and columns that exist since the first schema version.
    let CheckReport { problems, .. } = check::check(&source);
    match problems.into_iter().next() {
        Some(problem) => Err(Error::Corrupt(format!("the backup: {problem}"))),
        None => Ok(source),
    }
}

/// Copies a whole database into an empty file and syncs it to disk. The copy is a single file without a WAL.
fn copy_database(source: &Connection, to: &Path) -> Result<(), Error> {
    let mut target = connection::open_file(to, OpenFlags::empty())?;
    target.busy_timeout(LOCK_TIMEOUT)?;
    Backup::new(source, &mut target)?.run_to_completion(PAGES_PER_STEP, Duration::ZERO, None)?;
    target.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
    target.close().map_err(|(_, error)| error)?;
    files::sync(to)?;
    to.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or(Ok(()), files::sync)
}

/// Migrates a copy to the current schema and assigns a new history ID.
fn migrate_copy(new: &Path) -> Result<(), Error> {
    let mut connection = connection::writer(new, LOCK_TIMEOUT)?;
    schema::migrate(&mut connection)?;
    schema::renew_history(&connection)?;
    index_binding::permit_any(&connection)?;
    connection.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
    connection.close().map_err(|(_, error)| error.into())
}

/// Replaces the database by a finished file and preserves the old one under another name. At every moment one of the
/// two exists under the database's name.
pub(super) fn replace(files: &StoreFiles, new: &Path, why: &str) -> Result<Option<PathBuf>, Error> {
    let database = &files.database;
    files::sync(new)?;
    let aside = database.exists().then(|| dated_path(files, why));
    if let Some(aside) = &aside {
        // Opening and closing an intact database checkpoints its WAL.
        let _ = connection::writer(database, LOCK_TIMEOUT)
            .map(|connection| super::clear::truncate_wal(&connection, LOCK_TIMEOUT));
        if std::fs::hard_link(database, aside).is_err() {
            files::copy(database, aside)?;
        }
    }
    // A remaining WAL belongs to the old file and would corrupt the new one. Without the old file it has been copied.
    for ending in ["-wal", "-shm"] {
        let log = StoreFiles::companion(database, ending);
        let moved = match &aside {
            _ if std::fs::symlink_metadata(&log).is_err() => continue,
            Some(aside) => std::fs::rename(&log, StoreFiles::companion(aside, ending)),
            None => std::fs::remove_file(&log),
        };
        moved.map_err(Error::io(&log))?;
    }
    std::fs::rename(new, database).map_err(Error::io(database))?;
    files::sync(&files.folder)?;
    Ok(aside)
}

/// An unused file name next to the database.
pub(super) fn unused_path(files: &StoreFiles, why: &str) -> PathBuf {
    StoreFiles::companion(&files.database, &format!(".{why}-{}", DocumentId::random()))
}

/// A file name next to the database for the preserved file, with date and time.
pub(super) fn dated_path(files: &StoreFiles, why: &str) -> PathBuf {
    // Some systems do not allow a colon in a file name.
    let name = format!(".{why}-{}", date::to_rfc3339(date::now()).replace(':', "-"));
    let first = StoreFiles::companion(&files.database, &name);
    let more = (2..).map(|number| StoreFiles::companion(&files.database, &format!("{name}-{number}")));
    std::iter::once(first.clone()).chain(more).find(|path| !path.exists()).unwrap_or(first)
}

/// Removes a failed copy.
pub(super) fn discard(copy: &Path) {
    for ending in ["", "-wal", "-shm", "-journal"] {
        // Most of these files do not exist.
        let _ = std::fs::remove_file(StoreFiles::companion(copy, ending));
    }
}
