//! Extraction score: the shares of words and bigrams that two texts have in common.

use std::collections::HashMap;

/// Between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub(crate) struct F1 {
    pub(crate) words: f64,
    /// Adjacent pairs: they measure the order.
    pub(crate) bigrams: f64,
}

/// Compares the extracted text with the reference. `None` if the reference has no words.
pub(crate) fn f1(found: &str, reference: &str) -> Option<F1> {
    let (found, reference) = (words(found), words(reference));
    if reference.is_empty() {
        return None;
    }
    let pairs = |words: &[String]| -> Vec<(String, String)> {
        words.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
    };
    Some(F1 { words: overlap_f1(&found, &reference), bigrams: overlap_f1(&pairs(&found), &pairs(&reference)) })
}

/// In lower case, of letters and digits.
fn words(text: &str) -> Vec<String> {
    // PDFium marks a hyphenation at a line end with this character.
    let text = text.to_lowercase().replace('\u{2}', "");
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Multiset intersection.
fn overlap_f1<T: std::hash::Hash + Eq>(found: &[T], reference: &[T]) -> f64 {
    if found.is_empty() && reference.is_empty() {
        return 1.0;
    }
    let mut left: HashMap<&T, usize> = HashMap::new();
    for item in reference {
        *left.entry(item).or_default() += 1;
    }
    let mut common = 0;
    for item in found {
        if let Some(count) = left.get_mut(item).filter(|count| **count > 0) {
            *count -= 1;
            common += 1;
        }
    }
    2.0 * f64::from(common) / (found.len() + reference.len()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_one_and_nothing_is_zero() {
        assert_eq!(f1("One, two!", "one TWO"), Some(F1 { words: 1.0, bigrams: 1.0 }));
        assert_eq!(f1("", "one two"), Some(F1 { words: 0.0, bigrams: 0.0 }));
        assert_eq!(f1("one", " . "), None);
    }

    #[test]
    fn the_order_counts_for_pairs_alone() {
        assert_eq!(f1("two one", "one two"), Some(F1 { words: 1.0, bigrams: 0.0 }));
    }

    #[test]
    fn a_word_counts_as_often_as_it_is_there() {
        assert_eq!(f1("a a a", "a"), Some(F1 { words: 0.5, bigrams: 0.0 }));
        assert_eq!(f1("a", "a"), Some(F1 { words: 1.0, bigrams: 1.0 }));
    }
}
