//! Whether words were found, or what only looks like them.

/// Fewer characters than this are a page number or a stamp on a picture.
pub(crate) const FEWEST: usize = 100;
/// Text is made of letters, digits and spaces, at least to this share.
const SHARE: f64 = 0.7;

/// Whether a text is worth having, or a picture of it should be read instead (K-33).
pub fn is_legible(text: &str) -> bool {
    let all = text.chars().count();
    let usual = text.chars().filter(|letter| letter.is_alphanumeric() || letter.is_whitespace()).count();
    all >= FEWEST && usual as f64 >= SHARE * all as f64
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
}
