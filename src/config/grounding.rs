//! `router.grounding`: knowledge base passages for prompts, and their effect on routing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::knowledge::DEFAULT_BASE;

/// Lets the knowledge base have a say in where a prompt without a model goes. What the documents answer goes to a smaller
/// model, with passages of them; what they say nothing about goes to a stronger one. Passages are sent to the provider of
/// the model that answers, so nothing of this happens unless it is switched on.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Grounding {
    /// Whether the knowledge base is asked about prompts.
    pub enabled: bool,
    /// The knowledge base that is looked into.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9._-]+$"))]
    pub knowledge_base: String,
    /// A passage at least this relevant answers the prompt.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub known_above: f64,
    /// Where no passage is this relevant, the documents know nothing.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub unknown_below: f64,
    /// The model for prompts that the documents answer. That of their category, if left out.
    #[schemars(length(min = 1, max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_model: Option<String>,
    /// The model for prompts that the documents know nothing about. That of their category, if left out.
    #[schemars(length(min = 1, max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_model: Option<String>,
    /// How many passages the model is given.
    #[schemars(range(min = 1, max = 20))]
    pub passages: usize,
}

impl Default for Grounding {
    fn default() -> Self {
        Self {
            enabled: false,
            knowledge_base: DEFAULT_BASE.into(),
            known_above: 0.6,
            unknown_below: 0.2,
            known_model: None,
            unknown_model: None,
            passages: 4,
        }
    }
}

impl Grounding {
    pub(super) fn is_absent(&self) -> bool {
        *self == Self::default()
    }
}
