//! Request parameters that some models do not support.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// Parameters that a model does not support. The adapter drops them or substitutes the closest supported form, so that
/// the provider does not reject the request. The fields are the [`Parameter`]s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnsupportedParameters {
    pub temperature: bool,
    pub top_p: bool,
    pub stop: bool,
    pub seed: bool,
    pub old_max_tokens: bool,
    pub sampling_while_reasoning: bool,
    pub sampling_unless_reasoning_off: bool,
    pub reasoning: bool,
    pub reasoning_off: bool,
    pub reasoning_between_tools: bool,
    pub reasoning_adaptive: bool,
    pub reasoning_effort: bool,
    pub reasoning_max: bool,
    pub reasoning_budget: bool,
    pub reasoning_with_tools: bool,
    pub forced_tool: bool,
}

impl FromIterator<Parameter> for UnsupportedParameters {
    fn from_iter<T: IntoIterator<Item = Parameter>>(parameters: T) -> UnsupportedParameters {
        let mut refuses = UnsupportedParameters::default();
        for parameter in parameters {
            *refuses.field(parameter) = true;
        }
        refuses
    }
}

impl UnsupportedParameters {
    fn field(&mut self, parameter: Parameter) -> &mut bool {
        match parameter {
            Parameter::Temperature => &mut self.temperature,
            Parameter::TopP => &mut self.top_p,
            Parameter::Stop => &mut self.stop,
            Parameter::Seed => &mut self.seed,
            Parameter::MaxTokens => &mut self.old_max_tokens,
            Parameter::SamplingWhileReasoning => &mut self.sampling_while_reasoning,
            Parameter::SamplingUnlessReasoningOff => &mut self.sampling_unless_reasoning_off,
            Parameter::Reasoning => &mut self.reasoning,
            Parameter::ReasoningOff => &mut self.reasoning_off,
            Parameter::ReasoningBetweenTools => &mut self.reasoning_between_tools,
            Parameter::ReasoningAdaptive => &mut self.reasoning_adaptive,
            Parameter::ReasoningEffort => &mut self.reasoning_effort,
            Parameter::ReasoningMax => &mut self.reasoning_max,
            Parameter::ReasoningBudget => &mut self.reasoning_budget,
            Parameter::ReasoningWithTools => &mut self.reasoning_with_tools,
            Parameter::ForcedTool => &mut self.forced_tool,
        }
    }
}
