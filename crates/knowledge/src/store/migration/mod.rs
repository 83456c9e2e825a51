//! Migrates all data from one store into another, of the same or of another backend.
//!
//! IDs of documents, chunks and tasks and all timestamps are preserved. Internal keys are assigned by each store. JSON
//! columns are copied as text, so no number in them is parsed and reformatted.

mod checksum;
mod error;
mod migrate;

use super::{FileId, Store};
use crate::document::{BaseName, ChunkId, DocumentId, DocumentPage, DocumentRecord, Millis, NewChunk, NewDocument};
use crate::task::{TaskId, TaskKind};

pub use error::Error;
pub use migrate::{MigrationReport, MigrationStep, StoreSummary, migrate};

/// A document with all its data.
#[derive(Debug, Clone)]
pub(super) struct FullDocument {
    pub(super) document: DocumentRecord,
    /// User metadata as stored JSON.
    pub(super) metadata: String,
    /// Paths of files with the same content; '' is an upload.
    pub(super) duplicates: Vec<String>,
    /// In order, as are the chunks.
    pub(super) pages: Vec<DocumentPage>,
    pub(super) chunks: Vec<FullChunk>,
}

/// A chunk with its public ID.
#[derive(Debug, Clone)]
pub(super) struct FullChunk {
    pub(super) id: ChunkId,
    pub(super) chunk: NewChunk,
}

/// A document to insert, with the values that a new document would otherwise be assigned.
#[derive(Debug)]
pub(super) struct MigratedDocument {
    pub(super) new: NewDocument,
    pub(super) chunk_ids: Vec<ChunkId>,
    pub(super) metadata: String,
    pub(super) duplicates: Vec<String>,
    pub(super) date_added: Millis,
    pub(super) updated: Millis,
}

/// A base and the time of its last change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BaseRecord {
    pub(super) name: BaseName,
    pub(super) created: Millis,
    pub(super) updated: Millis,
}

/// A finished task as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FinishedTask {
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
pub(super) type FolderRecord = (String, FileId);

impl FullDocument {
    /// Converts the document into the form to insert.
    pub(super) fn into_migrated(self) -> MigratedDocument {
        let FullDocument { document, metadata, duplicates: copies, pages, chunks } = self;
        let (ids, chunks) = chunks.into_iter().map(|whole| (whole.id, whole.chunk)).unzip();
        MigratedDocument {
            chunk_ids: ids,
            metadata,
            duplicates: copies,
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
    async fn other_hosts(&self) -> Result<Vec<String>, super::Error> {
        match self {
            Store::Embedded(_) => Ok(Vec::new()),
            Store::Shared(store) => store.other_hosts().await,
        }
    }

    /// All documents in insertion order.
    async fn document_ids(&self) -> Result<Vec<DocumentId>, super::Error> {
        each!(self, store => store.document_ids().await)
    }

    async fn full_document(&self, id: DocumentId) -> Result<Option<FullDocument>, super::Error> {
        each!(self, store => store.full_document(id).await)
    }

    /// Inserts a document that does not exist yet, in one transaction.
    async fn insert_migrated(&self, whole: FullDocument) -> Result<(), super::Error> {
        each!(self, store => store.insert_migrated(whole.into_migrated()).await)
    }

    async fn base_records(&self) -> Result<Vec<BaseRecord>, super::Error> {
        each!(self, store => store.base_records().await)
    }

    /// Creates a base or updates it with these timestamps. Idempotent. Called last, because inserting documents also
    /// sets timestamps.
    async fn upsert_base(&self, base: BaseRecord) -> Result<(), super::Error> {
        each!(self, store => store.upsert_base(base).await)
    }

    /// Finished tasks with a key greater than `after`, in the order in which they were added.
    async fn finished_tasks(&self, after: i64, most: u32) -> Result<Vec<FinishedTask>, super::Error> {
        each!(self, store => store.finished_tasks(after, most).await)
    }

    /// Inserts the tasks that do not exist yet, in one transaction.
    async fn insert_finished_tasks(&self, tasks: Vec<FinishedTask>) -> Result<(), super::Error> {
        each!(self, store => store.insert_finished_tasks(tasks).await)
    }

    /// Builds search indexes that are best built after all data is loaded.
    async fn build_indexes(&self) -> Result<(), super::Error> {
        match self {
            Store::Embedded(_) => Ok(()),
            Store::Shared(store) => store.build_indexes().await,
        }
    }

    async fn watched_folders(&self) -> Result<Vec<FolderRecord>, super::Error> {
        each!(self, store => store.watched_folders().await)
    }
}
