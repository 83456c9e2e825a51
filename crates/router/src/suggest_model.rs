//! Suggestions for an unknown model name. No I/O.

/// Minimum similarity of a suggestion.
const MIN_SIMILARITY: f64 = 0.85;
const MAX_SUGGESTIONS: usize = 3;

/// The most similar names, best first.
pub(super) fn similar_names<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let score = |id: &str| {
        let id = id.to_lowercase();
        // Users often type a part of the name.
        let part = if id.contains(&wanted) || wanted.contains(&id) { 0.3 } else { 0.0 };
        strsim::jaro_winkler(&id, &wanted) + part
    };
    let mut near: Vec<(f64, &str)> =
        known.map(|id| (score(id), id)).filter(|(score, _)| *score > MIN_SIMILARITY).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    near.dedup_by(|a, b| a.1 == b.1);
    near.into_iter().take(MAX_SUGGESTIONS).map(|(_, id)| id.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p13_names_that_are_alike_are_suggested_best_first() {
        let known = ["gpt-4o", "gpt-4o-mini", "claude-sonnet-5", "llama3:latest", "gpt-4o"];
        let of = |wanted| similar_names(wanted, known.into_iter());
        assert_eq!(of("GPT-4o"), ["gpt-4o", "gpt-4o-mini"]);
        assert_eq!(of("llama"), ["llama3:latest"]);
        assert_eq!(of("claude-sonet-5"), ["claude-sonnet-5"]);
        assert!(of("mystery").is_empty());
    }
}
