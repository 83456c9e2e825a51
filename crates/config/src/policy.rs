//! `router.policies`: named variants of the routing settings.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::effort::Effort;
use super::system_prompt::SystemPrompt;

/// Overrides for requests with the model `auto:NAME`. Unset fields are inherited from `auto`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoutingPolicy {
    /// Classify prompts. If disabled, the default model is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Default model.
    #[schemars(length(min = 1, max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
    /// Models by category name. Other categories keep their models, and so do those in `router.restricted_categories`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, String>,
    /// Fallback models by category name. Other categories keep their fallbacks, and so do those in
    /// `router.restricted_categories`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fallbacks: BTreeMap<String, Vec<String>>,
    /// Use of the category's system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<SystemPrompt>,
    /// Reasoning effort for categories that request reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<Effort>,
    /// Fail over to another provider or model when a provider fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failover: Option<bool>,
}
