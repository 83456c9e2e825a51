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
    #[error("there is no room left for the knowledge base; free some space on its disk, nothing was changed")]
    Full,
    #[error("the knowledge base cannot be written; check the permissions of its folder, nothing was changed")]
    ReadOnly,
    #[error("the knowledge base is damaged ({0}); stop its servers and repair it, or restore a backup")]
    Corrupt(String),
    #[error(
        "the stored document `{filename}` ({id}) is damaged: it does not match its checksum; add the file again to replace \
         it, or stop the servers and run `corbie knowledge repair`"
    )]
    Damaged { filename: String, id: DocumentId },
    /// A new database would hide the loss of the previous one.
    #[error(
        "the database `knowledge.db` is empty or missing, but `{}` holds an index of its documents; restore a backup with \
         `corbie knowledge restore FILE`, or delete that folder to start with an empty knowledge base",
        .index.display()
    )]
    Missing { index: PathBuf },
    /// The database file was replaced.
    #[error(
        "the index in `{}` belongs to another knowledge base than the database `knowledge.db`, which may have been replaced; \
         restore a backup with `corbie knowledge restore FILE`, or delete that folder to use the database that is there",
        .index.display()
    )]
    OtherStore { index: PathBuf },
    #[error(
        "the knowledge base was written by a newer version (schema {found}, this one knows {known}); update corbie"
    )]
    NewerSchema { found: i64, known: i64 },
    /// The file belongs to another application.
    #[error("the file is no knowledge base of corbie; choose another one")]
    ForeignFile,
    #[error(
        "the database was not copied before its migration ({0}), and `knowledge.migration_copy` is `required`; free some \
         space on its disk, or set it to `auto`; nothing was changed"
    )]
    NoCopy(String),
    #[error("another process keeps the knowledge base busy; try again in a moment")]
    Busy,
    /// The database server, possibly on another machine, does not answer. If the call was a write, the acknowledgement
    /// may have been lost, so a retry may find the write already done.
    #[error(
        "the database of the knowledge base cannot be reached ({0}); check that it runs, and try again in a moment"
    )]
    Unavailable(String),
    #[error("the knowledge base is open in another process; stop it first")]
    InUse,
    #[error("the task was cancelled, and nothing was written")]
    Cancelled,
    #[error("the document is gone; add it anew")]
    DocumentNotFound,
    #[error("{bound} tasks wait already; try again when some of them have ended")]
    TooManyTasks { bound: u64 },
    /// The folder is writable for another user, or owned by one.
    #[error(transparent)]
    Exposed(corbie_util::fs::dir_permissions::Error),
    #[error("there is a file `{}` already; name one that does not exist", .0.display())]
    Exists(PathBuf),
    #[error("`{}`: {error}; check the path and its permissions", .path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("the store has been closed; start again")]
    Closed,
    /// A bug in corbie.
    #[error("the store failed: {0}")]
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
        Error::Corrupt(format!("`{what}` cannot be read"))
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
