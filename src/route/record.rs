//! Decision record: how one prompt was routed and what came of it.
//!
//! A record never contains the prompt or the response.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::decide::Why;
use crate::config::providers::Price;
use crate::providers::chat::Usage;

/// One prompt's way.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Record {
    /// Who asked; none on the command line. Not shown: it decides who may see the rest
    #[serde(skip)]
    pub caller: Option<Arc<str>>,
    /// Counts up with each prompt; where instances share a database, from another beginning in each of them
    pub id: u64,
    /// When it came, in milliseconds since 1970
    pub at_ms: u64,
    /// The model the caller named
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// What the classifier said; absent where it was not asked
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classified: Option<Classified>,
    /// Whether the category wants the model to reason; one that cannot is told nothing
    pub use_reasoning: bool,
    /// What chose the model: asked, documents, rule, category, fallback or default; cache where an answer was given again
    pub why: String,
    /// The routing rule that chose it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Who could be asked, as provider/model, in order
    pub candidates: Vec<String>,
    /// Models that were wanted and that nobody serves
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unserved: Vec<String>,
    /// Who was asked, and how that went
    pub attempts: Vec<Attempt>,
    /// Who answered
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// answered, failed or cancelled
    pub outcome: Outcome,
    /// A word for the failure, if it failed
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// From the prompt to the end of the answer
    pub latency_ms: f64,
    /// Of a stream that broke off, what came until then; estimated where the provider reported nothing
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Tokens>,
    /// In the currency of the configured prices; absent where none is configured
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// What the classifier said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Classified {
    /// The category that counted
    pub category: String,
    /// The number of the category the classifier named
    pub class: usize,
    pub confidence: f64,
    /// How undecided it was, in bits
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entropy: Option<f64>,
    /// What decided: rules, words, embedding, model or external
    pub method: String,
    /// It was not sure enough, and the fallback category counted
    pub fell_back: bool,
    pub took_ms: f64,
}

/// One provider asked for one model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Attempt {
    pub provider: String,
    pub model: String,
    /// Which of its keys, counted from 1
    pub key: usize,
    /// How many requests were sent
    pub requests: usize,
    pub took_ms: f64,
    /// `ok`, or a word for the failure
    pub result: String,
}

/// How it ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It has not ended yet, or its caller gave up.
    #[default]
    Cancelled,
    Answered,
    Failed,
}

/// Tokens read and written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tokens {
    pub prompt: u64,
    pub completion: u64,
    /// Of the prompt, what came from the provider's cache
    pub cached: u64,
    /// Of the completion, what was thinking
    pub reasoning: u64,
}

impl Record {
    /// The provider and the model that answered; empty if none has.
    pub fn answered_by(&self) -> (&str, &str) {
        (self.provider.as_deref().unwrap_or_default(), self.model.as_deref().unwrap_or_default())
    }

    pub(super) fn chosen_by(&mut self, why: &Why) {
        why.as_str().clone_into(&mut self.why);
        self.rule = match why {
            Why::Rule(rule) => Some(rule.clone()),
            _ => None,
        };
    }
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Tokens {
        let Usage { prompt, completion, cached, reasoning } = usage;
        Tokens { prompt, completion, cached, reasoning }
    }
}

/// Cost of a response.
pub fn cost(usage: Usage, price: Price) -> f64 {
    let cached = usage.cached.min(usage.prompt);
    let million = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
    let cost = million(usage.prompt - cached, price.input)
        + million(cached, price.cached.unwrap_or(price.input))
        + million(usage.completion, price.output);
    // Rounds off floating-point noise.
    (cost * 1e12).round() / 1e12
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_costs_what_its_tokens_cost() {
        let usage = Usage { prompt: 1_000_000, completion: 500_000, cached: 400_000, reasoning: 100_000 };
        let price = Price { input: 2.0, output: 10.0, cached: Some(0.5) };
        assert!((cost(usage, price) - (1.2 + 0.2 + 5.0)).abs() < 1e-9);
        assert!((cost(usage, Price { cached: None, ..price }) - 7.0).abs() < 1e-9);
    }
}
