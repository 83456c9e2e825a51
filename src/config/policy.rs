//! `router.policies`: named variants of the routing settings.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::router::{Router, SystemPrompt};
use crate::providers::chat::Effort;

/// What is different for callers who ask for the model `auto:NAME`. Everything else is as for `auto`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Classify prompts. Switched off, it is always the default model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The model where nothing else names one.
    #[schemars(length(min = 1, max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
    /// Models of categories, by the category's name; other categories keep theirs, and so do those in `router.stay`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, String>,
    /// Models to ask next, by the category's name; other categories keep theirs, and so do those in `router.stay`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fallbacks: BTreeMap<String, Vec<String>>,
    /// What becomes of the category's system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<SystemPrompt>,
    /// How much a model thinks where its category wants it to reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<Effort>,
    /// Ask somebody else when a provider fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failover: Option<bool>,
}

impl Policy {
    /// The settings with the overrides of this policy. `stay` applies under every policy.
    pub fn over(&self, router: &Router) -> Router {
        let mut settings = router.clone();
        settings.enabled = self.enabled.unwrap_or(settings.enabled);
        settings.system_prompt = self.system_prompt.unwrap_or(settings.system_prompt);
        settings.reasoning_effort = self.reasoning_effort.unwrap_or(settings.reasoning_effort);
        settings.failover = self.failover.unwrap_or(settings.failover);
        let moves = |category: &str| !router.stay.contains(category);
        settings.models.extend(self.models.clone().into_iter().filter(|(category, _)| moves(category)));
        settings.fallbacks.extend(self.fallbacks.clone().into_iter().filter(|(category, _)| moves(category)));
        settings
    }
}
