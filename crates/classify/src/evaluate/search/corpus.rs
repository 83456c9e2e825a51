//! An in-memory index over the passages of a retrieval set.
//!
//! Passages are split into chunks and windows as in the knowledge base, so a long passage counts by its best chunk.

use std::collections::HashSet;

use corbie_extract::chunk::{self, DocumentText, Settings};
use corbie_extract::{Block, Page};
use corbie_index::{Chunk, Document, Index, IndexUpdate, Mode, Query};
use corbie_infer::{Purpose, Tokenizer};

use super::beir_dataset::Passage;
use crate::inference::Inference;

/// The searchable passages of a set.
#[derive(Debug)]
pub struct SearchCorpus {
    index: Index,
    /// The indexed documents, to restore removed ones.
    documents: Vec<Document>,
    /// The passage of each chunk, by chunk key.
    passages: Vec<usize>,
    /// The largest number of chunks of one passage.
    max_chunks: usize,
}

/// A passage found by a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    pub passage: usize,
    pub relevance: f32,
}

type Error = Box<dyn std::error::Error>;

/// The defaults of the knowledge base (K-40).
const CHUNK_SETTINGS: Settings = Settings { size: 500, overlap: 50 };
/// Windows embedded between two progress reports.
const EMBED_BATCH: usize = 256;

impl SearchCorpus {
    /// Calls `tell` with the number of embedded windows and the total.
    pub async fn build(
        passages: &[Passage],
        inference: &Inference,
        mut tell: impl FnMut(usize, usize),
    ) -> Result<SearchCorpus, Error> {
        let model = inference.load().await?;
        let mut base = SearchCorpus {
            index: Index::new(model.dimension),
            documents: Vec::new(),
            passages: Vec::new(),
            max_chunks: 1,
        };
        // The windows of each chunk, with its document and its position there.
        let mut windows: Vec<(usize, usize, String)> = Vec::new();
        for (number, passage) in passages.iter().enumerate() {
            if passage.document >= base.documents.len() {
                let empty = |key| Document { key, added: 0, facets: Vec::new(), chunks: Vec::new() };
                base.documents.extend((base.documents.len() as u64..=passage.document as u64).map(empty));
            }
            let chunks = &mut base.documents[passage.document].chunks;
            let before = chunks.len();
            for text in split_into_chunks(&passage.text, &model.tokenizer)? {
                let pieces = model.tokenizer.windows(&text)?.into_iter().filter(|piece| !piece.trim().is_empty());
                windows.extend(pieces.map(|piece| (passage.document, chunks.len(), piece.to_owned())));
                let key = base.passages.len() as u64;
                chunks.push(Chunk { key, text, context: String::new(), vectors: Vec::new() });
                base.passages.push(number);
            }
            base.max_chunks = base.max_chunks.max(chunks.len() - before);
        }
        for (at, some) in windows.chunks(EMBED_BATCH).enumerate() {
            tell(at * EMBED_BATCH, windows.len());
            let texts = some.iter().map(|(_, _, text)| text.clone()).collect();
            let vectors = inference.embed(texts, Purpose::Passage).await?;
            for ((document, chunk, _), embedding) in some.iter().zip(vectors) {
                base.documents[*document].chunks[*chunk].vectors.push(embedding.vector);
            }
        }
        base.index.apply(base.documents.iter().cloned().map(IndexUpdate::Put).collect());
        base.index.merge_segments();
        Ok(base)
    }

    pub fn chunks(&self) -> usize {
        self.passages.len()
    }

    pub(super) fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// The passage of a chunk.
    pub(super) fn passage(&self, chunk: u64) -> Option<usize> {
        self.passages.get(usize::try_from(chunk).ok()?).copied()
    }

    /// The best passages, best first, without duplicates.
    pub fn search(&self, text: &str, vector: &[f32], mode: Mode, top: usize) -> Vec<Hit> {
        let wanted = top.saturating_mul(self.max_chunks);
        let query = Query { text, vector: Some(vector), filter: None, top: wanted, mode };
        let mut seen = HashSet::new();
        let hits = self.index.snapshot().search(&query).into_iter().filter_map(|hit| {
            let passage = self.passage(hit.chunk)?;
            seen.insert(passage).then_some(Hit { passage, relevance: hit.relevance })
        });
        hits.take(top).collect()
    }

    /// Runs `then` with some documents removed from the index, then restores them.
    pub fn without<T>(&self, documents: &HashSet<usize>, then: impl FnOnce(&SearchCorpus) -> T) -> T {
        let there = || documents.iter().filter_map(|number| self.documents.get(*number));
        self.index.apply(there().map(|document| IndexUpdate::Remove { document: document.key }).collect());
        let done = then(self);
        self.index.apply(there().cloned().map(IndexUpdate::Put).collect());
        done
    }
}

fn split_into_chunks(text: &str, tokenizer: &Tokenizer) -> Result<Vec<String>, Error> {
    let pages = [Page { number: 1, blocks: vec![Block::paragraph(text)], ..Page::default() }];
    let text = DocumentText::of(&pages);
    let tokens = chunk::bound_tokens(text.as_str(), tokenizer.offsets(text.as_str())?);
    let chunks = chunk::pack(&text, &tokens, CHUNK_SETTINGS);
    Ok(chunks.into_iter().map(|chunk| chunk.text).collect())
}
