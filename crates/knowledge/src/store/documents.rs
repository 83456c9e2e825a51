//! Document operations: lookup, listing, insert, update and removal, and reading of pages and chunks.

use serde_json::{Map, Value};

use super::{DocumentList, DocumentListQuery, Error, Store};
use crate::document::{
    BaseName, ChunkId, Claim, DocumentId, DocumentPage, DocumentRecord, FoundChunk, NewDocument, PlacedChunk,
    PutOutcome, RemovedDocument, Totals,
};
use crate::task::{TaskId, TaskLink};

/// Result of clearing a base.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClearSummary {
    pub documents: u64,
    pub chunks: u64,
    pub vectors: u64,
    /// Number of bytes by which the files shrank.
    pub freed_bytes: u64,
    /// Tasks that were queued or running. Their processes can no longer write anything for them.
    pub cancelled_tasks: Vec<TaskId>,
}

/// A range of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRange {
    /// Number of the first page.
    pub from: u32,
    pub pages: u32,
    /// No further page starts after this many bytes.
    pub max_bytes: usize,
}

impl Store {
    pub async fn document(&self, base: &BaseName, id: DocumentId) -> Result<Option<DocumentRecord>, Error> {
        each!(self, store => store.document(base, id).await)
    }

    /// Returns the document with identical content (same SHA-256). Returns the first one if there are several.
    pub async fn document_by_content(
        &self,
        base: &BaseName,
        sha256: [u8; 32],
    ) -> Result<Option<DocumentRecord>, Error> {
        each!(self, store => store.document_by_content(base, sha256).await)
    }

    pub async fn document_by_path(&self, base: &BaseName, path: &str) -> Result<Option<DocumentRecord>, Error> {
        each!(self, store => store.document_by_path(base, path).await)
    }

    /// Returns one page of the document list. A queued, running or failed task is listed until its document exists.
    pub async fn documents(&self, base: &BaseName, listing: DocumentListQuery) -> Result<DocumentList, Error> {
        each!(self, store => store.documents(base, listing).await)
    }

    /// Returns a document and some of its pages from one snapshot, so a concurrent replacement never mixes two
    /// versions. Returns None if the document does not exist.
    pub async fn text(
        &self,
        base: &BaseName,
        id: DocumentId,
        wanted: PageRange,
    ) -> Result<Option<(DocumentRecord, Vec<DocumentPage>)>, Error> {
        each!(self, store => store.text(base, id, wanted).await)
    }

    /// The same, and the chunks on these pages in document order.
    pub async fn text_and_chunks(
        &self,
        base: &BaseName,
        id: DocumentId,
        wanted: PageRange,
    ) -> Result<Option<(DocumentRecord, Vec<DocumentPage>, Vec<PlacedChunk>)>, Error> {
        each!(self, store => store.text_and_chunks(base, id, wanted).await)
    }

    /// Returns chunks by key, in the order of the keys, from one snapshot. Removed chunks are omitted.
    pub async fn chunks(&self, keys: &[u64]) -> Result<Vec<FoundChunk>, Error> {
        each!(self, store => store.chunks(keys).await)
    }

    /// Returns a chunk by its public ID.
    pub async fn chunk(&self, id: ChunkId) -> Result<Option<FoundChunk>, Error> {
        each!(self, store => store.chunk(id).await)
    }

    /// Writes a document, its pages, chunks and vectors, the change record and the end of its task in one transaction.
    /// A document that [replaces](NewDocument::replaces) another keeps the old ID and date; everything else is
    /// replaced.
    ///
    /// If another document conflicts, nothing is written and the task continues.
    pub async fn put_document(&self, new: NewDocument, work: TaskLink) -> Result<PutOutcome, Error> {
        each!(self, store => store.put_document(new, work).await)
    }

    /// Updates the metadata of a document, and its path if one is given. Returns None if the document does not exist;
    /// the task then continues. A path that belongs to another document is not taken over.
    pub async fn update_metadata(
        &self,
        base: &BaseName,
        id: DocumentId,
        metadata: Map<String, Value>,
        path: Option<String>,
        work: TaskLink,
    ) -> Result<Option<DocumentRecord>, Error> {
        each!(self, store => store.update_metadata(base, id, metadata, path, work).await)
    }

    /// Turns a document of a watched folder into a user document because a user added the same file. It then survives
    /// the removal of the watched file. Returns None if the document does not exist; the task then continues. A path
    /// that belongs to another document is not taken over.
    pub async fn claim_document(
        &self,
        base: &BaseName,
        id: DocumentId,
        claim: Claim,
        work: TaskLink,
    ) -> Result<Option<DocumentRecord>, Error> {
        each!(self, store => store.claim_document(base, id, claim, work).await)
    }

    /// Removes a document with all its data and frees the space. Returns None if it does not exist.
    pub async fn remove_document(&self, base: &BaseName, id: DocumentId) -> Result<Option<RemovedDocument>, Error> {
        each!(self, store => store.remove_document(base, id).await)
    }

    /// Removes a document of a watched folder, but only if it is still at this path: the file may have been found
    /// elsewhere in the meantime, or a user may have added the document.
    pub async fn remove_watched_document(
        &self,
        base: &BaseName,
        id: DocumentId,
        path: &str,
    ) -> Result<Option<RemovedDocument>, Error> {
        each!(self, store => store.remove_watched_document(base, id, path).await)
    }

    /// Records that a file at a path, or an upload, has the same content as a document. Does nothing if the document
    /// was removed.
    pub async fn record_duplicate(&self, id: DocumentId, path: Option<String>) -> Result<(), Error> {
        each!(self, store => store.record_duplicate(id, path).await)
    }

    /// Returns the other paths of a document; None is an upload.
    pub async fn duplicates(&self, id: DocumentId) -> Result<Vec<Option<String>>, Error> {
        each!(self, store => store.duplicates(id).await)
    }

    /// Removes all documents of a base and cancels its tasks in one transaction, then frees the space. Failed tasks
    /// are no longer listed among its documents, and files of watched folders are not added again until they change.
    pub async fn clear(&self, base: &BaseName) -> Result<ClearSummary, Error> {
        each!(self, store => store.clear(base).await)
    }

    /// Totals of a base.
    pub async fn totals(&self, base: &BaseName) -> Result<Totals, Error> {
        each!(self, store => store.totals(base).await)
    }

    /// All bases that were ever written to, sorted by name.
    pub async fn bases(&self) -> Result<Vec<BaseName>, Error> {
        each!(self, store => store.bases().await)
    }
}
