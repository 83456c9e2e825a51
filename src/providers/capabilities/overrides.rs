//! Operator overrides for model capabilities.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Parameter;

/// Overrides of the capabilities known to corbie or reported by the provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Overrides {
    /// Parameters that the model rejects; they are omitted from requests. The list replaces the known one; an empty
    /// list sends all parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsupported_parameters: Option<Vec<Parameter>>,
    /// Maximum number of input tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub context: Option<u64>,
    /// Maximum number of output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub output: Option<u64>,
    /// Supports images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// Supports tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// Supports reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
    /// Supports structured output with a JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<bool>,
}
