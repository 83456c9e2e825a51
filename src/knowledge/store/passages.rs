//! What documents say: their pages, and the chunks they are found by.

use super::{Error, Store};
use crate::knowledge::document::{BaseName, ChunkId, Document, DocumentId, FoundChunk, Page, PlacedChunk};

/// Which pages are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The number of the first.
    pub from: u32,
    pub pages: u32,
    /// After so many bytes no further page begins.
    pub bytes: usize,
}

impl Store {
    /// A document with some of its pages. Both are of the same moment, so one that is replaced meanwhile is never half of
    /// each. None if there is no such document.
    pub async fn text(
        &self,
        base: &BaseName,
        id: DocumentId,
        wanted: Wanted,
    ) -> Result<Option<(Document, Vec<Page>)>, Error> {
        each!(self, store => store.text(base, id, wanted).await)
    }

    /// The same, and the chunks that stand on these pages, in their order.
    pub async fn text_and_chunks(
        &self,
        base: &BaseName,
        id: DocumentId,
        wanted: Wanted,
    ) -> Result<Option<(Document, Vec<Page>, Vec<PlacedChunk>)>, Error> {
        each!(self, store => store.text_and_chunks(base, id, wanted).await)
    }

    /// Chunks by their keys, in that order, as they all were at one moment. Those that are gone are left out.
    pub async fn chunks(&self, keys: &[u64]) -> Result<Vec<FoundChunk>, Error> {
        each!(self, store => store.chunks(keys).await)
    }

    /// One by the id that callers know.
    pub async fn chunk(&self, id: ChunkId) -> Result<Option<FoundChunk>, Error> {
        each!(self, store => store.chunk(id).await)
    }
}
