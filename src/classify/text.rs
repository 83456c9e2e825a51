//! A text as it comes from outside, made fit to be looked at (C-30, C-31, C-32).

use std::borrow::Cow;

/// Why a text is not classified.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("`text` is empty; give the text to classify")]
    Empty,
    #[error("`text` has more than {most} characters; shorten it, or raise `classification.max_text_length`")]
    TooLong { most: usize },
}

/// The text without control characters and without space around it. White space of every kind becomes a plain space
/// or stays a line break, so that a NUL or a bell changes no verdict.
pub(super) fn clean(text: &str, most: usize) -> Result<Cow<'_, str>, Unfit> {
    // A character has at most four bytes, so most texts need not be counted.
    if text.len() > most && text.chars().nth(most).is_some() {
        return Err(Unfit::TooLong { most });
    }
    let clean = match text.contains(is_unwanted) {
        false => Cow::Borrowed(text.trim()),
        true => {
            let visible: String = text.chars().map(|letter| if letter == '\t' { ' ' } else { letter }).collect();
            Cow::Owned(visible.replace(is_unwanted, "").trim().to_owned())
        }
    };
    if clean.is_empty() { Err(Unfit::Empty) } else { Ok(clean) }
}

/// Control characters, and what only pretends that a text is there.
fn is_unwanted(letter: char) -> bool {
    (letter.is_control() && letter != '\n') || matches!(letter, '\u{feff}' | '\u{200b}' | '\u{2060}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn c30_an_empty_text_is_refused() {
        for text in ["", " \t\n ", "\0", "\u{200b}\u{feff}"] {
            assert_eq!(clean(text, 10), Err(Unfit::Empty), "{text:?}");
        }
    }

    #[test]
    fn c31_z10_length_is_counted_in_characters() {
        assert_eq!(clean("ööööö", 5).unwrap(), "ööööö");
        assert_eq!(clean("öööööö", 5), Err(Unfit::TooLong { most: 5 }));
        assert_eq!(clean(&"x".repeat(10_000_000), 32_768), Err(Unfit::TooLong { most: 32_768 }));
    }

    #[test]
    fn c32_control_characters_are_stripped() {
        assert_eq!(clean("what\0 is\u{7} 2\t+ 2?\n", 100).unwrap(), "what is 2 + 2?");
        assert_eq!(clean("two\nlines", 100).unwrap(), "two\nlines");
    }

    proptest! {
        #[test]
        fn cleaning_twice_is_cleaning_once(text in any::<String>()) {
            if let Ok(once) = clean(&text, usize::MAX) {
                prop_assert_eq!(clean(&once, usize::MAX).unwrap(), once.clone());
                prop_assert!(!once.contains(is_unwanted));
            }
        }
    }
}
