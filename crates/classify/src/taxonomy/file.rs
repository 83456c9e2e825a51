//! Taxonomy file format: YAML, TOML or JSON.

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::validate::{check_names, check_patterns, check_routing_words, check_sizes, check_texts};
use super::{Category, DEFAULT_MODEL, Taxonomy};
use crate::model_recommendation::{ModelRecommender, RoutingRules};
use corbie_config::source_file::{self, SourceFile};
use corbie_config::{ConfigError, FileKind, KeyPath, derive};

/// Size limit of a file. Two thousand categories with a hundred examples each take half of it.
pub const MAX_FILE_BYTES: usize = 32 * 1024 * 1024;
const FILE_KIND: FileKind = FileKind { name: "taxonomy", max_bytes: MAX_FILE_BYTES };

/// Categories with their examples, and rules for recommended models.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "corbie taxonomy")]
pub(super) struct TaxonomyFile {
    /// Model of categories that name none, as `provider/model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    /// Category of texts that match no rule. Defaults to `general` or `other`, if such a category exists. Methods that
    /// learn from examples use the examples of this category.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remainder: Option<String>,
    /// Categories; the first has index 0.
    pub(super) categories: Vec<CategoryEntry>,
    /// Rules for the recommended model and reasoning. Defaults to the rules in `docs/categories.md`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) routing: Option<RoutingRules>,
}

/// One category.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CategoryEntry {
    /// Short, stable name: routers refer to the category by it.
    pub(super) name: String,
    /// Description in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    /// System prompt for texts of this category.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) system_prompt: Option<String>,
    /// Recommended model, as `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    /// Whether the model should reason before it answers.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) use_reasoning: bool,
    /// Regular expressions that indicate the category, used with the method `rules` and if a model fails.
    /// Case-insensitive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) patterns: Vec<String>,
    /// Words and phrases that indicate the category, matched as whole words, used with the method `rules` and if a
    /// model fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) words: Vec<String>,
    /// Regular expressions that classify a text without a model. Used by the methods `rules` and `hybrid`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) certain: Vec<String>,
    /// Texts of this category: 20 are sufficient, 100 are better. Varied examples improve the accuracy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) examples: Vec<String>,
}

/// The JSON Schema of taxonomy files.
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(derive::<TaxonomyFile>);
    &SCHEMA
}

pub(super) fn read(path: &Path) -> Result<Taxonomy, ConfigError> {
    let (file, written) = source_file::read(path, FILE_KIND, schema())?;
    let taxonomy = build(file, &written)?;
    Ok(Taxonomy { path: Some(path.to_owned()), ..taxonomy })
}

/// Parses YAML that does not come from a file.
pub(super) fn parse(text: &str) -> Result<Taxonomy, ConfigError> {
    let (file, written) = source_file::parse_yaml(text, Path::new("taxonomy"), schema())?;
    build(file, &written)
}

/// Parses a text in the format of this file name.
pub(super) fn parse_for(text: &str, file: &Path) -> Result<Taxonomy, ConfigError> {
    let (content, written) = source_file::parse_as_file(text, file, FILE_KIND, schema())?;
    build(content, &written)
}

/// Builds a taxonomy from collected data. Examples shared by several categories are allowed: collected data contains
/// them.
pub(super) fn from_examples<'a>(
    categories: impl Iterator<Item = (&'a str, Vec<&'a str>)>,
) -> Result<Taxonomy, ConfigError> {
    let entry = |(name, examples): (&str, Vec<&str>)| CategoryEntry {
        name: name.to_owned(),
        examples: examples.into_iter().map(str::to_owned).collect(),
        ..CategoryEntry::default()
    };
    let categories: Vec<CategoryEntry> = categories.map(entry).collect();
    let written = SourceFile::detached();
    let mut mistakes = check_sizes(&categories, &written);
    mistakes.extend(check_names(&categories, &written));
    if !mistakes.is_empty() {
        return Err(ConfigError::sorted(mistakes));
    }
    let categories = categories.into_iter().map(|entry| entry.into_category(DEFAULT_MODEL)).collect();
    Ok(Taxonomy { path: None, categories, remainder: None, routing: Arc::new(ModelRecommender::default()) })
}

/// Validates constraints beyond the schema.
fn build(file: TaxonomyFile, written: &SourceFile) -> Result<Taxonomy, ConfigError> {
    let TaxonomyFile { model, remainder, categories, routing } = file;
    let model = model.unwrap_or_else(|| DEFAULT_MODEL.into());
    let mut mistakes = check_sizes(&categories, written);
    if !mistakes.is_empty() {
        return Err(ConfigError::sorted(mistakes));
    }
    mistakes.extend(check_names(&categories, written));
    mistakes.extend(check_texts(&categories, written));
    mistakes.extend(check_patterns(&categories, written));
    mistakes.extend(check_routing_words(routing.as_ref(), written));

    let place = |name: &str| categories.iter().position(|category| category.name == name);
    let named = remainder.as_deref().map(|name| (name, place(name)));
    if let Some((name, None)) = named {
        mistakes.push(written.diagnostic(KeyPath::default().key("remainder"), format!("`{name}` is not a category")));
    }
    let remainder = named.map_or_else(|| place("general").or_else(|| place("other")), |(_, class)| class);
    let routing = match routing {
        Some(rules) => ModelRecommender::from(rules),
        None => ModelRecommender::default(),
    };
    if !mistakes.is_empty() {
        return Err(ConfigError::sorted(mistakes));
    }
    let categories = categories.into_iter().map(|entry| entry.into_category(&model)).collect();
    Ok(Taxonomy { path: None, categories, remainder, routing: Arc::new(routing) })
}

impl CategoryEntry {
    /// Fills in defaults: clients can rely on a description and a prompt for each category (C-03, C-04).
    fn into_category(self, model: &str) -> Category {
        let CategoryEntry { name, description, system_prompt, .. } = self;
        let description = description.unwrap_or_else(|| format!("Texts about {name}"));
        let role = match name.as_str() {
            "general" | "other" => "You are a helpful assistant".to_owned(),
            name => format!("You are an expert in {name}"),
        };
        let system_prompt = system_prompt.unwrap_or_else(|| {
            format!(
                "{role}. When answering:\n- Answer the question that was asked, first and directly\n\
                 - Explain what the answer rests on\n- Say what you are not sure of"
            )
        });
        Category {
            name,
            description,
            system_prompt: system_prompt.trim_end().to_owned(),
            model: self.model.unwrap_or_else(|| model.to_owned()),
            use_reasoning: self.use_reasoning,
            patterns: self.patterns,
            words: self.words,
            certain: self.certain,
            examples: self.examples.into_iter().map(|example| Cow::Owned(example.trim().to_owned())).collect(),
            retired: false,
        }
    }
}

fn is_false(truth: &bool) -> bool {
    !truth
}
