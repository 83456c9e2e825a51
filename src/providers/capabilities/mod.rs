//! What a model can do, and which parameters it refuses.
//!
//! Three sources tell: the file inside corbie, the provider's own list of models, and the operator; the later one wins.
//! A model that none of them knows is sent everything. Pure: the list is brought here.

mod file;
mod overrides;
mod parameter;

use std::collections::BTreeMap;

use serde::Serialize;

pub use overrides::Overrides;
pub use parameter::{Parameter, Refuses};

use super::ModelInfo;
use super::chat::Protocol;

/// What a model can do, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// It sees pictures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// It asks for tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// It can think before it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
    /// It can be held to a JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<bool>,
    /// Whether each parameter is refused. One that is not here is not known, and is sent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refuses: BTreeMap<Parameter, bool>,
}

/// Everything that is known of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// How many tokens it reads.
    pub context: Option<u64>,
    /// How many tokens it writes at most.
    pub output: Option<u64>,
    pub capabilities: Capabilities,
}

/// What the file inside corbie says of a model: of its exact name, or of its name without the date of a snapshot.
pub fn of(protocol: Protocol, model: &str) -> Known {
    file::find(protocol, model).cloned().unwrap_or_default()
}

/// A model's name without the date of a snapshot or `latest`, if it has one.
pub(super) fn without_snapshot(model: &str) -> Option<&str> {
    file::without_snapshot(model)
}

/// The model of a company that is asked where nobody names one: a small one.
pub(super) fn default_of(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::OpenAi => "gpt-5.4-mini",
        Protocol::Anthropic => "claude-haiku-4-5",
        Protocol::Google => "gemini-2.5-flash",
    }
}

/// What is known after the provider's list and the operator have had their say.
pub fn merge(file: Known, live: Option<&ModelInfo>, operator: Option<&Overrides>) -> Known {
    let told = live.map(|model| Known {
        context: model.context,
        output: model.output,
        capabilities: model.capabilities.clone(),
    });
    let Known { context, output, capabilities } = match told {
        Some(told) => told.or(file),
        None => file,
    };
    let Some(operator) = operator else { return Known { context, output, capabilities } };
    Known {
        context: operator.context.or(context),
        output: operator.output.or(output),
        capabilities: Capabilities {
            images: operator.images.or(capabilities.images),
            tools: operator.tools.or(capabilities.tools),
            reasoning: operator.reasoning.or(capabilities.reasoning),
            structured_output: operator.structured_output.or(capabilities.structured_output),
            // A list of the operator's is complete: an empty one says that nothing is refused.
            refuses: match &operator.refuses {
                Some(refused) => refused.iter().map(|parameter| (*parameter, true)).collect(),
                None => capabilities.refuses,
            },
        },
    }
}

impl Known {
    /// What to leave out of a request.
    pub fn refuses(&self) -> Refuses {
        let refused = self.capabilities.refuses.iter().filter(|(_, refused)| **refused);
        refused.map(|(parameter, _)| *parameter).collect()
    }

    /// What is known here, and for the rest what is known there.
    fn or(self, other: Known) -> Known {
        let (ours, theirs) = (self.capabilities, other.capabilities);
        Known {
            context: self.context.or(other.context),
            output: self.output.or(other.output),
            capabilities: Capabilities {
                images: ours.images.or(theirs.images),
                tools: ours.tools.or(theirs.tools),
                reasoning: ours.reasoning.or(theirs.reasoning),
                structured_output: ours.structured_output.or(theirs.structured_output),
                refuses: theirs.refuses.into_iter().chain(ours.refuses).collect(),
            },
        }
    }
}

impl Capabilities {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Capabilities::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(known: &Known) -> Vec<Parameter> {
        known.capabilities.refuses.iter().filter(|(_, refused)| **refused).map(|(parameter, _)| *parameter).collect()
    }

    fn live() -> ModelInfo {
        ModelInfo {
            id: "claude-opus-5-5".into(),
            context: Some(2_000_000),
            capabilities: Capabilities {
                images: Some(false),
                refuses: [(Parameter::ForcedTool, false), (Parameter::Stop, true)].into(),
                ..Capabilities::default()
            },
            ..ModelInfo::default()
        }
    }

    #[test]
    fn p11_the_defaults_of_companies_are_models_that_are_known() {
        for protocol in [Protocol::OpenAi, Protocol::Anthropic, Protocol::Google] {
            assert_ne!(of(protocol, default_of(protocol)), Known::default(), "{protocol:?}");
        }
    }

    #[test]
    fn a_model_that_nobody_knows_is_sent_everything() {
        let known = merge(of(Protocol::OpenAi, "mystery"), None, None);
        assert_eq!((known.refuses(), &known), (Refuses::default(), &Known::default()));
    }

    #[test]
    fn the_providers_list_goes_before_the_file() {
        let known = merge(of(Protocol::Anthropic, "claude-opus-5-5"), Some(&live()), None);
        assert_eq!((known.context, known.output), (Some(2_000_000), Some(128_000)));
        assert_eq!((known.capabilities.images, known.capabilities.tools), (Some(false), Some(true)));
        let refuses = known.refuses();
        assert!(refuses.stop && refuses.temperature && !refuses.forced_tool);
    }

    #[test]
    fn the_operator_goes_before_both() {
        let operator: Overrides =
            serde_json::from_str(r#"{"refuses": ["seed"], "context": 1000, "images": true}"#).unwrap();
        let known = merge(of(Protocol::Anthropic, "claude-opus-5-5"), Some(&live()), Some(&operator));
        assert_eq!(refused(&known), [Parameter::Seed]);
        assert_eq!((known.context, known.output), (Some(1000), Some(128_000)));
        assert_eq!((known.capabilities.images, known.capabilities.tools), (Some(true), Some(true)));
    }

    #[test]
    fn an_empty_list_of_the_operators_says_that_nothing_is_refused() {
        let of_file = || of(Protocol::OpenAi, "gpt-5");
        let check = |operator: &str, expected: bool| {
            let operator: Overrides = serde_json::from_str(operator).unwrap();
            assert_eq!(merge(of_file(), None, Some(&operator)).refuses().temperature, expected);
        };
        check("{}", true);
        check(r#"{"refuses": []}"#, false);
    }
}
