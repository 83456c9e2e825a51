//! `router`: routing of prompts to models.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cache::Cache;
use super::duration::Timeout;
use super::grounding::Grounding;
use super::policy::Policy;
use crate::providers::chat::Effort;

/// How a prompt finds its model.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Router {
    /// Classify prompts that come without a model, and ask the model of their category. Switched off, it is always the
    /// default model.
    pub enabled: bool,
    /// What becomes of the category's system prompt.
    pub system_prompt: SystemPrompt,
    /// How much a model thinks where its category wants it to reason: `minimal`, `low`,
    /// `medium`, `high` or `max`.
    pub reasoning_effort: Effort,
    /// Ask somebody else when a provider fails: with another key, the same model elsewhere, the models in `fallbacks`,
    /// the default model.
    pub failover: bool,
    /// The default model may stand in for one that the caller named, when that fails.
    pub replace_pinned: bool,
    /// Models of categories, by the category's name, instead of those that the taxonomy or a classification server
    /// recommends.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, String>,
    /// Categories whose prompts never go to the default model, for what must not leave a machine. Write the provider
    /// before the model, and no other is asked for it.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub stay: BTreeSet<String>,
    /// Models to ask next when that of a category fails, by the category's name, in order.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fallbacks: BTreeMap<String, Vec<String>>,
    /// How long a prompt may take until its answer is complete or, if it is streamed, until its first content: every
    /// attempt with every provider.
    pub timeout: Timeout,
    /// How long a stream may take from its first content to its end. One that takes longer ends with an error, even if
    /// the provider keeps sending.
    pub stream_timeout: Timeout,
    /// How much each caller may spend in a day.
    #[serde(skip_serializing_if = "Budget::is_absent")]
    pub budget: Budget,
    /// Other ways to route, by name: a caller asks for one with the model `auto:NAME`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub policies: BTreeMap<String, Policy>,
    /// Answers that are given again.
    #[serde(skip_serializing_if = "Cache::is_absent")]
    pub cache: Cache,
    /// What the knowledge base has to say about where a prompt goes.
    #[serde(skip_serializing_if = "Grounding::is_absent")]
    pub grounding: Grounding,
    /// How many decisions are kept to be looked at; where instances share a database, by all of them together.
    #[schemars(range(min = 0, max = 100_000))]
    pub decisions: usize,
}

/// How much each caller may spend in a day (UTC), counted since the program started. Left out, there is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Tokens, read and written.
    #[schemars(range(min = 0, max = 1_000_000_000_000_000_u64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    /// Cost, by the prices of the models.
    #[schemars(range(min = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_day: Option<f64>,
}

/// What becomes of the category's system prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SystemPrompt {
    /// It goes before the caller's own.
    #[default]
    Before,
    /// It is used where the caller has none.
    IfNone,
    /// It is not used.
    Off,
}

impl Default for Router {
    fn default() -> Self {
        Self {
            enabled: true,
            system_prompt: SystemPrompt::default(),
            reasoning_effort: Effort::Medium,
            failover: true,
            replace_pinned: false,
            models: BTreeMap::new(),
            stay: BTreeSet::new(),
            fallbacks: BTreeMap::new(),
            timeout: Timeout::seconds(300),
            // The longest responses, 128,000 tokens at 100 per second, take 21 minutes.
            stream_timeout: Timeout::seconds(30 * 60),
            budget: Budget::default(),
            policies: BTreeMap::new(),
            cache: Cache::default(),
            grounding: Grounding::default(),
            decisions: 1000,
        }
    }
}

impl Budget {
    fn is_absent(&self) -> bool {
        *self == Self::default()
    }
}
