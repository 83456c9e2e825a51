//! Composes letters with separately drawn accents.
//!
//! Older typesetting programs draw an accent, move back, and draw the letter below it. The text then has two characters
//! and a gap in the word; they are combined into the visible letter.

use icu_normalizer::ComposingNormalizerBorrowed;

use super::text_runs::PositionedLetter;

/// The combining mark of an accent.
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

/// Whether an accent is above or below a letter, not next to it.
pub(super) fn is_over(accent: &PositionedLetter, letter: &PositionedLetter) -> bool {
    let shared = accent.x1.min(letter.x1) - accent.x0.max(letter.x0);
    let narrower = (accent.x1 - accent.x0).min(letter.x1 - letter.x0);
    narrower > 0.0 && shared > 0.5 * narrower
}

/// The letter with the mark, precomposed if possible; `None` if it is not a letter.
pub(super) fn accented(letter: char, mark: char) -> Option<String> {
    // Accents replace the dot.
    let letter = match letter {
        'ı' => 'i',
        'ȷ' => 'j',
        other => other,
    };
    let two = String::from_iter([letter, mark]);
    letter.is_alphabetic().then(|| ComposingNormalizerBorrowed::new_nfc().normalize(&two).into_owned())
}
