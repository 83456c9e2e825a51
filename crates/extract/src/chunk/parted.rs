//! Tokens that are no longer than a word may be.
//!
//! Chunks have so many tokens, and by that so many bytes, as long as a token has few. But to some models a word they do
//! not know is one token however long it is, and invisible characters are none.

use std::ops::Range;

/// The most bytes of a token, and of text without one.
pub const LONGEST_TOKEN: usize = 64;

/// The tokens of a text, in ascending order, with longer ones cut into several, and with more where there are none for
/// long. A text in which there is nothing to read stays without any.
pub fn parted(text: &str, tokens: Vec<Range<usize>>) -> Vec<Range<usize>> {
    if tokens.is_empty() {
        return tokens;
    }
    let mut parted = Vec::with_capacity(tokens.len());
    let mut passed = 0;
    for token in tokens {
        if token.start.saturating_sub(passed) > LONGEST_TOKEN {
            cut(text, passed..token.start, &mut parted);
        }
        passed = passed.max(token.end);
        match token.len() > LONGEST_TOKEN {
            true => cut(text, token, &mut parted),
            false => parted.push(token),
        }
    }
    if text.len() - passed > LONGEST_TOKEN {
        cut(text, passed..text.len(), &mut parted);
    }
    parted
}

/// Pieces of a range, which end where characters do.
fn cut(text: &str, range: Range<usize>, into: &mut Vec<Range<usize>>) {
    let mut start = range.start;
    while start < range.end {
        let most = text.floor_char_boundary((start + LONGEST_TOKEN).min(range.end));
        // A range may begin or end inside of a character.
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
        assert_eq!(parted("one two", vec![0..3, 4..7]), [0..3, 4..7]);
        assert_eq!(parted(&"\u{200b}".repeat(100), vec![]), []);
        // As of characters that are made of several tokens.
        assert_eq!(parted("🐦", vec![0..4, 0..4]), [0..4, 0..4]);
    }

    #[test]
    fn what_is_too_long_and_what_has_no_token_is_cut_where_characters_end() {
        for letter in ["x", "ä", "字", "🐦", "\u{200b}", " "] {
            let text = letter.repeat(1000);
            let (first, last) = (0..letter.len(), text.len() - letter.len()..text.len());
            for token in [0..text.len(), first, last] {
                let parted = parted(&text, Vec::from([token]));
                assert!(parted.iter().all(|token| !token.is_empty() && token.len() <= LONGEST_TOKEN), "{parted:?}");
                assert!(parted.iter().all(|token| text.is_char_boundary(token.start)), "{parted:?}");
                assert!(parted.windows(2).all(|two| two[0].end == two[1].start), "{parted:?}");
                assert_eq!((parted[0].start, parted[parted.len() - 1].end), (0, text.len()));
            }
        }
    }
}
