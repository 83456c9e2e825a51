//! Store errors.
//!
//! Every error rolls back its transaction, so the previous state is preserved.

use std::io;
use std::path::{Path, PathBuf};

use crate::document::{DocumentId, DocumentRecord};
use corbie_util::sanitize::sanitize_line;

/// Error of a store operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("disk is full; free some space on the disk of the knowledge base. Nothing was changed")]
    Full,
    #[error("the knowledge base is not writable; check the permissions of its folder. Nothing was changed")]
    ReadOnly,
    #[error(
        "the knowledge base is corrupt ({0}); stop the servers and run `corbie knowledge repair`, or restore a \
        backup"
    )]
    Corrupt(String),
    #[error(
        "the stored document `{filename}` ({id}) is corrupt (checksum mismatch); add the file again to replace it, or \
         stop the servers and run `corbie knowledge repair`"
    )]
    Damaged { filename: String, id: DocumentId },
    /// A new database would hide the loss of the previous one.
    #[error(
        "the database `knowledge.db` is empty or missing, but `{}` contains an index of its documents; restore a \
         backup with `corbie knowledge restore FILE`, or delete that folder to start with an empty knowledge base",
        .index.display()
    )]
    Missing { index: PathBuf },
    /// The database file was replaced.
    #[error(
        "the index in `{}` does not belong to the database `knowledge.db`, which may have been replaced; restore a \
         backup with `corbie knowledge restore FILE`, or delete that folder to use the current database",
        .index.display()
    )]
    OtherStore { index: PathBuf },
    #[error("the knowledge base was created by a newer version (schema {found}, supported {known}); update corbie")]
    NewerSchema { found: i64, known: i64 },
    /// The file belongs to another application.
    #[error("the file is not a corbie knowledge base; use another file")]
    ForeignFile,
    #[error(
        "cannot copy the database before its schema migration ({0}), and `knowledge.migration_copy` is `required`; \
         free some disk space, or set it to `auto`. Nothing was changed"
    )]
    NoCopy(String),
    #[error("the knowledge base is locked by another process; try again in a few seconds")]
    Busy,
    /// The database server, possibly on another machine, does not answer. If the call was a write, the acknowledgement
    /// may have been lost, so a retry may find the write already done.
    #[error(
        "the database of the knowledge base is unreachable ({0}); check that it is running and try again in a few seconds"
    )]
    Unavailable(String),
    #[error("the knowledge base is in use by another process; stop it first")]
    InUse,
    #[error("the task was cancelled; nothing was written")]
    Cancelled,
    #[error("the document no longer exists; add it again")]
    DocumentNotFound,
    #[error("task queue is full ({bound} tasks); try again when some have finished")]
    TooManyTasks { bound: u64 },
    /// The folder is writable for another user, or owned by one.
    #[error(transparent)]
    Exposed(corbie_util::fs::dir_permissions::Error),
    #[error("file `{}` already exists; use another name", .0.display())]
    Exists(PathBuf),
    #[error("`{}`: {error}; check the path and its permissions", .path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("the store is closed; restart the server")]
    Closed,
    /// A bug in corbie.
    #[error("internal store error: {0}")]
    Internal(String),
}

impl Error {
    /// A stable identifier for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Error::Full => "storage_full",
            Error::ReadOnly => "storage_read_only",
            Error::Corrupt(_) => "storage_corrupt",
            Error::Damaged { .. } => "document_damaged",
            Error::Missing { .. } => "storage_missing",
            Error::OtherStore { .. } => "storage_mismatch",
            Error::NewerSchema { .. } => "storage_schema_too_new",
            Error::ForeignFile => "storage_not_a_knowledge_base",
            Error::NoCopy(_) => "storage_not_copied",
            Error::Busy => "storage_busy",
            Error::Unavailable(_) => "storage_unavailable",
            Error::InUse => "storage_in_use",
            Error::Cancelled => "cancelled",
            Error::DocumentNotFound => "document_not_found",
            Error::TooManyTasks { .. } => "too_many_tasks",
            Error::Exposed(_) => "storage_exposed",
            Error::Exists(_) => "file_exists",
            Error::Io { .. } => "storage_io",
            Error::Closed => "storage_closed",
            Error::Internal(_) => "storage_failed",
        }
    }

    /// Whether a retry may succeed.
    pub fn is_retryable(&self) -> bool {
        self.is_transient() || matches!(self, Error::TooManyTasks { .. })
    }

    /// Whether the store is only temporarily unavailable, so that waiting is enough.
    pub fn is_transient(&self) -> bool {
        matches!(self, Error::Busy | Error::Unavailable(_))
    }

    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |error| match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Full,
            io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly,
            io::ErrorKind::AlreadyExists => Error::Exists(path.to_owned()),
            _ => Error::Io { path: path.to_owned(), error },
        }
    }

    /// Converts an error of creating a folder to the error for a file in it.
    pub(crate) fn folder(error: corbie_util::fs::dir_permissions::Error) -> Error {
        match error {
            // A file is where the folder should be.
            corbie_util::fs::dir_permissions::Error::Io { folder, error }
                if error.kind() == io::ErrorKind::AlreadyExists =>
            {
                Error::Io { path: folder, error: io::ErrorKind::NotADirectory.into() }
            }
            corbie_util::fs::dir_permissions::Error::Io { folder, error } => Error::io(&folder)(error),
            exposed => Error::Exposed(exposed),
        }
    }

    pub(super) fn damaged(document: &DocumentRecord) -> Error {
        Error::Damaged { filename: sanitize_line(&document.filename), id: document.id }
    }

    /// A column value that no version of corbie writes.
    pub(super) fn unreadable(what: &str) -> Error {
        Error::Corrupt(format!("invalid value in `{what}`"))
    }
}

impl From<Error> for crate::Error {
    fn from(error: Error) -> crate::Error {
        match error {
            Error::Cancelled => crate::Error::Cancelled,
            Error::TooManyTasks { bound } => crate::Error::TooManyTasks(bound),
            error => crate::Error::Storage { code: error.kind(), message: error.to_string() },
        }
    }
}
