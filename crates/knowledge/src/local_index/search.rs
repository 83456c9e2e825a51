//! Search in the local index.

use std::collections::HashMap;
use std::sync::Arc;

use corbie_index::{Mode, Query, Snapshot};

use super::LocalIndex;
use crate::document::{BaseName, FoundChunk};
use crate::page_match::has_several_pages;
use crate::search::{Passage, SearchRequest};
use crate::{Error, run_blocking};

/// Maximum attempts when chunks change during a search.
const MAX_ATTEMPTS: usize = 2;
/// Larger indexes are searched on a blocking thread so that other requests are not delayed.
const MAX_INLINE_VECTORS: usize = 20_000;

impl LocalIndex {
    pub async fn is_empty(&self, base: &BaseName) -> Result<bool, Error> {
        Ok(self.base_snapshot(base).await?.is_none_or(|snapshot| snapshot.documents() == 0))
    }

    /// Passages, best first.
    pub async fn search(&self, question: &SearchRequest, vector: Option<&[f32]>) -> Result<Vec<Passage>, Error> {
        let mut looked = 0;
        loop {
            let mut found = self.search_keys(question, vector).await?;
            found.retain(|(_, relevance)| question.rounded_relevance(*relevance).is_some());
            let keys: Vec<u64> = found.iter().map(|(key, _)| *key).collect();
            let chunks = self.0.store.chunks(&keys).await?;
            looked += 1;
            // A missing chunk was removed or re-keyed in the meantime, so the index has to catch up.
            if chunks.len() == keys.len() || looked == MAX_ATTEMPTS {
                let relevances: HashMap<u64, f32> = found.into_iter().collect();
                let several = chunks.iter().any(has_several_pages);
                let snapshot = if several { self.base_snapshot(&question.base).await? } else { None };
                let passage = |chunk: FoundChunk| {
                    let relevance = *relevances.get(&chunk.key)?;
                    let looked_for = snapshot.as_ref().zip(vector).filter(|_| has_several_pages(&chunk));
                    let similarities =
                        looked_for.map(|(snapshot, vector)| snapshot.window_similarities(chunk.key, vector));
                    question.passage(chunk, relevance, &similarities.unwrap_or_default())
                };
                return Ok(chunks.into_iter().filter_map(passage).collect());
            }
            self.catch_up().await?;
        }
    }

    /// Keys of chunks with their relevance, best first.
    async fn search_keys(&self, question: &SearchRequest, vector: Option<&[f32]>) -> Result<Vec<(u64, f32)>, Error> {
        let Some(snapshot) = self.base_snapshot(&question.base).await? else { return Ok(Vec::new()) };
        if snapshot.vectors() <= MAX_INLINE_VECTORS {
            return Ok(search_snapshot(&snapshot, question, vector));
        }
        let (question, vector) = (question.clone(), vector.map(<[f32]>::to_vec));
        run_blocking(move || search_snapshot(&snapshot, &question, vector.as_deref())).await
    }
}

fn search_snapshot(snapshot: &Arc<Snapshot>, question: &SearchRequest, vector: Option<&[f32]>) -> Vec<(u64, f32)> {
    let hits = snapshot.search(&Query {
        text: &question.query,
        vector,
        filter: question.filter.as_ref(),
        top: question.top_k,
        mode: Mode::Hybrid,
    });
    hits.into_iter().map(|hit| (hit.chunk, hit.relevance)).collect()
}
