//! Document content: pages and chunks.

use super::{Error, Store};
use crate::knowledge::document::{
    BaseName, ChunkId, DocumentId, DocumentPage, DocumentRecord, FoundChunk, PlacedChunk,
};

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
}
