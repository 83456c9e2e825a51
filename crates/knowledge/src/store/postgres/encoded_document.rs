//! A document prepared for insertion: analyzed terms and half-precision vectors. This is CPU-bound and needs no
//! database, so it is done before any lock is taken.

use corbie_index::{Chunk, external};
use pgvector::HalfVector;

use super::corpus_stats::DocumentStats;
use super::{ORDINAL_BITS, corpus_stats, rows};
use crate::chunk_context::DocumentContext;
use crate::document::{ChunkId, NewChunk, NewDocument};
use crate::filter;
use crate::store::Error;

/// A document with its terms and vectors in stored form.
pub(super) struct EncodedDocument {
    pub(super) new: NewDocument,
    /// Public IDs of its chunks.
    pub(super) chunk_ids: Vec<ChunkId>,
    /// When the document was added, if not now.
    pub(super) date_added: Option<i64>,
    pub(super) dimensions: usize,
    pub(super) vectors: Vec<Vec<HalfVector>>,
    pub(super) analysis: external::AnalyzedDocument,
    pub(super) metadata: String,
    pub(super) facets: Vec<i64>,
}

impl EncodedDocument {
    pub(super) fn of(mut new: NewDocument) -> Result<EncodedDocument, Error> {
        if new.chunks.len() >= 1 << ORDINAL_BITS {
            return Err(Error::Internal(format!(
                "a document has {} chunks (maximum {})",
                new.chunks.len(),
                1 << ORDINAL_BITS
            )));
        }
        let given: Vec<Vec<Vec<f32>>> = new.chunks.iter_mut().map(|chunk| std::mem::take(&mut chunk.vectors)).collect();
        let mut lengths = given.iter().flatten().map(Vec::len);
        let dimensions = lengths.next().unwrap_or(0);
        if lengths.any(|other| other != dimensions) {
            return Err(Error::Internal("vectors of a document differ in length".to_owned()));
        }
        if given.iter().flatten().flatten().any(|number| !number.is_finite()) {
            return Err(Error::Internal("a vector has a NaN".to_owned()));
        }
        let vectors =
            given.iter().map(|windows| windows.iter().map(|window| to_half_precision(window)).collect()).collect();
        let words = analyze(&new.filename, new.title.as_deref(), &new.chunks);
        let facets = rows::facet_hashes(&filter::facets(&new.format, &new.metadata));
        let metadata = rows::to_json(&new.metadata)?;
        let ids = new.chunks.iter().map(|_| ChunkId::random()).collect();
        Ok(EncodedDocument {
            new,
            chunk_ids: ids,
            date_added: None,
            dimensions,
            vectors,
            analysis: words,
            metadata,
            facets,
        })
    }

    pub(super) fn vector_count(&self) -> usize {
        self.vectors.iter().map(Vec::len).sum()
    }

    pub(super) fn stats(&self) -> Result<DocumentStats, Error> {
        Ok(DocumentStats {
            chunks: self.new.chunks.len() as i64,
            vectors: self.vector_count() as i64,
            size_bytes: rows::to_i64(self.new.size_bytes),
            length: rows::to_i64(self.analysis.stats.length),
            languages: corpus_stats::languages_json(&self.analysis.stats),
        })
    }
}

/// Normalizes the vector first: only the direction matters, and a unit vector does not overflow half precision.
fn to_half_precision(vector: &[f32]) -> HalfVector {
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
    let unit: Vec<f32> = vector.iter().map(|number| (f64::from(*number) * scale) as f32).collect();
    HalfVector::from_f32_slice(&unit)
}

/// Analyzes the terms of new chunks.
fn analyze(filename: &str, title: Option<&str>, chunks: &[NewChunk]) -> external::AnalyzedDocument {
    let named = DocumentContext::of(filename, title);
    let chunks = chunks.iter().enumerate().map(|(ordinal, chunk)| Chunk {
        key: ordinal as u64,
        text: chunk.text.clone(),
        context: named.for_chunk(&chunk.headings),
        vectors: Vec::new(),
    });
    external::analyze(&corbie_index::Document { key: 0, added: 0, facets: Vec::new(), chunks: chunks.collect() })
}
