//! Model capabilities and unsupported parameters.
//!
//! Three sources are merged: the built-in file, the provider's model list, and the operator's settings; later sources
//! win. An unknown model is sent every parameter. Pure: callers pass the model list in.

mod builtin_models;
mod parameter;

use std::collections::BTreeMap;

use serde::Serialize;

pub use parameter::UnsupportedParameters;

use super::ModelInfo;
use super::chat::Protocol;
pub use corbie_config::model_capabilities::{Overrides, Parameter};

/// Capabilities of a model, as far as known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Accepts image input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// Supports tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// Supports reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
    /// Supports structured output (JSON Schema).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<bool>,
    /// Whether the model rejects a parameter. Parameters not listed here are unknown and are sent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unsupported_parameters: BTreeMap<Parameter, bool>,
}

/// All known properties of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelProperties {
    /// Context window in tokens.
    pub context: Option<u64>,
    /// Maximum output tokens.
    pub output: Option<u64>,
    pub capabilities: Capabilities,
}

/// The built-in data for a model: by its exact name, or by its name without a snapshot date.
pub fn builtin_properties(protocol: Protocol, model: &str) -> ModelProperties {
    builtin_models::find(protocol, model).cloned().unwrap_or_default()
}

/// The model name without a snapshot date or `latest`, if it has one.
pub(super) fn without_snapshot(model: &str) -> Option<&str> {
    builtin_models::without_snapshot(model)
}

/// The vendor's default model when the request names none: a small one.
pub(super) fn default_of(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::OpenAi => "gpt-5.4-mini",
        Protocol::Anthropic => "claude-haiku-4-5",
        Protocol::Google => "gemini-2.5-flash",
    }
}

/// Merges the provider's list and the operator's overrides into the built-in data.
pub fn merge(file: ModelProperties, live: Option<&ModelInfo>, operator: Option<&Overrides>) -> ModelProperties {
    let told = live.map(|model| ModelProperties {
        context: model.context,
        output: model.output,
        capabilities: model.capabilities.clone(),
    });
    let ModelProperties { context, output, capabilities } = match told {
        Some(told) => told.or(file),
        None => file,
    };
    let Some(operator) = operator else { return ModelProperties { context, output, capabilities } };
    ModelProperties {
        context: operator.context.or(context),
        output: operator.output.or(output),
        capabilities: Capabilities {
            images: operator.images.or(capabilities.images),
            tools: operator.tools.or(capabilities.tools),
            reasoning: operator.reasoning.or(capabilities.reasoning),
            structured_output: operator.structured_output.or(capabilities.structured_output),
            // The operator's list is exhaustive: an empty list means that no parameter is refused.
            unsupported_parameters: match &operator.unsupported_parameters {
                Some(refused) => refused.iter().map(|parameter| (*parameter, true)).collect(),
                None => capabilities.unsupported_parameters,
            },
        },
    }
}

impl ModelProperties {
    /// The parameters to leave out of a request.
    pub fn unsupported_parameters(&self) -> UnsupportedParameters {
        let refused = self.capabilities.unsupported_parameters.iter().filter(|(_, refused)| **refused);
        refused.map(|(parameter, _)| *parameter).collect()
    }

    /// Fills unset fields from `other`.
    fn or(self, other: ModelProperties) -> ModelProperties {
        let (ours, theirs) = (self.capabilities, other.capabilities);
        ModelProperties {
            context: self.context.or(other.context),
            output: self.output.or(other.output),
            capabilities: Capabilities {
                images: ours.images.or(theirs.images),
                tools: ours.tools.or(theirs.tools),
                reasoning: ours.reasoning.or(theirs.reasoning),
                structured_output: ours.structured_output.or(theirs.structured_output),
                unsupported_parameters: theirs
                    .unsupported_parameters
                    .into_iter()
                    .chain(ours.unsupported_parameters)
                    .collect(),
            },
        }
    }
}

impl Capabilities {
    /// Whether all capabilities are unknown.
    pub fn is_empty(&self) -> bool {
        *self == Capabilities::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(known: &ModelProperties) -> Vec<Parameter> {
        known
            .capabilities
            .unsupported_parameters
            .iter()
            .filter(|(_, refused)| **refused)
            .map(|(parameter, _)| *parameter)
            .collect()
    }

    fn live() -> ModelInfo {
        ModelInfo {
            id: "claude-opus-5-5".into(),
            context: Some(2_000_000),
            capabilities: Capabilities {
                images: Some(false),
                unsupported_parameters: [(Parameter::ForcedTool, false), (Parameter::Stop, true)].into(),
                ..Capabilities::default()
            },
            ..ModelInfo::default()
        }
    }

    #[test]
    fn p11_the_defaults_of_companies_are_models_that_are_known() {
        for protocol in [Protocol::OpenAi, Protocol::Anthropic, Protocol::Google] {
            assert_ne!(builtin_properties(protocol, default_of(protocol)), ModelProperties::default(), "{protocol:?}");
        }
    }

    #[test]
    fn a_model_that_nobody_knows_is_sent_everything() {
        let known = merge(builtin_properties(Protocol::OpenAi, "mystery"), None, None);
        assert_eq!(
            (known.unsupported_parameters(), &known),
            (UnsupportedParameters::default(), &ModelProperties::default())
        );
    }

    #[test]
    fn the_providers_list_goes_before_the_file() {
        let known = merge(builtin_properties(Protocol::Anthropic, "claude-opus-5-5"), Some(&live()), None);
        assert_eq!((known.context, known.output), (Some(2_000_000), Some(128_000)));
        assert_eq!((known.capabilities.images, known.capabilities.tools), (Some(false), Some(true)));
        let refuses = known.unsupported_parameters();
        assert!(refuses.stop && refuses.temperature && !refuses.forced_tool);
    }

    #[test]
    fn the_operator_goes_before_both() {
        let operator: Overrides =
            serde_json::from_str(r#"{"unsupported_parameters": ["seed"], "context": 1000, "images": true}"#).unwrap();
        let known = merge(builtin_properties(Protocol::Anthropic, "claude-opus-5-5"), Some(&live()), Some(&operator));
        assert_eq!(refused(&known), [Parameter::Seed]);
        assert_eq!((known.context, known.output), (Some(1000), Some(128_000)));
        assert_eq!((known.capabilities.images, known.capabilities.tools), (Some(true), Some(true)));
    }

    #[test]
    fn an_empty_list_of_the_operators_says_that_nothing_is_refused() {
        let of_file = || builtin_properties(Protocol::OpenAi, "gpt-5");
        let check = |operator: &str, expected: bool| {
            let operator: Overrides = serde_json::from_str(operator).unwrap();
            assert_eq!(merge(of_file(), None, Some(&operator)).unsupported_parameters().temperature, expected);
        };
        check("{}", true);
        check(r#"{"unsupported_parameters": []}"#, false);
    }
}
