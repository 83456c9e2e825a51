//! Letters whose accent is drawn apart from them.
//!
//! Older typesetters draw an accent, go back, and draw the letter under it. As text that is two characters, and a word with
//! a hole; it becomes the one letter that is seen.

use icu_normalizer::ComposingNormalizerBorrowed;

use super::fragments::Letter;

/// The mark that an accent puts on a letter.
pub(super) fn mark(words: &str) -> Option<char> {
    let mut letters = words.chars();
    let (Some(accent), None) = (letters.next(), letters.next()) else { return None };
    Some(match accent {
        '`' | '\u{2cb}' => '\u{300}',
        '\u{b4}' | '\u{2ca}' => '\u{301}',
        '^' | '\u{2c6}' => '\u{302}',
        '~' | '\u{2dc}' => '\u{303}',
        '\u{af}' | '\u{2c9}' => '\u{304}',
        '\u{2d8}' => '\u{306}',
        '\u{2d9}' => '\u{307}',
        '\u{a8}' => '\u{308}',
        '\u{2da}' => '\u{30a}',
        '\u{2dd}' => '\u{30b}',
        '\u{2c7}' => '\u{30c}',
        '\u{b8}' => '\u{327}',
        '\u{2db}' => '\u{328}',
        _ => return None,
    })
}

/// Whether an accent stands over or under a letter, and not beside it.
pub(super) fn is_over(accent: &Letter, letter: &Letter) -> bool {
    let shared = accent.x1.min(letter.x1) - accent.x0.max(letter.x0);
    let narrower = (accent.x1 - accent.x0).min(letter.x1 - letter.x0);
    narrower > 0.0 && shared > 0.5 * narrower
}

/// The letter with the mark, as one character where there is one; none where it is not a letter.
pub(super) fn accented(letter: char, mark: char) -> Option<String> {
    // Accents take the place of the dot.
    let letter = match letter {
        'ı' => 'i',
        'ȷ' => 'j',
        other => other,
    };
    let two = String::from_iter([letter, mark]);
    letter.is_alphabetic().then(|| ComposingNormalizerBorrowed::new_nfc().normalize(&two).into_owned())
}
