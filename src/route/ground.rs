//! Grounding: passages of the knowledge base for a prompt (`router.grounding`).

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::config::grounding as config;
use crate::knowledge::grounding::Fence;
use crate::knowledge::search::{Passage, Question};
use crate::knowledge::{Error, Knowledge};

/// Search results for a prompt.
#[derive(Debug, Clone, Default)]
pub struct Grounds {
    /// Relevance of the best passage, or 0 if there is none.
    pub relevance: f32,
    pub passages: Vec<Passage>,
}

/// How well the knowledge base covers a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The documents answer the prompt.
    Known,
    /// The documents may answer it.
    Unsure,
    /// The documents contain nothing about it.
    Unknown,
}

/// How the knowledge base is used for a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Documents {
    #[default]
    Asked,
    /// The prompt already contains passages with this relevance.
    Brought(f32),
    /// The caller has no access to them.
    Hidden,
}

/// Effect of grounding on a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Say {
    pub verdict: Verdict,
    /// The model that would be tried first without grounding.
    pub otherwise: Option<String>,
}

/// Timeout for the search.
const PATIENCE: Duration = Duration::from_secs(2);
/// Number of characters of a prompt used as the query.
const LONGEST: usize = 500;

/// Searches for passages. On failure the prompt is answered without them.
pub(super) async fn look(knowledge: &Knowledge, settings: &config::Grounding, prompt: &str) -> Option<Grounds> {
    let query: String = prompt.chars().take(LONGEST).collect();
    if !settings.enabled || query.trim().is_empty() {
        return None;
    }
    // While the database is unavailable, prompts do not wait for it.
    if knowledge.cannot_search() {
        tracing::debug!("a prompt was routed without asking the knowledge base, which is away");
        return None;
    }
    let question = Question {
        base: settings.knowledge_base.parse().ok()?,
        query: query.trim().to_owned(),
        top: settings.passages,
        least: settings.unanswered_below as f32,
        filter: None,
    };
    let passages = match timeout_at(Instant::now() + PATIENCE, knowledge.search(question)).await {
        Ok(Ok(passages)) => passages,
        Ok(Err(Error::Empty)) => Vec::new(),
        Ok(Err(error)) => {
            tracing::warn!(%error, "a prompt was routed without asking the knowledge base");
            return None;
        }
        Err(_) => {
            tracing::warn!("a prompt was routed without the knowledge base, which took too long");
            return None;
        }
    };
    let relevance = passages.first().map_or(0.0, |best| best.relevance);
    Some(Grounds { relevance, passages })
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Known => "answered",
            Verdict::Unsure => "unsure",
            Verdict::Unknown => "unanswered",
        }
    }

    pub fn of(relevance: f32, settings: &config::Grounding) -> Verdict {
        match f64::from(relevance) {
            high if high >= settings.answered_above => Verdict::Known,
            low if low < settings.unanswered_below => Verdict::Unknown,
            _ => Verdict::Unsure,
        }
    }
}

impl Grounds {
    /// The passages as a message for the model. `None` if there are none.
    pub(super) fn prompt(&self) -> Option<String> {
        let fence = Fence::new();
        (!self.passages.is_empty()).then(|| format!("{}\n\n{}", fence.hints(), fence.passages(&self.passages)))
    }
}
