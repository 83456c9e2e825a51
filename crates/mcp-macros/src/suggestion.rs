//! Errors for unknown words, with the list of known words and the most similar one.

use syn::Ident;

/// Minimum similarity (0 to 1) of a suggestion.
const MIN_SIMILARITY: f64 = 0.6;

/// "unknown `#[mcp_tool]` key `tiemout`; did you mean `timeout`? known: name, title, ..."
pub(crate) fn unknown_word_error(word: &Ident, what: &str, known: &[&str]) -> syn::Error {
    let guess = match closest(&word.to_string(), known) {
        Some(near) => format!("did you mean `{near}`? "),
        None => String::new(),
    };
    syn::Error::new(word.span(), format!("unknown {what} `{word}`; {guess}known: {}", known.join(", ")))
}

fn closest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (strsim::normalized_damerau_levenshtein(word, candidate), *candidate))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_the_word_it_was_meant_to_be() {
        assert_eq!(closest("tiemout", &["title", "timeout"]), Some("timeout"));
        assert_eq!(closest("cache-ttl", &["cache_ttl"]), Some("cache_ttl"));
    }

    #[test]
    fn an_unrelated_word_gets_no_guess() {
        assert_eq!(closest("colour", &["title", "timeout"]), None);
    }
}
