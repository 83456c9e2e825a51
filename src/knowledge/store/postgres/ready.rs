//! A document prepared for insertion: analyzed terms and half-precision vectors. This is CPU-bound and needs no
//! database, so it is done before any lock is taken.

use corbie_index::{Chunk, apart};
use pgvector::HalfVector;

use super::facets::facets;
use super::sums::Added;
use super::{KEYS, rows, sums};
use crate::knowledge::document::{ChunkId, NewChunk, NewDocument};
use crate::knowledge::filter;
use crate::knowledge::named::Named;
use crate::knowledge::store::Error;

/// A document with its terms and vectors in stored form.
pub(super) struct Ready {
    pub(super) new: NewDocument,
    /// Public IDs of its chunks.
    pub(super) ids: Vec<ChunkId>,
    /// When the document was added, if not now.
    pub(super) date_added: Option<i64>,
    pub(super) dimensions: usize,
    pub(super) vectors: Vec<Vec<HalfVector>>,
    pub(super) words: apart::Read,
    pub(super) metadata: String,
    pub(super) facets: Vec<i64>,
}

impl Ready {
    pub(super) fn of(mut new: NewDocument) -> Result<Ready, Error> {
        if new.chunks.len() >= 1 << KEYS {
            return Err(Error::Internal(format!(
                "a document has {} chunks, and {} are kept at most",
                new.chunks.len(),
                1 << KEYS
            )));
        }
        let given: Vec<Vec<Vec<f32>>> = new.chunks.iter_mut().map(|chunk| std::mem::take(&mut chunk.vectors)).collect();
        let mut lengths = given.iter().flatten().map(Vec::len);
        let dimensions = lengths.next().unwrap_or(0);
        if lengths.any(|other| other != dimensions) {
            return Err(Error::Internal("vectors of a document differ in length".to_owned()));
        }
        if given.iter().flatten().flatten().any(|number| !number.is_finite()) {
            return Err(Error::Internal("a vector has a number that is none".to_owned()));
        }
        let vectors = given.iter().map(|windows| windows.iter().map(|window| halves(window)).collect()).collect();
        let words = read(&new.filename, new.title.as_deref(), &new.chunks);
        let facets = facets(&filter::facets(&new.format, &new.metadata));
        let metadata = rows::to_json(&new.metadata)?;
        let ids = new.chunks.iter().map(|_| ChunkId::random()).collect();
        Ok(Ready { new, ids, date_added: None, dimensions, vectors, words, metadata, facets })
    }

    pub(super) fn vector_count(&self) -> usize {
        self.vectors.iter().map(Vec::len).sum()
    }

    pub(super) fn added(&self) -> Result<Added, Error> {
        Ok(Added {
            chunks: self.new.chunks.len() as i64,
            vectors: self.vector_count() as i64,
            size_bytes: rows::signed(self.new.size_bytes),
            length: rows::signed(self.words.sums.length),
            languages: sums::languages(&self.words.sums),
        })
    }
}

/// Normalizes the vector first: only the direction matters, and a unit vector does not overflow half precision.
fn halves(vector: &[f32]) -> HalfVector {
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
    let unit: Vec<f32> = vector.iter().map(|number| (f64::from(*number) * scale) as f32).collect();
    HalfVector::from_f32_slice(&unit)
}

/// Analyzes the terms of new chunks.
fn read(filename: &str, title: Option<&str>, chunks: &[NewChunk]) -> apart::Read {
    let named = Named::of(filename, title);
    let chunks = chunks.iter().enumerate().map(|(ordinal, chunk)| Chunk {
        key: ordinal as u64,
        text: chunk.text.clone(),
        context: named.context(&chunk.path),
        vectors: Vec::new(),
    });
    apart::words(&corbie_index::Document { key: 0, added: 0, facets: Vec::new(), chunks: chunks.collect() })
}
