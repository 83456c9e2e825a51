//! Whatever case letters are in, on every server.
//!
//! What PostgreSQL takes for a small letter depends on its version, on what it was built with, and on the database: some
//! know English letters alone. But only the letters that are looked for matter, and their capitals are few. So the server
//! is told which to read as which.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What is looked for in small letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Needle {
    pub(super) text: String,
    /// Letters that are read as others, beyond English ones.
    pub(super) capitals: String,
    /// The others, one for each.
    pub(super) small: String,
}

/// The one letter that becomes two when it is small, and these two.
pub(super) const LONG: (&str, &str) = ("İ", "i\u{307}");

/// Behind this one there are no letters that have two cases.
const LAST: char = '\u{1ffff}';

/// All letters that become another one, by that.
static CAPITALS: LazyLock<HashMap<char, Vec<char>>> = LazyLock::new(|| {
    let mut capitals = HashMap::<char, Vec<char>>::new();
    for capital in '\u{80}'..=LAST {
        let mut small = capital.to_lowercase();
        if let (Some(small), None) = (small.next(), small.next())
            && small != capital
        {
            capitals.entry(small).or_default().push(capital);
        }
    }
    // At the end of a word it is another small letter; both are one here.
    capitals.entry('σ').or_default().push('ς');
    capitals
});

impl Needle {
    /// None if nothing can have it in it, as the server's texts have no zeros.
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
            for capital in CAPITALS.get(&letter).into_iter().flatten() {
                capitals.push(*capital);
                small.push(letter);
            }
        }
        Some(Needle { text, capitals, small })
    }
}

/// Whether a text has the needle in it: an expression over parameters with its three parts.
pub(super) fn has(text: &str, [needle, capitals, small]: [&str; 3]) -> String {
    let (long, short) = LONG;
    // English ones by the server, as that is quicker.
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
        assert_eq!(needle, Needle { text: "äk".into(), capitals: "\u{212a}Ä".into(), small: "kä".into() });
    }

    #[test]
    fn a_letter_at_the_end_of_a_word_is_the_same_as_elsewhere() {
        let needle = Needle::of("ΟΔΟΣ").unwrap();
        assert_eq!(needle.text, "οδοσ");
        assert!(needle.capitals.contains('ς') && needle.capitals.contains('Σ'));
        assert_eq!(needle.capitals.chars().count(), needle.small.chars().count());
    }

    #[test]
    fn nothing_has_a_zero_in_it() {
        assert_eq!(Needle::of("a\0"), None);
    }
}
