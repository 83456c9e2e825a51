//! Immutable segment: the chunks of some documents.

use crate::bitmap::Bitmap;
use crate::inverted_index::{self, InvertedIndex};
use crate::update::Document;
use crate::vectors::Vectors;
use std::fmt;

/// Version of the file format. Must be incremented whenever the encoding or the terms change.
pub(crate) const FORMAT_VERSION: u32 = 1;

/// Content-derived segment ID: segments with the same keys have the same ID on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentId(pub u64);

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Segment {
    pub(crate) id: SegmentId,
    /// Keys of the documents.
    pub(crate) documents: Vec<u64>,
    /// Start of each document's chunks, followed by the total.
    pub(crate) starts: Vec<u32>,
    /// Keys of the chunks.
    pub(crate) chunks: Vec<u64>,
    /// Document of each chunk.
    pub(crate) owners: Vec<u32>,
    /// Chunks sorted by key.
    by_key: Vec<u32>,
    pub(crate) words: InvertedIndex,
    pub(crate) vectors: Vectors,
}

// === impl SegmentId ===

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

// === impl Segment ===

impl Segment {
    pub(crate) fn build(documents: &[Document], dimension: usize) -> Segment {
        let mut words = inverted_index::Builder::default();
        let mut vectors = Vectors::new(dimension);
        let mut chunks = Vec::new();
        let mut starts = vec![0];
        for document in documents {
            words.add_document(document);
            for chunk in &document.chunks {
                vectors.push(&chunk.vectors);
                chunks.push(chunk.key);
            }
            starts.push(chunks.len() as u32);
        }
        vectors.finish();
        let documents = documents.iter().map(|document| document.key).collect();
        Segment::new(documents, starts, chunks, words.finish(), vectors)
    }

    /// Merges segments, in this order, with only the given live documents and chunks.
    pub(crate) fn merge(parts: &[(&Segment, &Bitmap, &Bitmap)], dimension: usize) -> Segment {
        let mut documents = Vec::new();
        let mut starts = vec![0];
        let mut chunks = Vec::new();
        let mut vectors = Vectors::new(dimension);
        for (segment, alive_documents, _) in parts {
            for document in alive_documents.iter() {
                documents.push(segment.documents[document]);
                for chunk in segment.range(document) {
                    chunks.push(segment.chunks[chunk]);
                    vectors.copy(&segment.vectors, chunk);
                }
                starts.push(chunks.len() as u32);
            }
        }
        vectors.finish();
        let words: Vec<_> = parts.iter().map(|(segment, _, chunks)| (&segment.words, *chunks)).collect();
        Segment::new(documents, starts, chunks, InvertedIndex::merge(&words), vectors)
    }

    pub(crate) fn new(
        documents: Vec<u64>,
        starts: Vec<u32>,
        chunks: Vec<u64>,
        words: InvertedIndex,
        vectors: Vectors,
    ) -> Segment {
        let mut owners = Vec::with_capacity(chunks.len());
        for (document, range) in starts.windows(2).enumerate() {
            owners.extend((range[0]..range[1]).map(|_| document as u32));
        }
        let mut by_key: Vec<u32> = (0..chunks.len() as u32).collect();
        by_key.sort_by_key(|chunk| chunks[*chunk as usize]);
        let id = SegmentId(fingerprint(&documents, &starts, &chunks));
        Segment { id, documents, starts, chunks, owners, by_key, words, vectors }
    }

    /// The chunks of a document.
    pub(crate) fn range(&self, document: usize) -> std::ops::Range<usize> {
        self.starts[document] as usize..self.starts[document + 1] as usize
    }

    /// The chunk with a key.
    pub(crate) fn find(&self, key: u64) -> Option<usize> {
        let at = self.by_key.binary_search_by_key(&key, |chunk| self.chunks[*chunk as usize]).ok()?;
        Some(self.by_key[at] as usize)
    }

    /// Whether every key occurs only once, as in every segment that this crate builds.
    pub(crate) fn has_distinct_keys(&self) -> bool {
        let mut documents = self.documents.clone();
        documents.sort_unstable();
        let chunk = |at: &u32| self.chunks[*at as usize];
        documents.is_sorted_by(|one, next| one < next) && self.by_key.is_sorted_by(|one, next| chunk(one) < chunk(next))
    }

    pub(crate) fn bytes(&self) -> usize {
        let keys = self.documents.len() * 12 + self.chunks.len() * 16;
        keys + self.words.bytes() + self.vectors.bytes()
    }
}

/// A stable hash: it names files and must not change.
fn fingerprint(documents: &[u64], starts: &[u32], chunks: &[u64]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ u64::from(FORMAT_VERSION);
    let numbers =
        documents.iter().copied().chain(starts.iter().map(|start| u64::from(*start))).chain(chunks.iter().copied());
    for number in numbers {
        hash = (hash ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 29;
    }
    hash
}
