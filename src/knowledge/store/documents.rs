//! Documents: which there are, and how they come, change and go.

use serde_json::{Map, Value};

use super::{Error, Listed, Listing, Store};
use crate::knowledge::document::{BaseName, Claim, Document, DocumentId, NewDocument, Put, Removed, Totals};
use crate::knowledge::task::{TaskId, Work};

/// What is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cleared {
    pub documents: u64,
    pub chunks: u64,
    pub vectors: u64,
    /// By how much the files have become smaller.
    pub freed_bytes: u64,
    /// Those that waited or were running. Their processes find that they can write nothing.
    pub cancelled_tasks: Vec<TaskId>,
}

impl Store {
    pub async fn document(&self, base: &BaseName, id: DocumentId) -> Result<Option<Document>, Error> {
        each!(self, store => store.document(base, id).await)
    }

    /// The document that says the same, byte for byte. The first of them if there are several.
    pub async fn document_by_content(&self, base: &BaseName, sha256: [u8; 32]) -> Result<Option<Document>, Error> {
        each!(self, store => store.document_by_content(base, sha256).await)
    }

    pub async fn document_by_path(&self, base: &BaseName, path: &str) -> Result<Option<Document>, Error> {
        each!(self, store => store.document_by_path(base, path).await)
    }

    /// A part of the list of documents. Tasks that wait, run or have failed are in it until their document is.
    pub async fn documents(&self, base: &BaseName, listing: Listing) -> Result<Listed, Error> {
        each!(self, store => store.documents(base, listing).await)
    }

    /// Writes a document, its pages, chunks and vectors, the change, and the end of its task in one transaction. One that
    /// [replaces](NewDocument::replaces) another keeps that one's id and date; everything else is swapped.
    ///
    /// Where another document is in the way, nothing is written, and the task goes on.
    pub async fn put_document(&self, new: NewDocument, work: Work) -> Result<Put, Error> {
        each!(self, store => store.put_document(new, work).await)
    }

    /// Changes what is said about a document, and where it stands if there is a path. None if there is no such document;
    /// then the task goes on. A path that another document has is not taken from it.
    pub async fn describe_document(
        &self,
        base: &BaseName,
        id: DocumentId,
        metadata: Map<String, Value>,
        path: Option<String>,
        work: Work,
    ) -> Result<Option<Document>, Error> {
        each!(self, store => store.describe_document(base, id, metadata, path, work).await)
    }

    /// Makes a document of a watched folder the user's, who has added the same: it does not go with the watched file. None if
    /// there is no such document; then the task goes on. A path that another document has is not taken from it.
    pub async fn claim_document(
        &self,
        base: &BaseName,
        id: DocumentId,
        claim: Claim,
        work: Work,
    ) -> Result<Option<Document>, Error> {
        each!(self, store => store.claim_document(base, id, claim, work).await)
    }

    /// Removes a document with everything that belongs to it, and gives its space back. None if there is none.
    pub async fn remove_document(&self, base: &BaseName, id: DocumentId) -> Result<Option<Removed>, Error> {
        each!(self, store => store.remove_document(base, id).await)
    }

    /// The same for one of a watched folder, if it still stands at a path: its file may have been found elsewhere meanwhile,
    /// or a user may have added it.
    pub async fn remove_watched_document(
        &self,
        base: &BaseName,
        id: DocumentId,
        path: &str,
    ) -> Result<Option<Removed>, Error> {
        each!(self, store => store.remove_watched_document(base, id, path).await)
    }

    /// Notes that a document is also that of the file at a path, or of an upload. A document that is gone has none.
    pub async fn note_copy(&self, id: DocumentId, path: Option<String>) -> Result<(), Error> {
        each!(self, store => store.note_copy(id, path).await)
    }

    /// The other paths of a document, and none for an upload.
    pub async fn copies(&self, id: DocumentId) -> Result<Vec<Option<String>>, Error> {
        each!(self, store => store.copies(id).await)
    }

    /// Removes all documents of a base and cancels its tasks, in one transaction, and gives the space back. Failed tasks
    /// are no longer listed among its documents, and files of watched folders wait until they change.
    pub async fn clear(&self, base: &BaseName) -> Result<Cleared, Error> {
        each!(self, store => store.clear(base).await)
    }

    /// What a base holds in all.
    pub async fn totals(&self, base: &BaseName) -> Result<Totals, Error> {
        each!(self, store => store.totals(base).await)
    }

    /// All bases that anything was ever written to, by name.
    pub async fn bases(&self) -> Result<Vec<BaseName>, Error> {
        each!(self, store => store.bases().await)
    }
}
