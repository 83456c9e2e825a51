//! Fuzzy lookup: selects the terms of a corpus that may be corrections of an unknown word.

use std::collections::BTreeMap;

use crate::spelling::{is_word, max_distance};

/// A form of a word that may be misspelt. A term is near if at most `most_wrong` letters are substituted, missing,
/// extra or transposed. All such terms have a length between `least_length` and `most_length`, and at most
/// `most_differing` of their [`term_signature`] bits differ:
///
/// ```sql
/// char_length(term) between least_length and most_length
///     and bit_count((signs # $signs)::bit(64)) <= most_differing
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FuzzyLookup {
    pub form: String,
    pub signature: i64,
    pub max_differing_bits: u32,
    /// In characters.
    pub min_length: u32,
    /// In characters.
    pub max_length: u32,
    pub max_distance: u32,
    /// Position of the word in the query. A word may have several forms.
    pub(super) word: usize,
}

/// A term that may be the correction of a misspelt word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FuzzyMatch {
    pub term: String,
    pub(super) word: usize,
}

/// The candidate terms within the edit distance, grouped in steps of rising distance. To fetch few lists, fetch them
/// step by step, and only for words that no earlier step has [corrected](super::ExternalQuery::is_corrected). A term occurs once
/// per word.
pub fn group_by_distance<'a>(unknown: &[FuzzyLookup], terms: impl Iterator<Item = &'a str>) -> Vec<Vec<FuzzyMatch>> {
    let mut wrong: BTreeMap<(usize, &str), u32> = BTreeMap::new();
    for term in terms {
        for misspelt in unknown {
            if let Some(letters) = misspelt.distance(term) {
                let fewest = wrong.entry((misspelt.word, term)).or_insert(letters);
                *fewest = letters.min(*fewest);
            }
        }
    }
    let mut steps: BTreeMap<u32, Vec<FuzzyMatch>> = BTreeMap::new();
    for ((word, term), letters) in wrong {
        steps.entry(letters).or_default().push(FuzzyMatch { term: term.to_owned(), word });
    }
    steps.into_values().collect()
}

/// Character signature of a term: each character sets one of 64 bits. It is 0 for terms that are never corrections,
/// such as numbers and short words, so that a store can skip them.
pub fn term_signature(term: &str) -> i64 {
    if is_word(term) { char_signature(term) } else { 0 }
}

fn char_signature(word: &str) -> i64 {
    word.chars().fold(0, |kinds, letter| kinds | 1 << (letter as u32 & 63))
}

// === impl Misspelt ===

impl FuzzyLookup {
    pub(super) fn new(form: &str, word: usize) -> FuzzyLookup {
        let (length, most_wrong) = (form.chars().count() as u32, max_distance(form) as u32);
        FuzzyLookup {
            form: form.to_owned(),
            signature: char_signature(form),
            // A substituted letter clears one bit and sets another.
            max_differing_bits: 2 * most_wrong,
            min_length: length.saturating_sub(most_wrong),
            max_length: length + most_wrong,
            max_distance: most_wrong,
            word,
        }
    }

    /// Cheap prefilter by length and signature, for stores that scan their terms themselves. [`group_by_distance`]
    /// computes the edit distance.
    pub fn may_match(&self, term: &str) -> bool {
        self.signature_matches(term_signature(term))
            && (self.min_length..=self.max_length).contains(&(term.chars().count() as u32))
    }

    /// Edit distance of a term, or `None` if it is too large.
    fn distance(&self, term: &str) -> Option<u32> {
        let wrong = self.may_match(term).then(|| strsim::osa_distance(&self.form, term) as u32);
        wrong.filter(|wrong| *wrong <= self.max_distance)
    }

    fn signature_matches(&self, signs: i64) -> bool {
        signs != 0 && (signs ^ self.signature).count_ones() <= self.max_differing_bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spelling;
    use proptest::prelude::*;

    proptest! {
        /// The prefilter by length and signature drops no near term.
        #[test]
        fn every_word_is_brought_that_is_near(typed in "[a-dßж東]{5,10}", other in "[a-dßж東1]{3,12}") {
            let known = std::iter::once((other.as_bytes(), 1));
            let is_near = !spelling::nearest_words(std::slice::from_ref(&typed), known).is_empty();
            prop_assert!(!is_near || FuzzyLookup::new(&typed, 0).may_match(&other));
        }
    }

    #[test]
    fn the_nearest_come_first_and_what_is_far_not_at_all() {
        let unknown =
            [FuzzyLookup::new("catehdral", 4), FuzzyLookup::new("catehdrals", 4), FuzzyLookup::new("paymnt", 7)];
        let terms = ["cathedral", "payment", "catehdrel", "cathedrals", "castle", "paymint", "catedrales"];
        let steps = group_by_distance(&unknown, terms.into_iter());
        let told =
            |step: &[FuzzyMatch]| step.iter().map(|close| format!("{} {}", close.word, close.term)).collect::<Vec<_>>();
        assert_eq!(steps.len(), 2);
        assert_eq!(told(&steps[0]), ["4 catehdrel", "4 cathedral", "4 cathedrals", "7 payment", "7 paymint"]);
        assert_eq!(told(&steps[1]), ["4 catedrales"]);
    }

    #[test]
    fn numbers_and_short_words_have_no_signs() {
        assert_eq!([term_signature("rfc2616"), term_signature("cats"), term_signature("")], [0; 3]);
        assert_eq!(term_signature("aabab"), (1 << ('a' as u32 & 63)) | (1 << ('b' as u32 & 63)));
        assert_ne!(term_signature("договор"), 0);
    }
}
