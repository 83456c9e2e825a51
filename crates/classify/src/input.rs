//! Normalization of input texts (C-30, C-31, C-32).

use std::borrow::Cow;

/// Why a text was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidText {
    #[error("`text` is empty; enter the text to classify")]
    Empty,
    #[error("`text` is longer than {most} characters; shorten it, or increase `classification.max_text_length`")]
    TooLong { most: usize },
}

/// Strips control characters and surrounding whitespace. All whitespace becomes a plain space or stays a line break;
/// invisible characters are removed. So a NUL or a form feed changes no verdict.
pub(super) fn normalize(text: &str, most: usize) -> Result<Cow<'_, str>, InvalidText> {
    // A character has at least one byte, so short texts need no character count.
    if text.len() > most && text.chars().nth(most).is_some() {
        return Err(InvalidText::TooLong { most });
    }
    let clean = match text.contains(needs_normalization) {
        false => Cow::Borrowed(text.trim()),
        true => {
            let spaced = text.chars().map(|letter| if is_nonstandard_space(letter) { ' ' } else { letter });
            let visible: String = spaced.filter(|letter| !needs_normalization(*letter)).collect();
            Cow::Owned(visible.trim().to_owned())
        }
    };
    if clean.is_empty() { Err(InvalidText::Empty) } else { Ok(clean) }
}

fn is_nonstandard_space(letter: char) -> bool {
    letter.is_whitespace() && letter != ' ' && letter != '\n'
}

/// Whitespace to be replaced by a plain space, control characters, and characters without a glyph.
fn needs_normalization(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_control() && letter != '\n';
    }
    is_nonstandard_space(letter) || letter.is_control() || is_invisible(letter)
}

/// Unicode format characters: joiners, directions, tags.
fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}' | '\u{8e2}'
            | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0001}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn c30_an_empty_text_is_refused() {
        for text in ["", " \t\n ", "\0", "\u{200b}\u{feff}", "\u{202e}\u{200d}"] {
            assert_eq!(normalize(text, 10), Err(InvalidText::Empty), "{text:?}");
        }
    }

    #[test]
    fn c31_z10_length_is_counted_in_characters() {
        assert_eq!(normalize("ööööö", 5).unwrap(), "ööööö");
        assert_eq!(normalize("öööööö", 5), Err(InvalidText::TooLong { most: 5 }));
        assert_eq!(normalize(&"x".repeat(10_000_000), 32_768), Err(InvalidText::TooLong { most: 32_768 }));
    }

    #[test]
    fn c32_control_characters_are_stripped() {
        assert_eq!(normalize("what\0 is\u{7} 2\t+ 2?\n", 100).unwrap(), "what is 2 + 2?");
        assert_eq!(normalize("two\nlines", 100).unwrap(), "two\nlines");
        assert_eq!(normalize("what is\rmy\u{c}bank\u{a0}balance", 100).unwrap(), "what is my bank balance");
    }

    proptest! {
        #[test]
        fn cleaning_twice_is_cleaning_once(text in any::<String>()) {
            if let Ok(once) = normalize(&text, usize::MAX) {
                prop_assert_eq!(normalize(&once, usize::MAX).unwrap(), once.clone());
                prop_assert!(!once.contains(needs_normalization));
            }
        }
    }
}
