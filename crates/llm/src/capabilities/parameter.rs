//! Request parameters that some models do not support.

use corbie_config::model_capabilities::Parameter;
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
