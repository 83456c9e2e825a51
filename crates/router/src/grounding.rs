//! Grounding: passages of the knowledge base for a prompt (`router.grounding`).

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use corbie_config::grounding as config;
use corbie_knowledge::grounding::Fence;
use corbie_knowledge::search::{Passage, SearchRequest};
use corbie_knowledge::{Error, Knowledge};

/// Search results for a prompt.
#[derive(Debug, Clone, Default)]
pub struct GroundingResult {
    /// Relevance of the best passage, or 0 if there is none.
    pub relevance: f32,
    pub passages: Vec<Passage>,
}

/// How well the knowledge base covers a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroundingVerdict {
    /// The documents answer the prompt.
    Known,
    /// The documents may answer it.
    Unsure,
    /// The documents contain nothing about it.
    Unknown,
}

/// How the knowledge base is used for a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum DocumentAccess {
    #[default]
    Search,
    /// The prompt already contains passages with this relevance.
    Provided(f32),
    /// The caller has no access to them.
    Hidden,
}

/// Effect of grounding on a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroundingEffect {
    pub verdict: GroundingVerdict,
    /// The model that would be tried first without grounding.
    pub model_without_documents: Option<String>,
}

/// Timeout for the search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of characters of a prompt used as the query.
const MAX_QUERY_CHARS: usize = 500;

/// Searches for passages. On failure the prompt is answered without them.
pub(super) async fn search_passages(
    knowledge: &Knowledge,
    settings: &config::Grounding,
    prompt: &str,
) -> Option<GroundingResult> {
    let query: String = prompt.chars().take(MAX_QUERY_CHARS).collect();
    if !settings.enabled || query.trim().is_empty() {
        return None;
    }
    // While the database is unavailable, prompts do not wait for it.
    if knowledge.is_search_unavailable() {
        tracing::debug!("prompt routed without documents: knowledge base is unavailable");
        return None;
    }
    let question = SearchRequest {
        base: settings.knowledge_base.parse().ok()?,
        query: query.trim().to_owned(),
        top_k: settings.passages,
        min_relevance: settings.unanswered_below as f32,
        filter: None,
    };
    let passages = match timeout_at(Instant::now() + SEARCH_TIMEOUT, knowledge.search(question)).await {
        Ok(Ok(passages)) => passages,
        Ok(Err(Error::Empty)) => Vec::new(),
        Ok(Err(error)) => {
            tracing::warn!(%error, "prompt routed without documents: search failed");
            return None;
        }
        Err(_) => {
            tracing::warn!("prompt routed without documents: search timed out");
            return None;
        }
    };
    let relevance = passages.first().map_or(0.0, |best| best.relevance);
    Some(GroundingResult { relevance, passages })
}

impl GroundingVerdict {
    pub fn as_str(self) -> &'static str {
        match self {
            GroundingVerdict::Known => "answered",
            GroundingVerdict::Unsure => "unsure",
            GroundingVerdict::Unknown => "unanswered",
        }
    }

    pub fn of(relevance: f32, settings: &config::Grounding) -> GroundingVerdict {
        match f64::from(relevance) {
            high if high >= settings.answered_above => GroundingVerdict::Known,
            low if low < settings.unanswered_below => GroundingVerdict::Unknown,
            _ => GroundingVerdict::Unsure,
        }
    }
}

impl GroundingResult {
    /// The passages as a message for the model. `None` if there are none.
    pub(super) fn prompt(&self) -> Option<String> {
        let fence = Fence::new();
        (!self.passages.is_empty()).then(|| format!("{}\n\n{}", fence.hints(), fence.format_passages(&self.passages)))
    }
}
