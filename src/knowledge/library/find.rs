//! Search in the local index.

use std::collections::HashMap;
use std::sync::Arc;

use corbie_index::{Mode, Query, Snapshot};

use super::Library;
use crate::knowledge::document::{BaseName, FoundChunk};
use crate::knowledge::search::{Passage, Question};
use crate::knowledge::{Error, blocking};

/// Maximum attempts when chunks change during a search.
const LOOKS: usize = 2;
/// Larger indexes are searched on a blocking thread so that other requests are not delayed.
const QUICK: usize = 20_000;

impl Library {
    pub async fn is_empty(&self, base: &BaseName) -> Result<bool, Error> {
        Ok(self.base(base).await?.is_none_or(|snapshot| snapshot.documents() == 0))
    }

    /// Passages, best first.
    pub async fn find(&self, question: &Question, vector: Option<&[f32]>) -> Result<Vec<Passage>, Error> {
        let mut looked = 0;
        loop {
            let mut found = self.keys(question, vector).await?;
            found.retain(|(_, relevance)| question.shown(*relevance).is_some());
            let keys: Vec<u64> = found.iter().map(|(key, _)| *key).collect();
            let chunks = self.0.store.chunks(&keys).await?;
            looked += 1;
            // A missing chunk was removed or re-keyed in the meantime, so the index has to catch up.
            if chunks.len() == keys.len() || looked == LOOKS {
                let relevances: HashMap<u64, f32> = found.into_iter().collect();
                let passage = |chunk: FoundChunk| {
                    let relevance = *relevances.get(&chunk.key)?;
                    question.passage(chunk, relevance)
                };
                return Ok(chunks.into_iter().filter_map(passage).collect());
            }
            self.catch_up().await?;
        }
    }

    /// Keys of chunks with their relevance, best first.
    async fn keys(&self, question: &Question, vector: Option<&[f32]>) -> Result<Vec<(u64, f32)>, Error> {
        let Some(snapshot) = self.base(&question.base).await? else { return Ok(Vec::new()) };
        if snapshot.vectors() <= QUICK {
            return Ok(search(&snapshot, question, vector));
        }
        let (question, vector) = (question.clone(), vector.map(<[f32]>::to_vec));
        blocking(move || search(&snapshot, &question, vector.as_deref())).await
    }
}

fn search(snapshot: &Arc<Snapshot>, question: &Question, vector: Option<&[f32]>) -> Vec<(u64, f32)> {
    let hits = snapshot.search(&Query {
        text: &question.query,
        vector,
        filter: question.filter.as_ref(),
        top: question.top,
        mode: Mode::Hybrid,
    });
    hits.into_iter().map(|hit| (hit.chunk, hit.relevance)).collect()
}
