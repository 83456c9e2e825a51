//! Errors for unknown words, with the list of known words and the most similar one.

use syn::Ident;

/// Minimum similarity (0 to 1) of a suggestion.
const LIKELY_A_TYPO: f64 = 0.6;

/// "unknown `#[mcp_tool]` key `tiemout`; did you mean `timeout`? known: name, title, ..."
pub(crate) fn unknown(word: &Ident, what: &str, known: &[&str]) -> syn::Error {
    let guess = match nearest(&word.to_string(), known) {
        Some(near) => format!("did you mean `{near}`? "),
        None => String::new(),
    };
    syn::Error::new(word.span(), format!("unknown {what} `{word}`; {guess}known: {}", known.join(", ")))
}

fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (strsim::normalized_damerau_levenshtein(word, candidate), *candidate))
        .filter(|(similarity, _)| *similarity >= LIKELY_A_TYPO)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_the_word_it_was_meant_to_be() {
        assert_eq!(nearest("tiemout", &["title", "timeout"]), Some("timeout"));
        assert_eq!(nearest("cache-ttl", &["cache_ttl"]), Some("cache_ttl"));
    }

    #[test]
    fn an_unrelated_word_gets_no_guess() {
        assert_eq!(nearest("colour", &["title", "timeout"]), None);
    }
}
