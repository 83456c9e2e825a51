//! Bounds the byte length of tokens.
//!
//! A chunk has a bounded number of tokens, so its byte size is bounded only if tokens are short. Some tokenizers map an
//! unknown word of any length to one token, and invisible characters to none.

use std::ops::Range;

/// Maximum bytes of a token, and of text without tokens.
pub const MAX_TOKEN_BYTES: usize = 64;

/// Splits long tokens and adds tokens to long ranges without any. `tokens` are in ascending order. A text without any
/// tokens stays without.
pub fn bound_tokens(text: &str, tokens: Vec<Range<usize>>) -> Vec<Range<usize>> {
    if tokens.is_empty() {
        return tokens;
    }
    let mut parted = Vec::with_capacity(tokens.len());
    let mut passed = 0;
    for token in tokens {
        if token.start.saturating_sub(passed) > MAX_TOKEN_BYTES {
            split_range(text, passed..token.start, &mut parted);
        }
        passed = passed.max(token.end);
        match token.len() > MAX_TOKEN_BYTES {
            true => split_range(text, token, &mut parted),
            false => parted.push(token),
        }
    }
    if text.len() - passed > MAX_TOKEN_BYTES {
        split_range(text, passed..text.len(), &mut parted);
    }
    parted
}

/// Splits a range into pieces at character boundaries.
fn split_range(text: &str, range: Range<usize>, into: &mut Vec<Range<usize>>) {
    let mut start = range.start;
    while start < range.end {
        let most = text.floor_char_boundary((start + MAX_TOKEN_BYTES).min(range.end));
        // A range may start or end inside a character.
        let end = if most > start { most } else { range.end };
        into.push(start..end);
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_as_they_are() {
        assert_eq!(bound_tokens("one two", vec![0..3, 4..7]), [0..3, 4..7]);
        assert_eq!(bound_tokens(&"\u{200b}".repeat(100), vec![]), []);
        // A character that consists of several tokens.
        assert_eq!(bound_tokens("🐦", vec![0..4, 0..4]), [0..4, 0..4]);
    }

    #[test]
    fn what_is_too_long_and_what_has_no_token_is_cut_where_characters_end() {
        for letter in ["x", "ä", "字", "🐦", "\u{200b}", " "] {
            let text = letter.repeat(1000);
            let (first, last) = (0..letter.len(), text.len() - letter.len()..text.len());
            for token in [0..text.len(), first, last] {
                let parted = bound_tokens(&text, Vec::from([token]));
                assert!(parted.iter().all(|token| !token.is_empty() && token.len() <= MAX_TOKEN_BYTES), "{parted:?}");
                assert!(parted.iter().all(|token| text.is_char_boundary(token.start)), "{parted:?}");
                assert!(parted.windows(2).all(|two| two[0].end == two[1].start), "{parted:?}");
                assert_eq!((parted[0].start, parted[parted.len() - 1].end), (0, text.len()));
            }
        }
    }
}
