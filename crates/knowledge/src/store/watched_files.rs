//! Persistent state of the files in watched folders.
//!
//! Several processes may watch the same folder while users remove documents and clear bases. Rows are therefore
//! changed by compare-and-swap: see [`RowUpdate`].

use super::{Error, Store};
use crate::document::{BaseName, DocumentId};
use crate::task::TaskId;

/// The stored state of a file in a watched folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedFile {
    /// Canonical path with symlinks resolved, as in documents.
    pub path: String,
    pub stamp: FileStamp,
    /// Device of its folder.
    pub device: u64,
    /// Inode when the file was picked up; 0 on file systems without inodes.
    pub inode: u64,
    /// ctime when the file was picked up, in nanoseconds since 1970. Programs cannot set the ctime, so a copy differs.
    pub ctime: Option<i64>,
    pub state: IngestState,
}

/// Modification time and size. Any difference means that the file has changed, even an older time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// Nanoseconds since 1970.
    pub modified: Option<i64>,
    pub size: u64,
}

/// Ingest state of a file version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IngestState {
    /// To be added.
    Pending,
    /// Being added.
    InProgress(TaskId),
    /// No action until the file changes. Contains its document, or None if the file cannot be read or the user removed
    /// the document.
    Done(Option<DocumentId>),
}

/// A row update that applies only if the row still equals `before`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowUpdate {
    pub before: Option<WatchedFile>,
    pub after: WatchedFile,
}

/// Identity of a folder, independent of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    pub device: u64,
    pub inode: u64,
}

impl Store {
    /// The stored files of watched folders of a base.
    pub async fn watched_files(&self, base: &BaseName) -> Result<Vec<WatchedFile>, Error> {
        each!(self, store => store.watched_files(base).await)
    }

    /// Documents of watched folders without a stored file row, as after a repair or from an older version. They are
    /// returned as settled files. Their size and time are unknown, and so is the device, which is 0.
    pub async fn untracked_documents(&self, base: &BaseName) -> Result<Vec<WatchedFile>, Error> {
        each!(self, store => store.untracked_documents(base).await)
    }

    /// Updates rows and returns which updates applied. The rest were changed concurrently and are left unchanged.
    pub async fn update_watched_files(&self, base: &BaseName, turns: Vec<RowUpdate>) -> Result<Vec<bool>, Error> {
        each!(self, store => store.update_watched_files(base, turns).await)
    }

    /// Removes the rows of deleted files.
    pub async fn remove_watched_files(&self, base: &BaseName, paths: Vec<String>) -> Result<(), Error> {
        each!(self, store => store.remove_watched_files(base, paths).await)
    }

    /// Hides failed tasks from the document list because other tasks retry their files.
    pub async fn hide_failed_tasks(&self, tasks: Vec<TaskId>) -> Result<(), Error> {
        each!(self, store => store.hide_failed_tasks(tasks).await)
    }

    /// Identity of the folder at a path when it last contained files.
    pub async fn watched_folder(&self, path: &str) -> Result<Option<FileId>, Error> {
        each!(self, store => store.watched_folder(path).await)
    }

    pub async fn record_watched_folder(&self, path: &str, place: FileId) -> Result<(), Error> {
        each!(self, store => store.record_watched_folder(path, place).await)
    }
}
