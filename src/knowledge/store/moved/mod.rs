//! Migrates all data from one store into another, of the same or of another backend.
//!
//! IDs of documents, chunks and tasks and all timestamps are preserved. Internal keys are assigned by each store. JSON
//! columns are copied as text, so no number in them is parsed and reformatted.

mod digest;
mod error;
mod migrate;

use super::{Place, Store};
use crate::knowledge::document::{BaseName, ChunkId, Document, DocumentId, Millis, NewChunk, NewDocument, Page};
use crate::knowledge::task::{TaskId, TaskKind};

pub use error::Error;
pub use migrate::{Moved, Side, Step, migrate};

/// A document with all its data.
#[derive(Debug, Clone)]
pub(super) struct Whole {
    pub(super) document: Document,
    /// User metadata as stored JSON.
    pub(super) metadata: String,
    /// Paths of files with the same content; '' is an upload.
    pub(super) copies: Vec<String>,
    /// In order, as are the chunks.
    pub(super) pages: Vec<Page>,
    pub(super) chunks: Vec<WholeChunk>,
}

/// A chunk with its public ID.
#[derive(Debug, Clone)]
pub(super) struct WholeChunk {
    pub(super) id: ChunkId,
    pub(super) chunk: NewChunk,
}

/// A document to insert, with the values that a new document would otherwise be assigned.
#[derive(Debug)]
pub(super) struct Brought {
    pub(super) new: NewDocument,
    pub(super) ids: Vec<ChunkId>,
    pub(super) metadata: String,
    pub(super) copies: Vec<String>,
    pub(super) date_added: Millis,
    pub(super) updated: Millis,
}

/// A base and the time of its last change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) name: BaseName,
    pub(super) created: Millis,
    pub(super) updated: Millis,
}

/// A finished task as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EndedTask {
    pub(super) key: i64,
    pub(super) id: TaskId,
    pub(super) base: BaseName,
    pub(super) owner: String,
    pub(super) kind: TaskKind,
    pub(super) request: String,
    pub(super) document: Option<DocumentId>,
    pub(super) filename: Option<String>,
    pub(super) format: Option<String>,
    pub(super) size_bytes: Option<i64>,
    pub(super) state: String,
    pub(super) created: Millis,
    pub(super) started: Option<Millis>,
    pub(super) ended: Option<Millis>,
    pub(super) updated: Millis,
    pub(super) attempts: i32,
    pub(super) result: Option<String>,
    pub(super) error_code: Option<String>,
    pub(super) error_message: Option<String>,
}

/// Path and identity of a folder with watched files.
pub(super) type Folder = (String, Place);

impl Whole {
    /// Converts the document into the form to insert.
    pub(super) fn brought(self) -> Brought {
        let Whole { document, metadata, copies, pages, chunks } = self;
        let (ids, chunks) = chunks.into_iter().map(|whole| (whole.id, whole.chunk)).unzip();
        Brought {
            ids,
            metadata,
            copies,
            date_added: document.date_added,
            updated: document.updated,
            new: NewDocument {
                replaces: None,
                id: document.id,
                base: document.base,
                filename: document.filename,
                path: document.path,
                origin: document.origin,
                title: document.title,
                format: document.format,
                size_bytes: document.size_bytes,
                sha256: document.sha256,
                status: document.status,
                method: document.method,
                metadata: document.metadata,
                model: document.model,
                warning: document.warning,
                pages,
                chunks,
            },
        }
    }
}

/// Backend operations that a migration needs.
impl Store {
    /// Identifies the store, independent of its location.
    fn history(&self) -> &str {
        each_now!(self, store => store.history())
    }

    /// Hosts on which other processes have the store open. A SQLite file is opened exclusively for a migration.
    async fn others(&self) -> Result<Vec<String>, super::Error> {
        match self {
            Store::Embedded(_) => Ok(Vec::new()),
            Store::Shared(store) => store.others().await,
        }
    }

    /// All documents in insertion order.
    async fn document_ids(&self) -> Result<Vec<DocumentId>, super::Error> {
        each!(self, store => store.document_ids().await)
    }

    async fn whole(&self, id: DocumentId) -> Result<Option<Whole>, super::Error> {
        each!(self, store => store.whole(id).await)
    }

    /// Inserts a document that does not exist yet, in one transaction.
    async fn bring(&self, whole: Whole) -> Result<(), super::Error> {
        each!(self, store => store.bring(whole.brought()).await)
    }

    async fn told_bases(&self) -> Result<Vec<Base>, super::Error> {
        each!(self, store => store.told_bases().await)
    }

    /// Creates a base or updates it with these timestamps. Idempotent. Called last, because inserting documents also
    /// sets timestamps.
    async fn bring_base(&self, base: Base) -> Result<(), super::Error> {
        each!(self, store => store.bring_base(base).await)
    }

    /// Finished tasks with a key greater than `after`, in the order in which they were added.
    async fn ended_tasks(&self, after: i64, most: u32) -> Result<Vec<EndedTask>, super::Error> {
        each!(self, store => store.ended_tasks(after, most).await)
    }

    /// Inserts the tasks that do not exist yet, in one transaction.
    async fn bring_tasks(&self, tasks: Vec<EndedTask>) -> Result<(), super::Error> {
        each!(self, store => store.bring_tasks(tasks).await)
    }

    /// Builds search indexes that are best built after all data is loaded.
    async fn make_indexes(&self) -> Result<(), super::Error> {
        match self {
            Store::Embedded(_) => Ok(()),
            Store::Shared(store) => store.make_indexes().await,
        }
    }

    async fn watched_folders(&self) -> Result<Vec<Folder>, super::Error> {
        each!(self, store => store.watched_folders().await)
    }
}
