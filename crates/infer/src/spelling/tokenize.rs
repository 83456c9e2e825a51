//! Tokenizer: the parts of a text that could be words. Numbers, addresses and code are skipped.

use std::ops::Range;

/// Characters allowed before the first word and after the last word of a run without spaces.
const OPENING: [char; 9] = ['(', '[', '"', '\'', '“', '‘', '«', '¿', '¡'];
const CLOSING: [char; 14] = ['.', ',', ';', ':', '!', '?', ')', ']', '"', '\'', '”', '’', '»', '…'];
/// Separators allowed between words without a space. A dot is not, because of addresses and file names.
const BETWEEN: [char; 7] = ['-', '–', '—', ',', ';', '!', '?'];
/// Ends of sentences, after which a word starts with a capital.
const FINAL: [char; 4] = ['.', '!', '?', ':'];

/// A run of letters with inner apostrophes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// Byte range in the text.
    pub(super) range: Range<usize>,
    /// In lower case, with straight apostrophes.
    pub(super) letters: Vec<char>,
    /// Exactly one space separates it from the previous piece.
    pub(super) follows_a_space: bool,
    /// A non-word is between it and the previous piece.
    pub(super) follows_a_gap: bool,
    /// It has a capital that is not explained by the start of a sentence.
    pub(super) is_name: bool,
}

pub(super) fn tokenize(text: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let is_shouted = !text.contains(char::is_lowercase);
    let (mut follows_a_gap, mut begins_a_sentence) = (false, true);
    for run in text.split_whitespace() {
        let opened = run.trim_start_matches(OPENING);
        let core = opened.trim_end_matches(CLOSING);
        let mut rest = core;
        if !core.chars().all(|letter| is_of_word(letter) || BETWEEN.contains(&letter)) {
            (follows_a_gap, rest) = (true, "");
        }
        while let Some(start) = rest.find(char::is_alphabetic) {
            rest = &rest[start..];
            let end = rest.find(|letter| !is_of_word(letter)).unwrap_or(rest.len());
            let word = rest[..end].trim_end_matches(['\'', '’']);
            rest = &rest[end..];
            let capitals = word.chars().filter(|letter| letter.is_uppercase()).count();
            let letters: Option<Vec<char>> = word.chars().map(to_lower).collect();
            let Some(letters) = letters.filter(|_| capitals == 0 || !is_camel_case(word)) else {
                follows_a_gap = true;
                continue;
            };
            let start = word.as_ptr().addr() - text.as_ptr().addr();
            let range = start..start + word.len();
            let between = pieces.last().map(|last| &text[last.range.end..range.start]);
            pieces.push(Piece {
                follows_a_space: between == Some(" "),
                follows_a_gap,
                is_name: !is_shouted && capitals > usize::from(begins_a_sentence),
                letters,
                range,
            });
            (follows_a_gap, begins_a_sentence) = (false, false);
        }
        begins_a_sentence |= opened[core.len()..].contains(FINAL);
    }
    pieces
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphabetic() || matches!(letter, '\'' | '’')
}

fn is_camel_case(word: &str) -> bool {
    word.chars().zip(word.chars().skip(1)).any(|(one, other)| one.is_lowercase() && other.is_uppercase())
}

/// `None` for the few letters with a multi-letter lowercase form.
fn to_lower(letter: char) -> Option<char> {
    if letter.is_ascii() {
        return Some(letter.to_ascii_lowercase());
    }
    let mut lower = if letter == '’' { '\'' } else { letter }.to_lowercase();
    lower.next().filter(|_| lower.next().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let pieces = tokenize(text);
        let found: Vec<&str> = pieces.iter().map(|piece| &text[piece.range.clone()]).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn words_are_read_without_what_is_around_them() {
        check("\"What's up,\" (he) said... don’t!", &["What's", "up", "he", "said", "don’t"]);
        check("carry-on,please 'rock 'n' roll'", &["carry", "on", "please", "rock", "n", "roll"]);
        check("Größe Ωμέγα  l'été", &["Größe", "Ωμέγα", "l'été"]);
    }

    #[test]
    fn what_is_no_word_is_passed_over() {
        for text in [
            "https://example.com/adress",
            "me@example.com",
            "main.rs",
            "snake_case",
            "fn()",
            "x=y",
            "3rd",
            "b2b",
            "$5",
            "--verbose=1",
            "#tag",
            "C:\\dir",
            "`ls`",
            "camelCase",
            "iPhone",
            "e\u{301}te",
            "İl",
            "'",
            "…",
            "",
        ] {
            check(text, &[]);
        }
    }

    #[test]
    fn letters_are_lower_case_and_apostrophes_straight() {
        assert_eq!(tokenize("DON’T")[0].letters, ['d', 'o', 'n', '\'', 't']);
    }

    #[test]
    fn names_have_a_capital_that_nothing_explains() {
        let names = |text: &str| -> Vec<bool> { tokenize(text).iter().map(|piece| piece.is_name).collect() };
        assert_eq!(names("Tell Anna. She is in the EU"), [false, true, false, false, false, false, true]);
        assert_eq!(names("NASA called"), [true, false]);
        assert_eq!(names("HELP ME"), [false, false]);
    }

    #[test]
    fn it_is_known_what_lies_before_a_piece() {
        let before = |text: &str| -> Vec<(bool, bool)> {
            tokenize(text).iter().map(|piece| (piece.follows_a_space, piece.follows_a_gap)).collect()
        };
        assert_eq!(before("in the"), [(false, false), (true, false)]);
        assert_eq!(before("in, the"), [(false, false), (false, false)]);
        assert_eq!(before("in  the"), [(false, false), (false, false)]);
        assert_eq!(before("7 in 3 the"), [(false, true), (false, true)]);
    }

    proptest! {
        #[test]
        fn pieces_lie_in_their_text_in_order(text in ".{0,80}") {
            let mut end = 0;
            for piece in tokenize(&text) {
                prop_assert!(piece.range.start >= end && !piece.letters.is_empty());
                prop_assert_eq!(text[piece.range.clone()].chars().count(), piece.letters.len());
                end = piece.range.end;
            }
        }
    }
}
