//! Text quality heuristics: real words versus noise.

/// Minimum characters of legible text. Less is a page number or a stamp on an image.
pub(crate) const MIN_CHARS: usize = 100;
/// Minimum share of letters, digits and spaces.
const MIN_WORD_CHAR_SHARE: f64 = 0.7;

/// This many repeated marks are leader dots, as in a table of contents, and carry no content.
const MIN_LEADER_RUN: usize = 4;

/// Whether extracted text is good enough, or OCR is needed (K-33).
pub fn is_legible(text: &str) -> bool {
    text.chars().count() >= MIN_CHARS && consists_of_words(text)
}

/// Whether a text consists of words, regardless of its length.
pub fn consists_of_words(text: &str) -> bool {
    let all = text.chars().count();
    let usual = |letter: char| letter.is_alphanumeric() || letter.is_whitespace();
    let (mut good, mut run, mut before) = (0, 0, None);
    for letter in text.chars() {
        run = if before == Some(letter) { run + 1 } else { 1 };
        before = Some(letter);
        good += match (usual(letter), run) {
            (true, _) => 1,
            (false, _) if !matches!(letter, '.' | '_' | '-' | '·') => 0,
            // Count the preceding marks too, now that they form a leader.
            (false, MIN_LEADER_RUN) => MIN_LEADER_RUN,
            (false, run) => usize::from(run > MIN_LEADER_RUN),
        };
    }
    all > 0 && good as f64 >= MIN_WORD_CHAR_SHARE * all as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k33_little_text_and_odd_text_is_not_legible() {
        assert!(is_legible(&"words and 12 numbers ".repeat(5)));
        assert!(!is_legible(&"words and 12 numbers ".repeat(4)));
        assert!(is_legible(&"слова и буквы ".repeat(10)));
        let odd = |letters: usize| format!("{}{}", "a".repeat(letters), "#".repeat(100 - letters));
        assert!(is_legible(&odd(70)) && !is_legible(&odd(69)));
        assert!(!is_legible(""));
    }

    #[test]
    fn leaders_in_a_table_of_contents_are_no_odd_text() {
        let line = format!("Introduction{}7\n", ".".repeat(60));
        assert!(is_legible(&line.repeat(3)));
        assert!(!is_legible(&"Intro...#?!..;".repeat(20)));
    }
}
