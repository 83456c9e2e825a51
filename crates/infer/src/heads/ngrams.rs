//! Hashed n-gram features: word unigrams and bigrams, or character n-grams within words.

use super::fnv::Fnv;

/// Length of the counted prefix. Models read less than this; it bounds the time for very long texts.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// Kinds of n-grams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NgramKind {
    /// Words and pairs of adjacent words. Every character that is not a letter, digit or space is a separate word,
    /// because a question mark is informative.
    Words,
    /// Sequences of two to four characters within words; word boundaries count as spaces. They are robust against
    /// typos.
    Chars,
}

/// The n-grams of one text: the hash bucket of each, ascending, and 1 + ln of its count.
///
/// Feature hashing makes a dictionary unnecessary. Collisions are rare and harmless.
pub(super) type NgramCounts = Vec<(u16, f32)>;

impl NgramKind {
    pub(super) fn count(self, text: &str) -> NgramCounts {
        let text = text[..text.floor_char_boundary(MAX_TEXT_BYTES)].to_lowercase();
        let mut buckets = match self {
            NgramKind::Words => words(&text),
            NgramKind::Chars => chars(&text),
        };
        buckets.sort_unstable();
        let runs = buckets.chunk_by(|one, other| one == other);
        runs.map(|run| (run[0], 1.0 + (run.len() as f32).ln())).collect()
    }
}

fn words(text: &str) -> Vec<u16> {
    let words = split_words(text);
    let single = words.iter().map(|word| bucket(word));
    let pairs =
        words.windows(2).map(|pair| Fnv::new().with(pair[0].as_bytes()).with(b" ").with(pair[1].as_bytes()).folded());
    single.chain(pairs).collect()
}

fn split_words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first.is_alphanumeric() {
            true => rest.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (word, after) = rest.split_at(length);
        if !first.is_whitespace() {
            words.push(word);
        }
        rest = after;
    }
    words
}

fn chars(text: &str) -> Vec<u16> {
    let mut buckets = Vec::new();
    let mut padded = String::new();
    let mut starts = Vec::new();
    for word in text.split_whitespace() {
        padded.clear();
        padded.extend([" ", word, " "]);
        starts.clear();
        starts.extend(padded.char_indices().map(|(start, _)| start).chain([padded.len()]));
        for order in 2..=4 {
            buckets.extend(starts.windows(order + 1).map(|run| bucket(&padded[run[0]..run[order]])));
        }
    }
    buckets
}

fn bucket(piece: &str) -> u16 {
    Fnv::new().with(piece.as_bytes()).folded()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(grams: NgramKind, text: &str, pieces: &[(&str, u32)]) {
        let mut expected: NgramCounts =
            pieces.iter().map(|(piece, times)| (bucket(piece), 1.0 + (*times as f32).ln())).collect();
        expected.sort_by_key(|(bucket, _)| *bucket);
        assert_eq!(grams.count(text), expected, "{text}");
    }

    #[test]
    fn words_and_their_pairs_are_counted() {
        check(
            NgramKind::Words,
            "What's  up, UP?",
            &[
                ("what", 1),
                ("'", 1),
                ("s", 1),
                ("up", 2),
                (",", 1),
                ("?", 1),
                ("what '", 1),
                ("' s", 1),
                ("s up", 1),
                ("up ,", 1),
                (", up", 1),
                ("up ?", 1),
            ],
        );
    }

    #[test]
    fn letters_of_every_script_make_words() {
        check(NgramKind::Words, "Größe Ω3", &[("größe", 1), ("ω3", 1), ("größe ω3", 1)]);
    }

    #[test]
    fn runs_of_letters_stay_inside_words() {
        check(
            NgramKind::Chars,
            "a Né",
            &[(" a", 1), ("a ", 1), (" a ", 1), (" n", 1), ("né", 1), ("é ", 1), (" né", 1), ("né ", 1), (" né ", 1)],
        );
    }

    #[test]
    fn an_empty_text_has_no_pieces() {
        check(NgramKind::Words, " \n", &[]);
        check(NgramKind::Chars, "", &[]);
    }

    #[test]
    fn the_end_of_a_book_is_not_read() {
        let book = "ö".repeat(MAX_TEXT_BYTES);
        assert_eq!(NgramKind::Words.count(&book), NgramKind::Words.count(&book[..MAX_TEXT_BYTES]));
    }
}
