//! Taxonomy file format: YAML, TOML or JSON.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Category, DEFAULT_MODEL, Taxonomy};
use crate::classify::model_recommendation::{ModelRecommender, RoutingRules};
use crate::classify::rules;
use crate::config::source_file::{self, SourceFile};
use crate::config::{ConfigError, Diagnostic, FileKind, KeyPath, derive};

/// Size limit of a file. Two thousand categories with a hundred examples each take half of it.
pub const MAX_FILE_BYTES: usize = 32 * 1024 * 1024;
const FILE_KIND: FileKind = FileKind { name: "taxonomy", max_bytes: MAX_FILE_BYTES };

/// Maximum number of categories: each has a probability in every response.
pub(in crate::classify) const MAX_CATEGORIES: usize = 2000;
/// Maximum number of examples; training on more would take many minutes.
const MAX_EXAMPLES: usize = 200_000;
/// Maximum number of patterns: every text is matched against all of them.
const MAX_PATTERNS: usize = 5000;
/// Maximum number of words.
const MAX_WORDS: usize = 100_000;
/// Maximum length of a word or phrase, in characters. It bounds the number of overlapping matches.
const MAX_WORD_CHARS: usize = 100;
/// Maximum length of a pattern, in characters.
const MAX_PATTERN_CHARS: usize = 4096;
/// Maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 100;
/// Maximum length of an example, in characters; models truncate earlier.
pub const MAX_EXAMPLE_CHARS: usize = 8192;

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
        // The size limits exist to avoid the cost of the further checks.
        return Err(ConfigError::sorted(mistakes));
    }
    mistakes.extend(check_names(&categories, written));
    mistakes.extend(check_texts(&categories, written));
    mistakes.extend(check_patterns(&categories, written));
    mistakes.extend(check_routing_words(routing.as_ref(), written));

    let place = |name: &str| categories.iter().position(|category| category.name == name);
    let named = remainder.as_deref().map(|name| (name, place(name)));
    if let Some((name, None)) = named {
        mistakes.push(written.diagnostic(KeyPath::default().key("remainder"), format!("`{name}` is no category")));
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

/// Path of the category with this index.
fn category_path(class: usize) -> KeyPath {
    KeyPath::default().key("categories").index(class)
}

fn check_sizes(categories: &[CategoryEntry], written: &SourceFile) -> Vec<Diagnostic> {
    let sum = |of: fn(&CategoryEntry) -> usize| categories.iter().map(of).sum::<usize>();
    let examples = sum(|category| category.examples.len());
    let patterns = sum(|category| category.patterns.len() + category.certain.len());
    let words = sum(|category| category.words.len());
    let counted = |count: usize, most: usize, what: &str| {
        (count > most).then(|| format!("has {count} {what}; the most is {most}"))
    };
    let none = categories.is_empty().then(|| "needs at least one category with a `name`".to_owned());
    let messages = [
        none,
        counted(categories.len(), MAX_CATEGORIES, "categories"),
        counted(examples, MAX_EXAMPLES, "examples"),
        counted(patterns, MAX_PATTERNS, "patterns"),
        counted(words, MAX_WORDS, "words"),
    ];
    let path = KeyPath::default().key("categories");
    messages.into_iter().flatten().map(|message| written.diagnostic(path.clone(), message)).collect()
}

fn check_names(categories: &[CategoryEntry], written: &SourceFile) -> Vec<Diagnostic> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut mistakes = Vec::new();
    for (class, category) in categories.iter().enumerate() {
        let name = category.name.as_str();
        let mut mistake =
            |message: String| mistakes.push(written.diagnostic(category_path(class).key("name"), message));
        if name.trim().is_empty() {
            mistake("is empty".into());
        } else if name.trim() != name || name.chars().any(char::is_control) {
            mistake("begins or ends with a space, or has a control character".into());
        } else if name.chars().count() > MAX_NAME_CHARS {
            mistake(format!("is longer than {MAX_NAME_CHARS} characters"));
        } else if let Some(other) = first.insert(name, class) {
            mistake(format!("`{name}` is the name of category {other} already"));
        }
    }
    mistakes
}

/// Rejects empty texts, and examples shared by two categories: they would only add label noise.
fn check_texts(categories: &[CategoryEntry], written: &SourceFile) -> Vec<Diagnostic> {
    let mut claimed: HashMap<&str, usize> = HashMap::new();
    let mut mistakes = Vec::new();
    for (class, category) in categories.iter().enumerate() {
        for (index, word) in category.words.iter().enumerate() {
            let place = || category_path(class).key("words").index(index);
            if !word.contains(char::is_alphanumeric) {
                mistakes.push(written.diagnostic(place(), "has no letter or digit; use `patterns` for signs"));
            } else if word.chars().count() > MAX_WORD_CHARS {
                mistakes.push(written.diagnostic(place(), format!("is longer than {MAX_WORD_CHARS} characters")));
            }
        }
        for (index, example) in category.examples.iter().enumerate() {
            let text = example.trim();
            let place = || category_path(class).key("examples").index(index);
            match claimed.insert(text, class) {
                _ if text.is_empty() => mistakes.push(written.diagnostic(place(), "is empty")),
                _ if text.chars().count() > MAX_EXAMPLE_CHARS => {
                    mistakes
                        .push(written.diagnostic(place(), format!("is longer than {MAX_EXAMPLE_CHARS} characters")));
                }
                Some(other) if other != class => {
                    let message = format!("is an example of `{}` already", categories[other].name);
                    mistakes.push(written.diagnostic(place(), message));
                }
                _ => {}
            }
        }
    }
    mistakes
}

fn check_patterns(categories: &[CategoryEntry], written: &SourceFile) -> Vec<Diagnostic> {
    let mut mistakes = Vec::new();
    for (class, category) in categories.iter().enumerate() {
        for (key, patterns) in [("patterns", &category.patterns), ("certain", &category.certain)] {
            for (index, pattern) in patterns.iter().enumerate() {
                let checked = match pattern.chars().count() > MAX_PATTERN_CHARS {
                    true => Err(format!("is longer than {MAX_PATTERN_CHARS} characters")),
                    false => rules::check(pattern),
                };
                if let Err(why) = checked {
                    mistakes.push(written.diagnostic(category_path(class).key(key).index(index), why));
                }
            }
        }
    }
    if mistakes.is_empty()
        && let Err(why) =
            rules::check_all(categories.iter().flat_map(|entry| entry.patterns.iter().chain(&entry.certain)))
    {
        mistakes.push(written.diagnostic(KeyPath::default().key("categories"), why));
    }
    mistakes
}

/// Rejects words that cannot match, because texts are split at every non-alphanumeric character.
fn check_routing_words(rules: Option<&RoutingRules>, written: &SourceFile) -> Vec<Diagnostic> {
    let Some(rules) = rules else { return Vec::new() };
    let conditions = rules.model.iter().map(|rule| &rule.when).enumerate().map(|(index, when)| ("model", index, when));
    let reasoning =
        rules.reasoning.iter().map(|rule| &rule.when).enumerate().map(|(index, when)| ("reasoning", index, when));
    let mut mistakes = Vec::new();
    for (list, index, when) in conditions.chain(reasoning) {
        for (key, words) in [("any_word", &when.any_word), ("no_word", &when.no_word)] {
            for (place, word) in words.iter().enumerate() {
                if word.is_empty() || !word.chars().all(char::is_alphanumeric) {
                    let path =
                        KeyPath::default().key("routing").key(list).index(index).key("when").key(key).index(place);
                    mistakes.push(
                        written.diagnostic(path, "is not a single word of letters and digits; no text would have it"),
                    );
                }
            }
        }
    }
    mistakes
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
