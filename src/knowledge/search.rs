//! Finding passages (K-50 to K-60).

use std::collections::HashMap;
use std::sync::Arc;

use corbie_index::{Filter, Mode, Query, Snapshot};
use corbie_infer::Purpose;
use tracing::Instrument;
use tracing::field::Empty;

use super::document::{BaseName, FoundChunk};
use super::{Error, Knowledge, blocking};
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

/// More vectors than this are searched aside, so that nobody else waits.
const QUICK: usize = 20_000;

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
        let snapshot = open.library.base(&question.base).await?.filter(|snapshot| snapshot.documents() > 0);
        let Some(snapshot) = snapshot else { return Err(Error::Empty) };
        // Without vectors, words still find something.
        let vector = match self.inference().embed(vec![question.query.clone()], Purpose::Query).await {
            Ok(embedded) => embedded.into_iter().next().map(|embedding| embedding.vector),
            Err(error) => {
                tracing::warn!(%error, "a question was searched for by its words alone");
                None
            }
        };
        let (mut snapshot, mut looked) = (snapshot, 0);
        let (relevances, chunks) = loop {
            let relevances = self.find_in(&snapshot, &question, vector.as_deref()).await?;
            let keys: Vec<u64> = relevances.iter().map(|(key, _)| *key).collect();
            let chunks = open.store.chunks(&keys).await?;
            looked += 1;
            // What is missing was removed meanwhile, or has other keys now, which the index has to hear of.
            if chunks.len() == keys.len() || looked == LOOKS {
                break (relevances.into_iter().collect::<HashMap<u64, f32>>(), chunks);
            }
            open.library.catch_up().await?;
            let Some(newer) = open.library.base(&question.base).await? else { return Ok(Vec::new()) };
            snapshot = newer;
        };
        let passage =
            |chunk: FoundChunk| Passage { relevance: relevances.get(&chunk.key).copied().unwrap_or(0.0), chunk };
        Ok(chunks.into_iter().map(passage).collect())
    }

    async fn find_in(
        &self,
        snapshot: &Arc<Snapshot>,
        question: &Question,
        vector: Option<&[f32]>,
    ) -> Result<Vec<(u64, f32)>, Error> {
        if snapshot.vectors() <= QUICK {
            return Ok(find(snapshot, question, vector));
        }
        let (snapshot, question, vector) = (snapshot.clone(), question.clone(), vector.map(<[f32]>::to_vec));
        blocking(move || find(&snapshot, &question, vector.as_deref())).await
    }
}

/// Keys of chunks with their relevance.
fn find(snapshot: &Arc<Snapshot>, question: &Question, vector: Option<&[f32]>) -> Vec<(u64, f32)> {
    let hits = snapshot.search(&Query {
        text: &question.query,
        vector,
        filter: question.filter.as_ref(),
        top: question.top,
        mode: Mode::Hybrid,
    });
    // Compared as it is shown: whoever asks for no less than what was shown gets that.
    let shown = hits.into_iter().map(|hit| (hit.chunk, (hit.relevance * 1e4).round() / 1e4));
    shown.filter(|(_, relevance)| *relevance > 0.0 && *relevance >= question.least).collect()
}
