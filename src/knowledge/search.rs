//! Finding passages (K-50 to K-60).

use std::collections::HashMap;

use corbie_index::Filter;
use corbie_infer::Purpose;
use tracing::Instrument;
use tracing::field::Empty;

use super::document::{BaseName, FoundChunk};
use super::{Error, Knowledge};
use crate::telemetry::FOR_COLLECTORS;

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Question {
    pub base: BaseName,
    pub query: String,
    pub top: usize,
    /// Nothing less relevant is wanted.
    pub least: f32,
    pub filter: Option<Filter>,
}

/// A passage that was found.
#[derive(Debug, Clone)]
pub struct Passage {
    pub chunk: FoundChunk,
    /// From 0 to 1.
    pub relevance: f32,
}

/// So often is looked where chunks change meanwhile.
const LOOKS: usize = 2;

impl Knowledge {
    /// The passages that answer a question best, best first.
    pub async fn search(&self, question: Question) -> Result<Vec<Passage>, Error> {
        let span = tracing::info_span!(
            target: FOR_COLLECTORS,
            "search",
            otel.name = %format_args!("retrieval {}", question.base.as_str()),
            gen_ai.operation.name = "retrieval",
            gen_ai.data_source.id = question.base.as_str(),
            passages = Empty,
        );
        let found = self.passages(question).instrument(span.clone()).await;
        span.record("passages", found.as_ref().ok().map(Vec::len));
        found
    }

    async fn passages(&self, question: Question) -> Result<Vec<Passage>, Error> {
        let open = self.open().await?;
        if open.finder.is_empty(&question.base).await? {
            return Err(Error::Empty);
        }
        // Without vectors, words still find something.
        let vector = match self.inference().embed(vec![question.query.clone()], Purpose::Query).await {
            Ok(embedded) => embedded.into_iter().next().map(|embedding| embedding.vector),
            Err(error) => {
                tracing::warn!(%error, "a question was searched for by its words alone");
                None
            }
        };
        let mut looked = 0;
        let (relevances, chunks) = loop {
            let relevances = open.finder.find(&question, vector.as_deref()).await?;
            let keys: Vec<u64> = relevances.iter().map(|(key, _)| *key).collect();
            let chunks = open.store.chunks(&keys).await?;
            looked += 1;
            // What is missing was removed meanwhile, or has other keys now, which the finder has to hear of.
            if chunks.len() == keys.len() || looked == LOOKS {
                break (relevances.into_iter().collect::<HashMap<u64, f32>>(), chunks);
            }
            open.finder.catch_up().await?;
        };
        let passage =
            |chunk: FoundChunk| Passage { relevance: relevances.get(&chunk.key).copied().unwrap_or(0.0), chunk };
        Ok(chunks.into_iter().map(passage).collect())
    }
}
