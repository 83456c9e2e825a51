//! Bidirectional text: converts visual order to logical order.

use unicode_bidi::{BidiClass, BidiInfo, Level, bidi_class};

/// Whether a letter is right-to-left.
pub(super) fn is_right_to_left(letter: char) -> bool {
    letter >= '\u{590}' && matches!(bidi_class(letter), BidiClass::R | BidiClass::AL)
}

/// Puts pieces of a line, given in visual order, into logical order.
///
/// The display rules reverse every run of right-to-left letters. Applying them again reverts this, so the same
/// algorithm works here, given the base direction of the line: it is that of most of its letters.
pub(super) fn logical(pieces: &[&str]) -> String {
    let (mut right, mut left) = (0, 0);
    for letter in pieces.iter().flat_map(|piece| piece.chars()) {
        match bidi_class(letter) {
            BidiClass::R | BidiClass::AL => right += 1,
            BidiClass::L => left += 1,
            _ => {}
        }
    }
    let base = if right >= left { Level::rtl() } else { Level::ltr() };
    let seen: String = pieces.concat();
    let info = BidiInfo::new(&seen, Some(base));
    let mut levels = Vec::with_capacity(pieces.len());
    let mut at = 0;
    for piece in pieces {
        levels.push(info.levels.get(at).copied().unwrap_or(base));
        at += piece.len();
    }
    let order = BidiInfo::reorder_visual(&levels);
    let mut read = String::with_capacity(seen.len());
    for index in order {
        let piece = pieces[index];
        match (levels[index].is_rtl(), mirrored(piece)) {
            (true, Some(mirror)) => read.push(mirror),
            _ => read.push_str(piece),
        }
    }
    read
}

/// Brackets in right-to-left text are mirrored.
fn mirrored(piece: &str) -> Option<char> {
    Some(match piece {
        "(" => ')',
        ")" => '(',
        "[" => ']',
        "]" => '[',
        "{" => '}',
        "}" => '{',
        "<" => '>',
        ">" => '<',
        "«" => '»',
        "»" => '«',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(seen: &str, read: &str) {
        let pieces: Vec<String> = seen.chars().map(String::from).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        assert_eq!(logical(&pieces), read);
    }

    #[test]
    fn right_to_left_letters_are_turned_around() {
        check("םלוע םולש", "שלום עולם");
    }

    #[test]
    fn numbers_and_latin_words_in_right_to_left_text_keep_their_order() {
        check("2024 תנשב", "בשנת 2024");
        check("Rust תונכתה תפש", "שפת התכנות Rust");
    }

    #[test]
    fn a_right_to_left_word_in_latin_text_is_turned_alone() {
        check("the word םולש here", "the word שלום here");
    }

    #[test]
    fn brackets_keep_their_sense() {
        check("(םלוע) םולש", "שלום (עולם)");
    }
}
