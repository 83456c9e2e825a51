//! Search for passages (K-50 to K-60).

use corbie_index::Filter;
use corbie_infer::Purpose;
use tracing::Instrument;
use tracing::field::Empty;

use super::document::{BaseName, FoundChunk};
use super::page_match::best_page;
use super::{Error, Knowledge};
use corbie_util::span_target::COLLECTOR_TARGET;

/// A search query.
#[derive(Debug, Clone)]
pub struct SearchRequest {
    pub base: BaseName,
    pub query: String,
    pub top_k: usize,
    /// Minimum relevance.
    pub min_relevance: f32,
    pub filter: Option<Filter>,
}

/// A search result.
#[derive(Debug, Clone)]
pub struct Passage {
    pub chunk: FoundChunk,
    /// From 0 to 1.
    pub relevance: f32,
    /// Page of the best matching sentence; 0 without pages.
    pub page: u32,
}

impl SearchRequest {
    /// A passage with its rounded relevance, if it reaches the minimum. The rounded value is compared, so a minimum
    /// equal to a displayed relevance includes that passage. `similarities` are those of the chunk's windows; empty if
    /// they are unknown.
    pub(super) fn passage(&self, chunk: FoundChunk, relevance: f32, similarities: &[f32]) -> Option<Passage> {
        let relevance = self.rounded_relevance(relevance)?;
        let page = best_page(&self.query, &chunk, similarities);
        Some(Passage { chunk, relevance, page })
    }

    pub(super) fn rounded_relevance(&self, relevance: f32) -> Option<f32> {
        let shown = (relevance * 1e4).round() / 1e4;
        Some(shown).filter(|shown| *shown > 0.0 && *shown >= self.min_relevance)
    }
}

impl Knowledge {
    /// The most relevant passages, best first.
    pub async fn search(&self, question: SearchRequest) -> Result<Vec<Passage>, Error> {
        let span = tracing::info_span!(
            target: COLLECTOR_TARGET,
            "search",
            otel.name = %format_args!("retrieval {}", question.base.as_str()),
            gen_ai.operation.name = "retrieval",
            gen_ai.data_source.id = question.base.as_str(),
            passages = Empty,
        );
        let found = self.retrieve(question).instrument(span.clone()).await;
        span.record("passages", found.as_ref().ok().map(Vec::len));
        found
    }

    async fn retrieve(&self, question: SearchRequest) -> Result<Vec<Passage>, Error> {
        let open = self.open().await?;
        if open.retriever.is_empty(&question.base).await? {
            return Err(Error::Empty);
        }
        // Without a vector, lexical search still works.
        let vector = match self.inference().embed(vec![question.query.clone()], Purpose::Query).await {
            Ok(embedded) => embedded.into_iter().next().map(|embedding| embedding.vector),
            Err(error) => {
                tracing::warn!(%error, "embedding failed; using keyword search only");
                None
            }
        };
        open.retriever.search(&question, vector.as_deref()).await
    }
}
