//! Tokenizer: text to terms.
//!
//! Words follow the Unicode word boundaries, in lower case, stemmed and without accents. Compounds such as `foo_bar`,
//! `v1.2` or `RFC-9110` give their parts and also the whole without punctuation, so that `RFC 9110`, `rfc9110` and
//! `RFC-9110` match each other. Scripts without spaces give bigrams.

use crate::language::Language;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use std::borrow::Cow;
use unicode_segmentation::UnicodeSegmentation;

/// Token type, which determines its processing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// Letters: stemmed.
    Word,
    /// Numbers, symbols, emoji: not stemmed.
    Code,
    /// A compound, emitted in addition to its parts.
    Compound,
    /// A letter of a script without spaces. Documents have them in addition to bigrams, so that single letters match.
    Letter,
    /// Two adjacent such letters.
    Bigram,
}

/// Longer terms are truncated: they are never typed and would fill the dictionary.
const MAX_TERM_BYTES: usize = 64;
/// A compound of more parts is a list.
const MAX_COMPOUND_PARTS: usize = 8;

/// Calls `emit` for each token: lower case, not stemmed, with accents.
pub(crate) fn tokenize(text: &str, mut emit: impl FnMut(&str, TokenKind)) {
    let text =
        if text.is_ascii() { Cow::Borrowed(text) } else { ComposingNormalizerBorrowed::new_nfkc().normalize(text) };
    // The span of the current compound, and the end of punctuation that may join it with the next word.
    let mut name: Option<(usize, usize)> = None;
    let mut joint: Option<usize> = None;
    let mut run: Option<(usize, usize)> = None;
    for (at, piece) in text.split_word_bound_indices() {
        let end = at + piece.len();
        let first = piece.chars().next().unwrap_or(' ');
        if is_unspaced(first) {
            flush_compound(&text, &mut name, &mut emit);
            run = match run {
                Some((from, to)) if to == at => Some((from, end)),
                other => {
                    flush_run(&text, other, &mut emit);
                    Some((at, end))
                }
            };
            continue;
        }
        flush_run(&text, run.take(), &mut emit);
        if piece.chars().any(char::is_alphanumeric) {
            name = match name {
                Some((from, _)) if joint == Some(at) => Some((from, end)),
                _ => {
                    flush_compound(&text, &mut name, &mut emit);
                    Some((at, end))
                }
            };
        } else if is_joiner(piece) && name.is_some_and(|(_, to)| to == at) {
            joint = Some(end);
        } else {
            flush_compound(&text, &mut name, &mut emit);
            if is_emoji(first) {
                emit(&piece[..first.len_utf8()], TokenKind::Code);
            }
        }
    }
    flush_compound(&text, &mut name, &mut emit);
    flush_run(&text, run, &mut emit);
}

/// The dictionary term of a token.
pub(crate) fn to_term(token: &str, kind: TokenKind, language: Option<Language>) -> String {
    let stemmed = match language {
        Some(language) if kind == TokenKind::Word => language.stem(token),
        _ => Cow::Borrowed(token),
    };
    fold(&stemmed)
}

/// Removes accents and truncates long words.
pub(crate) fn fold(word: &str) -> String {
    let word = &word[..word.floor_char_boundary(MAX_TERM_BYTES)];
    // Other scripts use combining marks as part of distinct letters.
    if word.is_ascii() || !word.chars().all(|letter| matches!(letter, ..'\u{590}' | '\u{1e00}'..'\u{2000}')) {
        return word.to_owned();
    }
    let mut folded = String::with_capacity(word.len());
    for letter in DecomposingNormalizerBorrowed::new_nfkd().normalize(word).chars() {
        match letter {
            '\u{300}'..='\u{36f}' => {}
            'ß' => folded.push_str("ss"),
            'æ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            'ø' => folded.push('o'),
            'đ' | 'ð' => folded.push('d'),
            'ł' => folded.push('l'),
            'ı' => folded.push('i'),
            'þ' => folded.push_str("th"),
            other => folded.push(other),
        }
    }
    folded
}

fn flush_run(text: &str, run: Option<(usize, usize)>, emit: &mut impl FnMut(&str, TokenKind)) {
    let Some((from, to)) = run else { return };
    let run = &text[from..to];
    let mut last: Option<usize> = None;
    for (at, letter) in run.char_indices() {
        let end = at + letter.len_utf8();
        emit(&run[at..end], TokenKind::Letter);
        if let Some(last) = last {
            emit(&run[last..end], TokenKind::Bigram);
        }
        last = Some(at);
    }
}

fn flush_compound(text: &str, name: &mut Option<(usize, usize)>, emit: &mut impl FnMut(&str, TokenKind)) {
    let Some((from, to)) = name.take() else { return };
    let name = &text[from..to];
    if name.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return emit(name, TokenKind::Word);
    }
    let parts = compound_parts(name);
    for part in &parts {
        let kind = if part.starts_with(|sign: char| sign.is_numeric()) { TokenKind::Code } else { TokenKind::Word };
        emit(&part.to_lowercase().replace(',', ""), kind);
    }
    let is_name = (2..=MAX_COMPOUND_PARTS).contains(&parts.len()) && !name.contains(['\'', '’']);
    if is_name {
        let mut whole = String::with_capacity(name.len());
        for part in &parts {
            whole.extend(part.chars().filter(|sign| *sign != ',').flat_map(char::to_lowercase));
        }
        emit(&whole, TokenKind::Compound);
    }
}

/// The parts of a compound: split at punctuation, between letters and digits, and before capitals. `1.2` and `3,000`
/// are one part.
fn compound_parts(name: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut from: Option<usize> = None;
    let mut last = ' ';
    for (at, letter) in name.char_indices() {
        let rest = &name[at + letter.len_utf8()..];
        if !letter.is_alphanumeric() && !is_mark(letter) {
            let next_is_digit = rest.starts_with(char::is_numeric);
            let thousands = rest.bytes().take_while(u8::is_ascii_digit).count() == 3;
            let stays = last.is_numeric() && ((letter == '.' && next_is_digit) || (letter == ',' && thousands));
            if !stays && let Some(start) = from.take() {
                parts.push(&name[start..at]);
            }
            // Punctuation inside a number does not end it.
            if !stays {
                last = letter;
            }
            continue;
        }
        let begins = from.is_none_or(|_| {
            (last.is_numeric() != letter.is_numeric() && !is_mark(letter))
                || (last.is_lowercase() && letter.is_uppercase())
        });
        if begins {
            if let Some(start) = from {
                parts.push(&name[start..at]);
            }
            from = Some(at);
        }
        if !is_mark(letter) {
            last = letter;
        }
    }
    if let Some(start) = from {
        parts.push(&name[start..]);
    }
    parts.iter_mut().for_each(|part| *part = part.trim_end_matches(['.', ',']));
    parts.retain(|part| !part.is_empty());
    parts
}

/// Punctuation that joins the parts of a compound.
fn is_joiner(piece: &str) -> bool {
    matches!(piece, "-" | "_" | "." | "/" | "@" | ":" | "+" | "#" | "&" | "\u{2010}" | "\u{2011}" | "'" | "’")
}

/// Belongs to the preceding letter.
fn is_mark(letter: char) -> bool {
    !letter.is_ascii() && !letter.is_alphanumeric() && !letter.is_ascii_punctuation() && !is_sign(letter)
}

fn is_sign(letter: char) -> bool {
    matches!(letter, '\u{80}'..='\u{bf}' | '\u{2000}'..='\u{200b}' | '\u{200e}'..='\u{206f}' | '\u{3000}'..='\u{303f}')
}

/// Scripts without spaces between words, and Hangul, where endings are attached to words.
fn is_unspaced(letter: char) -> bool {
    matches!(letter,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{1100}'..='\u{11ff}'
        | '\u{3041}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
        && letter.is_alphanumeric()
}

fn is_emoji(letter: char) -> bool {
    matches!(letter, '\u{1f000}'..='\u{1faff}' | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        tokenize(text, |token, kind| all.push(to_term(token, kind, Some(Language::ENGLISH))));
        all
    }

    #[test]
    fn names_are_found_whole_and_by_their_parts() {
        for (text, terms) in [
            ("Running dogs", vec!["run", "dog"]),
            ("foo_bar", vec!["foo", "bar", "foobar"]),
            ("v1.2", vec!["v", "1.2", "v1.2"]),
            ("RFC-9110", vec!["rfc", "9110", "rfc9110"]),
            ("RFC9110.", vec!["rfc", "9110", "rfc9110"]),
            ("parseHttp", vec!["pars", "http", "parsehttp"]),
            ("3,000 or 1,2", vec!["3000", "or", "1", "2", "12"]),
            ("don't", vec!["don", "t"]),
            ("a -- b", vec!["a", "b"]),
            ("me@example.com", vec!["me", "exampl", "com", "meexamplecom"]),
            ("Café naïve", vec!["cafe", "naiv"]),
            ("🚀 go", vec!["🚀", "go"]),
            ("", vec![]),
        ] {
            assert_eq!(read(text), terms, "{text}");
        }
    }

    #[test]
    fn scripts_without_spaces_give_letters_and_pairs() {
        assert_eq!(read("東京都"), ["東", "京", "東京", "都", "京都"]);
    }

    #[test]
    fn long_words_are_cut() {
        let long = "x".repeat(100_000);
        assert!(read(&long).iter().all(|term| term.len() <= MAX_TERM_BYTES));
    }
}
