//! Case-insensitive substring search that behaves the same on every server.
//!
//! PostgreSQL's `lower` depends on its version, its build and the database collation; some only handle ASCII. The
//! search therefore passes the upper-case variants of the characters in the needle to the server, which maps them with
//! `translate`.

use std::collections::HashMap;
use std::sync::LazyLock;

/// A lower-case search string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Needle {
    pub(super) text: String,
    /// Non-ASCII characters to map to lower case.
    pub(super) uppercase: String,
    /// The lower-case character for each of them.
    pub(super) lowercase: String,
}

/// The only character that has two characters in lower case, and these two.
pub(super) const DOTTED_CAPITAL_I: (&str, &str) = ("İ", "i\u{307}");

/// No character above this one has two cases.
const LAST_CASED_CHAR: char = '\u{1ffff}';

/// All characters with a single-character lower case, by that lower case.
static UPPERCASE_VARIANTS: LazyLock<HashMap<char, Vec<char>>> = LazyLock::new(|| {
    let mut capitals = HashMap::<char, Vec<char>>::new();
    for capital in '\u{80}'..=LAST_CASED_CHAR {
        let mut small = capital.to_lowercase();
        if let (Some(small), None) = (small.next(), small.next())
            && small != capital
        {
            capitals.entry(small).or_default().push(capital);
        }
    }
    // Final sigma is a different lower-case character; both are treated as equal.
    capitals.entry('σ').or_default().push('ς');
    capitals
});

impl Needle {
    /// None if no text can match: PostgreSQL text contains no NUL.
    pub(super) fn of(text: &str) -> Option<Needle> {
        if text.contains('\0') {
            return None;
        }
        let text = text.to_lowercase().replace('ς', "σ");
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters.dedup();
        let (mut capitals, mut small) = (String::new(), String::new());
        for letter in letters {
            for capital in UPPERCASE_VARIANTS.get(&letter).into_iter().flatten() {
                capitals.push(*capital);
                small.push(letter);
            }
        }
        Some(Needle { text, uppercase: capitals, lowercase: small })
    }
}

/// SQL expression: whether a text contains the needle. Takes the parameters of its three parts.
pub(super) fn contains_sql(text: &str, [needle, capitals, small]: [&str; 3]) -> String {
    let (long, short) = DOTTED_CAPITAL_I;
    // The server maps ASCII, because that is faster.
    format!(
        "strpos(translate(lower(replace({text}, '{long}', '{short}') COLLATE \"C\"), {capitals}, {small}), {needle}) > 0"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_of_what_is_looked_for_are_read_as_small_letters() {
        let needle = Needle::of("Äk").unwrap();
        assert_eq!(needle, Needle { text: "äk".into(), uppercase: "\u{212a}Ä".into(), lowercase: "kä".into() });
    }

    #[test]
    fn a_letter_at_the_end_of_a_word_is_the_same_as_elsewhere() {
        let needle = Needle::of("ΟΔΟΣ").unwrap();
        assert_eq!(needle.text, "οδοσ");
        assert!(needle.uppercase.contains('ς') && needle.uppercase.contains('Σ'));
        assert_eq!(needle.uppercase.chars().count(), needle.lowercase.chars().count());
    }

    #[test]
    fn nothing_has_a_zero_in_it() {
        assert_eq!(Needle::of("a\0"), None);
    }
}
