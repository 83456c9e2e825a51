//! Request parameters that some models do not support.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that some models refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Parameter {
    /// How much chance there is in the answer.
    Temperature,
    /// `top_p`, and `top_k` where there is one.
    TopP,
    /// Words to stop at.
    Stop,
    /// The same answer again.
    Seed,
    /// `max_tokens` under its old name: `max_completion_tokens` is sent instead.
    OldMaxTokens,
    /// `temperature` and `top_p` in a request that asks for thinking.
    SamplingWhileReasoning,
    /// `temperature` and `top_p` in a request that does not turn thinking off: the model thinks unasked.
    SamplingUnlessReasoningOff,
    /// Any word about thinking.
    Reasoning,
    /// Not to think.
    ReasoningOff,
    /// To think between tools only, which is the least that some of Anthropic's models do.
    ReasoningBetweenTools,
    /// To think as much as the model finds right.
    ReasoningAdaptive,
    /// How hard to think, as a word.
    ReasoningEffort,
    /// The highest effort: the next one is sent instead.
    ReasoningMax,
    /// How much to think, in tokens.
    ReasoningBudget,
    /// To think in a request with tools.
    ReasoningWithTools,
    /// That a tool must be called.
    ForcedTool,
}

/// Parameters that a model does not support. The adapter drops them or substitutes the closest supported form, so that
/// the provider does not reject the request. The fields are the [`Parameter`]s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refuses {
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

impl FromIterator<Parameter> for Refuses {
    fn from_iter<T: IntoIterator<Item = Parameter>>(parameters: T) -> Refuses {
        let mut refuses = Refuses::default();
        for parameter in parameters {
            *refuses.field(parameter) = true;
        }
        refuses
    }
}

impl Refuses {
    fn field(&mut self, parameter: Parameter) -> &mut bool {
        match parameter {
            Parameter::Temperature => &mut self.temperature,
            Parameter::TopP => &mut self.top_p,
            Parameter::Stop => &mut self.stop,
            Parameter::Seed => &mut self.seed,
            Parameter::OldMaxTokens => &mut self.old_max_tokens,
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
