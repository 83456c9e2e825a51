//! Suggestions for misspelt words ("did you mean").

use serde_json::Value;

/// Minimum similarity, from 0 to 1: one typo in a word of four letters is accepted.
const MIN_SIMILARITY: f64 = 0.7;

/// The candidate most similar to `word`, if similar enough. Ignores case and separators.
pub fn closest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // The comparison is quadratic in length, and no key is this long.
    if word.len() > 64 {
        return None;
    }
    let word = normalize(word);
    candidates
        .map(|candidate| (similarity(&word, &normalize(candidate)), candidate))
        .filter(|(likeness, _)| *likeness >= MIN_SIMILARITY)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate)
}

/// Path of a key with exactly this name, for a setting at the wrong level.
pub fn path_of_key(key: &str, schema: &Value) -> Option<String> {
    let properties = schema.get("properties")?.as_object()?;
    if properties.contains_key(key) {
        return Some(key.into());
    }
    let below = |(name, schema): (&String, &Value)| Some(format!("{name}.{}", path_of_key(key, schema)?));
    properties.iter().find_map(below)
}

fn similarity(one: &str, other: &str) -> f64 {
    if one.is_empty() || other.is_empty() {
        return 0.0;
    }
    strsim::normalized_damerau_levenshtein(one, other)
}

fn normalize(word: &str) -> String {
    word.chars().filter(|c| !"_- ".contains(*c)).flat_map(char::to_lowercase).collect()
}
