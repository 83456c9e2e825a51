//! A segment in a snapshot: its live documents and their filterable attributes.

use crate::bitmap::Bitmap;
use crate::filter::{DocumentAttributes, FacetIndex};
use crate::language::LANGUAGES;
use crate::query::Filter;
use crate::segment::Segment;
use std::sync::{Arc, OnceLock};

#[derive(Debug, Clone)]
pub(crate) struct LiveSegment {
    /// Stays the same when documents are removed or their attributes change.
    pub(crate) serial: u64,
    pub(crate) segment: Arc<Segment>,
    pub(crate) documents: Bitmap,
    pub(crate) chunks: Bitmap,
    /// Removed chunks, sorted.
    pub(crate) removed_chunks: Vec<u32>,
    pub(crate) attributes: Arc<Vec<DocumentAttributes>>,
    pub(crate) stats: SegmentStats,
    /// Built lazily by the first filtered search.
    facets: OnceLock<Arc<FacetIndex>>,
}

/// Statistics of the live documents.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct SegmentStats {
    pub(crate) documents: usize,
    pub(crate) chunks: usize,
    pub(crate) vectors: usize,
    /// Total length of all chunks, in halves of words.
    pub(crate) length: u64,
    /// Number of chunks per language.
    pub(crate) languages: [u32; LANGUAGES],
}

// === impl Part ===

impl LiveSegment {
    /// `details` has one element per document.
    pub(crate) fn new(serial: u64, segment: Arc<Segment>, details: Vec<DocumentAttributes>) -> LiveSegment {
        let mut sums = SegmentStats::default();
        for document in 0..segment.documents.len() {
            sums.add_document(&segment, document, 1);
        }
        LiveSegment {
            serial,
            documents: Bitmap::full(segment.documents.len()),
            chunks: Bitmap::full(segment.chunks.len()),
            removed_chunks: Vec::new(),
            attributes: Arc::new(details),
            stats: sums,
            facets: OnceLock::new(),
            segment,
        }
    }

    /// Whether any document was removed, including documents without chunks.
    pub(crate) fn has_removed(&self) -> bool {
        self.stats.documents < self.segment.documents.len()
    }

    /// Removes documents, given by position.
    pub(crate) fn remove(&mut self, documents: &[u32]) {
        for document in documents.iter().map(|document| *document as usize) {
            if self.documents.contains(document) {
                let range = self.segment.range(document);
                self.documents.remove_range(document, document + 1);
                self.chunks.remove_range(range.start, range.end);
                self.removed_chunks.extend(range.map(|chunk| chunk as u32));
                self.stats.add_document(&self.segment, document, -1);
            }
        }
        self.removed_chunks.sort_unstable();
    }

    /// Changes the filterable attributes of documents.
    pub(crate) fn set_attributes(&mut self, changes: Vec<(u32, DocumentAttributes)>) {
        let mut details = self.attributes.to_vec();
        for (document, detail) in changes {
            details[document as usize] = detail;
        }
        self.attributes = Arc::new(details);
        self.facets = OnceLock::new();
    }

    /// The chunks that may be returned; `None` means all.
    pub(crate) fn allowed(&self, filter: Option<&Filter>) -> Option<Bitmap> {
        let Some(filter) = filter else {
            return (!self.removed_chunks.is_empty()).then(|| self.chunks.clone());
        };
        let facets = self.facets.get_or_init(|| Arc::new(FacetIndex::new(&self.attributes)));
        let mut documents = facets.allowed(filter);
        documents.intersect(&self.documents);
        let mut chunks = Bitmap::empty(self.segment.chunks.len());
        for document in documents.iter() {
            let range = self.segment.range(document);
            chunks.insert_range(range.start, range.end);
        }
        Some(chunks)
    }

    pub(crate) fn bytes(&self) -> usize {
        let details: usize = self
            .attributes
            .iter()
            .map(|detail| {
                24 + detail.facets.iter().map(|facet| 48 + facet.key.len() + facet.value.len()).sum::<usize>()
            })
            .sum();
        self.segment.bytes() + self.documents.bytes() + self.chunks.bytes() + self.removed_chunks.len() * 4 + details
    }
}

// === impl Sums ===

impl SegmentStats {
    pub(crate) fn add(&mut self, other: &SegmentStats) {
        self.documents += other.documents;
        self.chunks += other.chunks;
        self.vectors += other.vectors;
        self.length += other.length;
        for (sum, other) in self.languages.iter_mut().zip(other.languages) {
            *sum += other;
        }
    }

    /// Adds (1) or subtracts (-1) a document.
    fn add_document(&mut self, segment: &Segment, document: usize, sign: i64) {
        let count = |sum: &mut usize, by: usize| *sum = (*sum as i64 + sign * by as i64) as usize;
        let range = segment.range(document);
        let starts = &segment.vectors.starts;
        count(&mut self.documents, 1);
        count(&mut self.chunks, range.len());
        count(&mut self.vectors, (starts[range.end] - starts[range.start]) as usize);
        for chunk in range {
            self.length = (self.length as i64 + sign * i64::from(segment.words.lengths[chunk])) as u64;
            if let Some(language) = segment.words.language(chunk) {
                let sum = &mut self.languages[usize::from(language.number())];
                *sum = (i64::from(*sum) + sign) as u32;
            }
        }
    }
}
