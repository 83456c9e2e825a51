//! What the documents know of a prompt, where the operator wants them to be asked (`router.grounding`).

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::config::grounding as config;
use crate::knowledge::grounding::Fence;
use crate::knowledge::search::{Passage, Question};
use crate::knowledge::{Error, Knowledge};

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Grounds {
    /// Of the best passage; 0 where there is none.
    pub relevance: f32,
    pub passages: Vec<Passage>,
}

/// What that means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The documents answer the prompt.
    Known,
    /// They may.
    Unsure,
    /// They say nothing about it.
    Unknown,
}

/// What the documents of the knowledge base may say about a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Documents {
    #[default]
    Asked,
    /// It already comes with passages, and so relevant are they.
    Brought(f32),
    /// Whoever asks may not see them.
    Hidden,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Say {
    pub verdict: Verdict,
    /// The model that would be asked first if there were no documents.
    pub otherwise: Option<String>,
}

/// Nobody waits longer for documents before a model is asked.
const PATIENCE: Duration = Duration::from_secs(2);
/// As much of a prompt is looked for.
const LONGEST: usize = 500;

/// Looks for passages. What goes wrong costs the passages and not the answer.
pub(super) async fn look(knowledge: &Knowledge, settings: &config::Grounding, prompt: &str) -> Option<Grounds> {
    let query: String = prompt.chars().take(LONGEST).collect();
    if !settings.enabled || query.trim().is_empty() {
        return None;
    }
    // A database that is known to be away is not waited for with every prompt.
    if knowledge.cannot_search() {
        tracing::debug!("a prompt was routed without asking the knowledge base, which is away");
        return None;
    }
    let question = Question {
        base: settings.knowledge_base.parse().ok()?,
        query: query.trim().to_owned(),
        top: settings.passages,
        least: settings.unknown_below as f32,
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
            Verdict::Known => "known",
            Verdict::Unsure => "unsure",
            Verdict::Unknown => "unknown",
        }
    }

    pub fn of(relevance: f32, settings: &config::Grounding) -> Verdict {
        match f64::from(relevance) {
            high if high >= settings.known_above => Verdict::Known,
            low if low < settings.unknown_below => Verdict::Unknown,
            _ => Verdict::Unsure,
        }
    }
}

impl Grounds {
    /// What a model is told of them; nothing where there are none.
    pub(super) fn prompt(&self) -> Option<String> {
        let fence = Fence::new();
        (!self.passages.is_empty()).then(|| format!("{}\n\n{}", fence.hints(), fence.passages(&self.passages)))
    }
}
