//! Decision record: how a prompt was routed, and the result.
//!
//! A record never contains the prompt or the response.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::decide::ChoiceReason;
use corbie_config::providers::Price;
use corbie_llm::chat::Usage;

/// Decision record of one prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct DecisionRecord {
    /// Caller of the request; none on the command line. Not returned: it determines who may see the record
    #[serde(skip)]
    pub caller: Option<Arc<str>>,
    /// Sequence number of the prompt; with a shared database, each instance counts from a different start
    pub id: u64,
    /// Time of arrival in milliseconds since 1970
    pub at_ms: u64,
    /// Model that the caller requested
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_model: Option<String>,
    /// Category of the prompt; absent if it was not determined
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classified: Option<ClassificationRecord>,
    /// Whether the category requests reasoning; models without reasoning ignore it
    pub use_reasoning: bool,
    /// Reason for the model: requested, documents, rule, category, fallback or default; cache for a cached response
    pub reason: String,
    /// Name of the routing rule that selected the model
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Available candidates as provider/model, in order
    pub candidates: Vec<String>,
    /// Requested models that no provider offers
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unavailable_models: Vec<String>,
    /// Attempts with their results
    pub attempts: Vec<Attempt>,
    /// Provider that answered
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// answered, failed or cancelled
    pub outcome: DecisionOutcome,
    /// Error code of a failure
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Time from the prompt to the end of the answer
    pub latency_ms: f64,
    /// Usage, up to the abort of a cancelled stream; estimated if the provider reported none
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// Cost in the currency of the configured prices; absent without prices
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// Category of a prompt, and how it was determined.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ClassificationRecord {
    /// Category that was applied
    pub category: String,
    /// Index of the predicted category
    pub class: usize,
    pub confidence: f64,
    /// Entropy of the probabilities in bits
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entropy: Option<f64>,
    /// Deciding method: rules, lexical, embedding, model or external
    pub method: String,
    /// Whether the confidence was too low, so that the fallback category was applied
    pub used_fallback: bool,
    pub duration_ms: f64,
}

/// One request to a provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Attempt {
    pub provider: String,
    pub model: String,
    /// Index of the API key, starting at 1
    pub key: usize,
    /// Number of requests, including retries
    pub requests: usize,
    pub duration_ms: f64,
    /// `ok`, or an error code
    pub result: String,
}

/// Result of a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecisionOutcome {
    /// Cancelled by the caller, or still running.
    #[default]
    Cancelled,
    Answered,
    Failed,
}

/// Number of input and output tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TokenUsage {
    pub prompt: u64,
    pub completion: u64,
    /// Input tokens from the provider's cache, included in the prompt
    pub cached: u64,
    /// Reasoning tokens, included in the completion
    pub reasoning: u64,
}

impl DecisionRecord {
    /// The provider and the model that answered; empty if none has.
    pub fn answered_by(&self) -> (&str, &str) {
        (self.provider.as_deref().unwrap_or_default(), self.model.as_deref().unwrap_or_default())
    }

    pub(super) fn set_reason(&mut self, why: &ChoiceReason) {
        why.as_str().clone_into(&mut self.reason);
        self.rule = match why {
            ChoiceReason::Rule(rule) => Some(rule.clone()),
            _ => None,
        };
    }
}

impl From<Usage> for TokenUsage {
    fn from(usage: Usage) -> TokenUsage {
        let Usage { prompt, completion, cached, reasoning } = usage;
        TokenUsage { prompt, completion, cached, reasoning }
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
