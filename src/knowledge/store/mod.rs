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

mod content;
mod documents;
mod error;
mod listing;
mod maintenance;
pub mod migration;
mod options;
pub mod postgres;
pub mod sqlite;
mod tasks;
mod watched_files;

pub use content::PageRange;
pub use documents::ClearSummary;
pub use error::Error;
pub use listing::{
    DocumentFilter, DocumentList, DocumentListQuery, ListedDocument, ProcessingStatus, SortDirection, SortKey,
};
pub use maintenance::{CheckReport, Health, HealthDiagnostic};
pub use options::{MigrationCopy, Options};
pub use tasks::{StoredUpload, TaskListQuery, TaskOwnership, UploadRefs};
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
