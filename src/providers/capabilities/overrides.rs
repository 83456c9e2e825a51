//! Operator overrides for model capabilities.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Parameter;

/// What is known of a model better than corbie or its provider's list knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Overrides {
    /// What the model refuses: such parameters are left out of requests. The list replaces what is known otherwise;
    /// an empty one sends everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuses: Option<Vec<Parameter>>,
    /// How many tokens it reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub context: Option<u64>,
    /// How many tokens it writes at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub output: Option<u64>,
    /// Whether it sees pictures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// Whether it asks for tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// Whether it can think before it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
    /// Whether it can be held to a JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<bool>,
}
