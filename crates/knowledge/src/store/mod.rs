//! Storage of knowledge bases: documents, pages, chunks, vectors and tasks.
//!
//! [`Store`] is the interface for the rest of the program; the backends implement it. All backends give the same
//! guarantees: a document exists with all its data or not at all, an acknowledged write is durable, and a failed write
//! changes nothing. Several processes may have the same store open.
//!
//! Operations that only files support, such as backup and repair, are methods of [`sqlite::Store`].

/// Dispatches an async call to the backend. The PostgreSQL future is boxed: it consists of many nested futures, and
/// every caller of a store would otherwise contain all of them.
macro_rules! each {
    ($self:expr, $store:ident => $ask:expr) => {
        match $self {
            Store::Embedded($store) => $ask,
            Store::Shared($store) => futures_util::FutureExt::boxed(async move { $ask }).await,
        }
    };
}

/// The same for calls that do not wait.
macro_rules! each_now {
    ($self:expr, $store:ident => $ask:expr) => {
        match $self {
            Store::Embedded($store) => $ask,
            Store::Shared($store) => $ask,
        }
    };
}

mod documents;
mod error;
mod listing;
mod maintenance;
pub mod migration;
pub mod postgres;
pub mod sqlite;
mod tasks;
mod watched_files;

use std::path::PathBuf;
use std::time::Duration;

pub use corbie_config::knowledge::MigrationCopy;
pub use documents::{ClearSummary, PageRange};
pub use error::Error;
pub use listing::{
    DocumentFilter, DocumentList, DocumentListQuery, ListedDocument, ProcessingStatus, SortDirection, SortKey,
};
pub use maintenance::{CheckReport, Health, HealthDiagnostic};
pub use tasks::{ACTIVE_STATES, StoredUpload, TaskListQuery, TaskOwnership, UploadRefs};
pub use watched_files::{FileId, FileStamp, IngestState, RowUpdate, WatchedFile};

/// The store of a knowledge base. Cheap to clone; all clones share the same state.
#[derive(Debug, Clone)]
pub enum Store {
    /// A SQLite file on this machine.
    Embedded(sqlite::Store),
    /// A PostgreSQL database that several instances share.
    Shared(postgres::Store),
}

impl From<sqlite::Store> for Store {
    fn from(store: sqlite::Store) -> Store {
        Store::Embedded(store)
    }
}

impl From<postgres::Store> for Store {
    fn from(store: postgres::Store) -> Store {
        Store::Shared(store)
    }
}

impl Store {
    /// Opens the store in a PostgreSQL database and creates its tables if they do not exist.
    pub async fn connect(url: &str, options: Options) -> Result<Store, Error> {
        let address = postgres::Address::parse(url).map_err(Error::Internal)?;
        Ok(postgres::Store::connect(&address, &[], options).await?.into())
    }
}

/// Size limits and timeouts of a store.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long a write waits for another process.
    pub busy_timeout: Duration,
    /// Number of concurrent reads.
    pub max_readers: usize,
    /// Maximum number of queued writes.
    pub max_queued_writes: usize,
    /// Maximum file size in bytes.
    pub max_bytes: Option<u64>,
    /// Maximum number of unfinished tasks.
    pub max_tasks: u64,
    /// Maximum number of finished tasks to retain, regardless of their age.
    pub max_finished_tasks: u64,
    /// Maximum number of change records to retain.
    pub max_changes: u64,
    /// Whether a file is copied before its schema is migrated.
    pub migration_copy: MigrationCopy,
    /// Search index whose documents the file must contain. If set, no new file is created.
    pub index: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            busy_timeout: Duration::from_secs(30),
            max_readers: 4,
            max_queued_writes: 64,
            max_bytes: None,
            max_tasks: 10_000,
            max_finished_tasks: 100_000,
            max_changes: 100_000,
            migration_copy: MigrationCopy::default(),
            index: None,
        }
    }
}
