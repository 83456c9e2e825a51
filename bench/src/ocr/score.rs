//! Character error rate.

/// The share of characters that are wrong, missing or extra, in order.
///
/// Whitespace is normalized to one space, and the forms of quotes and dashes to one form: the drawn form depends on the
/// font.
pub(super) fn character_error(found: &str, reference: &str) -> f64 {
    let (found, reference) = (normalize(found), normalize(reference));
    if reference.is_empty() {
        return if found.is_empty() { 0.0 } else { 1.0 };
    }
    edit_distance(&found, &reference) as f64 / reference.len() as f64
}

fn normalize(text: &str) -> Vec<char> {
    let words: Vec<&str> = text.split_whitespace().collect();
    words
        .join(" ")
        .chars()
        .map(|letter| match letter {
            '\u{2018}' | '\u{2019}' | '\u{b4}' | '`' => '\'',
            '\u{201c}' | '\u{201d}' | '\u{201e}' => '"',
            '\u{2010}'..='\u{2015}' => '-',
            other => other,
        })
        .collect()
}

/// Levenshtein distance.
fn edit_distance(from: &[char], to: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_error_is_one() {
        assert_eq!(character_error("page", "page"), 0.0);
        assert_eq!(character_error("pale", "page"), 0.25);
        assert_eq!(character_error("pge", "page"), 0.25);
        assert_eq!(character_error("paage", "page"), 0.25);
        assert_eq!(character_error("", "page"), 1.0);
    }

    #[test]
    fn the_order_counts_and_the_kind_of_space_does_not() {
        assert_eq!(character_error("one\n\n two", "one two"), 0.0);
        assert!(character_error("two one", "one two") > 0.5);
    }
}
