//! Built-in model data, `models.yaml`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{ModelProperties, Overrides, Parameter, merge};
use crate::chat::Protocol;
use corbie_config::{ConfigError, derive, source_file};

const MODELS: &str = include_str!("models.yaml");

/// Content of the file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ModelsFile {
    openai: Vec<ModelGroup>,
    anthropic: Vec<ModelGroup>,
    google: Vec<ModelGroup>,
}

/// Models with the same capabilities.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ModelGroup {
    models: Vec<String>,
    #[serde(default)]
    unsupported_parameters: Vec<Parameter>,
    images: Option<bool>,
    tools: Option<bool>,
    reasoning: Option<bool>,
    structured_output: Option<bool>,
    context: Option<u64>,
    output: Option<u64>,
}

type Models = HashMap<String, ModelProperties>;

/// The built-in data for a model.
///
/// A snapshot inherits from its model: `gpt-5-2025-08-07` is `gpt-5` unless the file lists it separately. No other
/// similarity of names counts, because an unrelated vendor may use a similar name.
pub(super) fn find(protocol: Protocol, model: &str) -> Option<&'static ModelProperties> {
    static FILE: LazyLock<[Models; 3]> = LazyLock::new(|| models(read().expect("a test reads it")));
    let [openai, anthropic, google] = &*FILE;
    let (models, model) = match protocol {
        Protocol::OpenAi => (openai, model),
        Protocol::Anthropic => (anthropic, model),
        Protocol::Google => (google, model.strip_prefix("models/").unwrap_or(model)),
    };
    models.get(model).or_else(|| models.get(without_snapshot(model)?))
}

fn read() -> Result<ModelsFile, ConfigError> {
    let (file, _) = source_file::parse_yaml(MODELS, Path::new("models.yaml"), &derive::<ModelsFile>())?;
    Ok(file)
}

fn models(file: ModelsFile) -> [Models; 3] {
    [file.openai, file.anthropic, file.google].map(|entries| {
        let known = |entry: ModelGroup| {
            let ModelGroup {
                models,
                unsupported_parameters,
                images,
                tools,
                reasoning,
                structured_output,
                context,
                output,
            } = entry;
            let told = Overrides {
                unsupported_parameters: Some(unsupported_parameters),
                context,
                output,
                images,
                tools,
                reasoning,
                structured_output,
            };
            models.into_iter().map(move |model| (model, merge(ModelProperties::default(), None, Some(&told))))
        };
        entries.into_iter().flat_map(known).collect()
    })
}

/// The name without `-2025-08-07`, `-20250929` or `-latest`.
pub(super) fn without_snapshot(model: &str) -> Option<&str> {
    if let Some(name) = model.strip_suffix("-latest") {
        return Some(name);
    }
    let is_date = |text: &str, form: &str| {
        text.len() == form.len()
            && text.bytes().zip(form.bytes()).all(|(byte, form)| match form {
                b'0' => byte.is_ascii_digit(),
                form => byte == form,
            })
    };
    ["-0000-00-00", "-00000000"].iter().find_map(|form| {
        let (name, ending) = model.split_at_checked(model.len().checked_sub(form.len())?)?;
        is_date(ending, form).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeSet, HashSet};

    fn refuses_temperature(protocol: Protocol, model: &str) -> Option<bool> {
        find(protocol, model).map(|known| known.unsupported_parameters().temperature)
    }

    #[test]
    fn the_file_is_read_and_has_every_model_once() {
        let file = read().unwrap();
        for entries in [file.openai, file.anthropic, file.google] {
            let mut seen = HashSet::new();
            for ModelGroup { models, unsupported_parameters, reasoning, .. } in entries {
                assert!(!models.is_empty());
                assert_eq!(
                    unsupported_parameters.iter().collect::<BTreeSet<_>>().len(),
                    unsupported_parameters.len(),
                    "{models:?}"
                );
                // A model without reasoning must refuse reasoning parameters, and a reasoning model must not.
                assert_eq!(
                    reasoning == Some(false),
                    unsupported_parameters.contains(&Parameter::Reasoning),
                    "{models:?}"
                );
                for model in models {
                    assert!(seen.insert(model.clone()), "{model} twice");
                }
            }
        }
    }

    #[test]
    fn a_model_is_found_by_its_exact_name_or_without_the_date_of_its_snapshot() {
        for model in ["gpt-5", "gpt-5-2025-08-07", "gpt-5-20250807", "gpt-5-latest"] {
            assert_eq!(refuses_temperature(Protocol::OpenAi, model), Some(true), "{model}");
        }
        assert_eq!(refuses_temperature(Protocol::Anthropic, "claude-haiku-4-5-20251001"), Some(false));
        assert_eq!(refuses_temperature(Protocol::Google, "models/gemini-2.5-pro"), Some(false));
        // The file lists these separately.
        assert_eq!(refuses_temperature(Protocol::OpenAi, "gpt-5-chat-latest"), Some(false));
        assert_eq!(find(Protocol::OpenAi, "gpt-4o-2024-05-13").unwrap().output, Some(4096));
    }

    #[test]
    fn no_name_is_taken_to_mean_anything() {
        for model in
            ["", "gpt-5-", "gpt-5x", "gpt-5-super", "gpt-5-2025-08", "gpt-5-2025-08-7x", "openai/gpt-5", "é-latest"]
        {
            assert_eq!(find(Protocol::OpenAi, model), None, "{model}");
        }
        // The same model name at a different vendor.
        assert_eq!(find(Protocol::Google, "gpt-5"), None);
        assert_eq!(find(Protocol::OpenAi, "models/gpt-5"), None);
    }
}
