//! Validation of a taxonomy beyond its schema: sizes, duplicate names and examples, patterns.

use std::collections::HashMap;

use super::file::CategoryEntry;
use crate::model_recommendation::RoutingRules;
use crate::rules;
use corbie_config::source_file::SourceFile;
use corbie_config::{Diagnostic, KeyPath};

/// Maximum number of categories: each has a probability in every response.
pub(crate) const MAX_CATEGORIES: usize = 2000;
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

/// Path of the category with this index.
fn category_path(class: usize) -> KeyPath {
    KeyPath::default().key("categories").index(class)
}

/// Size limits, which exist to avoid the cost of the further checks.
pub(super) fn check_sizes(categories: &[CategoryEntry], written: &SourceFile) -> Vec<Diagnostic> {
    let sum = |of: fn(&CategoryEntry) -> usize| categories.iter().map(of).sum::<usize>();
    let examples = sum(|category| category.examples.len());
    let patterns = sum(|category| category.patterns.len() + category.certain.len());
    let words = sum(|category| category.words.len());
    let counted = |count: usize, most: usize, what: &str| {
        (count > most).then(|| format!("has {count} {what}, the maximum is {most}"))
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

/// Rejects empty, malformed and duplicate names.
pub(super) fn check_names(categories: &[CategoryEntry], written: &SourceFile) -> Vec<Diagnostic> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut mistakes = Vec::new();
    for (class, category) in categories.iter().enumerate() {
        let name = category.name.as_str();
        let mut mistake =
            |message: String| mistakes.push(written.diagnostic(category_path(class).key("name"), message));
        if name.trim().is_empty() {
            mistake("is empty".into());
        } else if name.trim() != name || name.chars().any(char::is_control) {
            mistake("has leading or trailing spaces or control characters".into());
        } else if name.chars().count() > MAX_NAME_CHARS {
            mistake(format!("is longer than {MAX_NAME_CHARS} characters"));
        } else if let Some(other) = first.insert(name, class) {
            mistake(format!("duplicate name `{name}`: category {other} has the same name"));
        }
    }
    mistakes
}

/// Rejects empty texts, and examples shared by two categories: they would only add label noise.
pub(super) fn check_texts(categories: &[CategoryEntry], written: &SourceFile) -> Vec<Diagnostic> {
    let mut claimed: HashMap<&str, usize> = HashMap::new();
    let mut mistakes = Vec::new();
    for (class, category) in categories.iter().enumerate() {
        for (index, word) in category.words.iter().enumerate() {
            let place = || category_path(class).key("words").index(index);
            if !word.contains(char::is_alphanumeric) {
                mistakes.push(written.diagnostic(place(), "has no letter or digit; use `patterns` for symbols"));
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
                    let message = format!("duplicates an example of `{}`", categories[other].name);
                    mistakes.push(written.diagnostic(place(), message));
                }
                _ => {}
            }
        }
    }
    mistakes
}

/// Rejects patterns that do not compile.
pub(super) fn check_patterns(categories: &[CategoryEntry], written: &SourceFile) -> Vec<Diagnostic> {
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
pub(super) fn check_routing_words(rules: Option<&RoutingRules>, written: &SourceFile) -> Vec<Diagnostic> {
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
                    mistakes
                        .push(written.diagnostic(path, "is not a single word of letters and digits and never matches"));
                }
            }
        }
    }
    mistakes
}
