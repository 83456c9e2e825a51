//! `router.grounding`: knowledge base passages for prompts, and their effect on routing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::knowledge::DEFAULT_BASE;

/// Uses the knowledge base to route prompts that name no model. Prompts that the documents answer go to a smaller
/// model, together with matching passages; prompts that the documents do not cover go to a stronger model. Disabled by
/// default, because passages are sent to the provider of the selected model.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Grounding {
    /// Search the knowledge base for each prompt.
    pub enabled: bool,
    /// Name of the knowledge base to search.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9._-]+$"))]
    pub knowledge_base: String,
    /// Minimum relevance of a passage that answers the prompt.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub answered_above: f64,
    /// If no passage reaches this relevance, the documents do not cover the prompt.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub unanswered_below: f64,
    /// Model for prompts that the documents answer. Defaults to the model of the prompt's category.
    #[schemars(length(min = 1, max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_model: Option<String>,
    /// Model for prompts that the documents do not cover. Defaults to the model of the prompt's category.
    #[schemars(length(min = 1, max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unanswered_model: Option<String>,
    /// Maximum number of passages passed to the model.
    #[schemars(range(min = 1, max = 20))]
    pub passages: usize,
}

impl Default for Grounding {
    fn default() -> Self {
        Self {
            enabled: false,
            knowledge_base: DEFAULT_BASE.into(),
            answered_above: 0.6,
            unanswered_below: 0.2,
            answered_model: None,
            unanswered_model: None,
            passages: 4,
        }
    }
}

impl Grounding {
    pub(super) fn is_absent(&self) -> bool {
        *self == Self::default()
    }
}
