//! `router`: routing of prompts to models.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cache::Cache;
use super::duration::Timeout;
use super::effort::Effort;
use super::grounding::Grounding;
use super::policy::RoutingPolicy;
pub use super::system_prompt::SystemPrompt;

/// Routing of prompts to models.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Router {
    /// Classify prompts that name no model and route them to the model of their category. If disabled, the default
    /// model is used.
    pub enabled: bool,
    /// Use of the category's system prompt.
    pub system_prompt: SystemPrompt,
    /// Reasoning effort for categories that request reasoning: `minimal`, `low`, `medium`, `high` or `max`.
    pub reasoning_effort: Effort,
    /// Fail over when a provider fails: to another key, the same model at another provider, the models in `fallbacks`,
    /// and the default model.
    pub failover: bool,
    /// Fail over to the default model even if the caller named a model.
    pub replace_pinned: bool,
    /// Models by category name, instead of the models that the taxonomy or a classification server recommends.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, String>,
    /// Categories whose prompts never go to the default model, for data that must stay on this machine. Write their
    /// models as `provider/model`, so that no other provider is used.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub restricted_categories: BTreeSet<String>,
    /// Fallback models by category name, in order.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fallbacks: BTreeMap<String, Vec<String>>,
    /// Timeout of a prompt over all attempts and providers: until the response is complete or, if it is streamed, until
    /// its first content.
    pub timeout: Timeout,
    /// Maximum duration of a stream after its first content. A longer stream ends with an error, even if the provider
    /// keeps sending.
    pub stream_timeout: Timeout,
    /// Daily budget per caller.
    #[serde(skip_serializing_if = "Budget::is_absent")]
    pub budget: Budget,
    /// Policies by name: overrides for requests with the model `auto:NAME`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub policies: BTreeMap<String, RoutingPolicy>,
    /// Response cache.
    #[serde(skip_serializing_if = "Cache::is_absent")]
    pub cache: Cache,
    /// Routing by content of the knowledge base.
    #[serde(skip_serializing_if = "Grounding::is_absent")]
    pub grounding: Grounding,
    /// Number of routing decisions that are kept; instances that share a database share this limit.
    #[schemars(range(min = 0, max = 100_000))]
    pub max_decisions: usize,
}

/// Daily budget per caller (UTC days), counted since startup. Unlimited if unset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Maximum number of tokens, input and output.
    #[schemars(range(min = 0, max = 1_000_000_000_000_000_u64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    /// Maximum cost, calculated from the prices of the models.
    #[schemars(range(min = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_day: Option<f64>,
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
            restricted_categories: BTreeSet::new(),
            fallbacks: BTreeMap::new(),
            timeout: Timeout::seconds(300),
            // The longest responses, 128,000 tokens at 100 per second, take 21 minutes.
            stream_timeout: Timeout::seconds(30 * 60),
            budget: Budget::default(),
            policies: BTreeMap::new(),
            cache: Cache::default(),
            grounding: Grounding::default(),
            max_decisions: 1000,
        }
    }
}

impl Router {
    /// The settings with the overrides of a policy. `restricted_categories` applies under every policy.
    pub fn with_policy(&self, policy: &RoutingPolicy) -> Router {
        let mut settings = self.clone();
        settings.enabled = policy.enabled.unwrap_or(settings.enabled);
        settings.system_prompt = policy.system_prompt.unwrap_or(settings.system_prompt);
        settings.reasoning_effort = policy.reasoning_effort.unwrap_or(settings.reasoning_effort);
        settings.failover = policy.failover.unwrap_or(settings.failover);
        let is_open = |category: &str| !self.restricted_categories.contains(category);
        settings.models.extend(policy.models.clone().into_iter().filter(|(category, _)| is_open(category)));
        settings.fallbacks.extend(policy.fallbacks.clone().into_iter().filter(|(category, _)| is_open(category)));
        settings
    }
}

impl Budget {
    fn is_absent(&self) -> bool {
        *self == Self::default()
    }
}
