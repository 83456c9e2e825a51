//! The parameters that some models refuse.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something a request may say and a model may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Parameter {
    Temperature,
    /// `top_p`, and `top_k` where there is one: the two have come and gone together.
    TopP,
    Stop,
    Seed,
    /// `max_tokens` under its old name: it wants `max_completion_tokens`.
    OldMaxTokens,
    /// `temperature` and `top_p` when it is told to think.
    SamplingWhileReasoning,
    /// `temperature` and `top_p` unless it is told not to think: it thinks unasked.
    SamplingUnlessReasoningOff,
    /// Any word about thinking.
    Reasoning,
    /// Not to think at all.
    ReasoningOff,
    /// To think as much as it finds right.
    ReasoningAdaptive,
    /// How hard to think, as a word.
    ReasoningEffort,
    /// How much to think, in tokens.
    ReasoningBudget,
    /// To think in a request that has tools.
    ReasoningWithTools,
    /// That it must ask for a tool.
    ForcedTool,
}
