//! Suggestions for misspelt words ("did you mean").

use serde_json::Value;

/// Minimum similarity, from 0 to 1: one typo in a word of four letters is accepted.
const NEAR: f64 = 0.7;

/// The candidate most similar to `word`, if similar enough. Ignores case and separators.
pub(super) fn near<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // The comparison is quadratic in length, and no key is this long.
    if word.len() > 64 {
        return None;
    }
    let word = bare(word);
    candidates
        .map(|candidate| (likeness(&word, &bare(candidate)), candidate))
        .filter(|(likeness, _)| *likeness >= NEAR)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate)
}

/// Path of a key with exactly this name, for a setting at the wrong level.
pub(super) fn elsewhere(key: &str, schema: &Value) -> Option<String> {
    let properties = schema.get("properties")?.as_object()?;
    if properties.contains_key(key) {
        return Some(key.into());
    }
    let below = |(name, schema): (&String, &Value)| Some(format!("{name}.{}", elsewhere(key, schema)?));
    properties.iter().find_map(below)
}

fn likeness(one: &str, other: &str) -> f64 {
    if one.is_empty() || other.is_empty() {
        return 0.0;
    }
    strsim::normalized_damerau_levenshtein(one, other)
}

fn bare(word: &str) -> String {
    word.chars().filter(|c| !"_- ".contains(*c)).flat_map(char::to_lowercase).collect()
}
