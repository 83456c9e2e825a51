//! Moves all that one store has into another, of the same kind or not.
//!
//! What callers hold on to stays: ids of documents, chunks and tasks, and times. Keys are each store's own. Texts that were
//! written as JSON are moved as they are, so that no number in them is read and written anew.

mod digest;
mod error;
mod migrate;

use super::{Place, Store};
use crate::knowledge::document::{BaseName, ChunkId, Document, DocumentId, Millis, NewChunk, NewDocument, Page};
use crate::knowledge::task::{TaskId, TaskKind};

pub use error::Error;
pub use migrate::{Moved, Side, Step, migrate};

/// A document with all that belongs to it.
#[derive(Debug, Clone)]
pub(super) struct Whole {
    pub(super) document: Document,
    /// What its users say about it, as it is written.
    pub(super) metadata: String,
    /// Where else the same was found, by path; an upload has none, which is ''.
    pub(super) copies: Vec<String>,
    /// In their order, as the chunks.
    pub(super) pages: Vec<Page>,
    pub(super) chunks: Vec<WholeChunk>,
}

/// A chunk, and what callers know it by.
#[derive(Debug, Clone)]
pub(super) struct WholeChunk {
    pub(super) id: ChunkId,
    pub(super) chunk: NewChunk,
}

/// A document to write, and what it brings along that a new one is given.
#[derive(Debug)]
pub(super) struct Brought {
    pub(super) new: NewDocument,
    pub(super) ids: Vec<ChunkId>,
    pub(super) metadata: String,
    pub(super) copies: Vec<String>,
    pub(super) date_added: Millis,
    pub(super) updated: Millis,
}

/// A base, and when anything about it last changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) name: BaseName,
    pub(super) created: Millis,
    pub(super) updated: Millis,
}

/// A task that has ended, as it is written.
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

/// A folder with watched files, and which one it was.
pub(super) type Folder = (String, Place);

impl Whole {
    /// What is to be written so that the same is there.
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

/// What a move asks of either store.
impl Store {
    /// Which store it is, wherever it lies.
    fn history(&self) -> &str {
        each_now!(self, store => store.history())
    }

    /// Machines on which others have it open. A file is ours alone while we have it open for a move.
    async fn others(&self) -> Result<Vec<String>, super::Error> {
        match self {
            Store::Embedded(_) => Ok(Vec::new()),
            Store::Shared(store) => store.others().await,
        }
    }

    /// All documents, in the order in which they came.
    async fn document_ids(&self) -> Result<Vec<DocumentId>, super::Error> {
        each!(self, store => store.document_ids().await)
    }

    async fn whole(&self, id: DocumentId) -> Result<Option<Whole>, super::Error> {
        each!(self, store => store.whole(id).await)
    }

    /// Writes a document that is not there yet, in one transaction.
    async fn bring(&self, whole: Whole) -> Result<(), super::Error> {
        each!(self, store => store.bring(whole.brought()).await)
    }

    async fn told_bases(&self) -> Result<Vec<Base>, super::Error> {
        each!(self, store => store.told_bases().await)
    }

    /// Has a base be there, with these times. May be done twice, and is done last: documents have their own.
    async fn bring_base(&self, base: Base) -> Result<(), super::Error> {
        each!(self, store => store.bring_base(base).await)
    }

    /// Tasks that have ended, those first that were taken on first, after one with this key.
    async fn ended_tasks(&self, after: i64, most: u32) -> Result<Vec<EndedTask>, super::Error> {
        each!(self, store => store.ended_tasks(after, most).await)
    }

    /// Writes those that are not there, in one transaction.
    async fn bring_tasks(&self, tasks: Vec<EndedTask>) -> Result<(), super::Error> {
        each!(self, store => store.bring_tasks(tasks).await)
    }

    /// Makes what searching wants and is best made once all is there.
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
