//! Capability overrides of a model, and the parameters that a model can reject.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// A parameter, or use of a parameter, that some models reject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Parameter {
    /// Sampling temperature.
    Temperature,
    /// `top_p`, and `top_k` if the API has it.
    TopP,
    /// Stop sequences.
    Stop,
    /// Seed for reproducible sampling.
    Seed,
    /// `max_tokens`, the older name of the limit; `max_completion_tokens` is sent instead.
    MaxTokens,
    /// `temperature` and `top_p` in a request with reasoning.
    SamplingWhileReasoning,
    /// `temperature` and `top_p` in a request that does not disable reasoning: the model reasons by default.
    SamplingUnlessReasoningOff,
    /// All reasoning parameters.
    Reasoning,
    /// Disabling reasoning.
    ReasoningOff,
    /// Reasoning only between tool calls, the minimum of some Anthropic models.
    ReasoningBetweenTools,
    /// Adaptive reasoning: the model decides how much to reason.
    ReasoningAdaptive,
    /// Reasoning effort as a word.
    ReasoningEffort,
    /// The highest effort; the next lower one is sent instead.
    ReasoningMax,
    /// Reasoning budget in tokens.
    ReasoningBudget,
    /// Reasoning in a request with tools.
    ReasoningWithTools,
    /// A tool choice that requires a tool call.
    ForcedTool,
}
