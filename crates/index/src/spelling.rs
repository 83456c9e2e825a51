//! Spelling correction of query words that no chunk contains: they are replaced by the nearest known words.
//!
//! The whole dictionary is scanned, at a few nanoseconds per term, and only if a query has such a word. Names and
//! numbers such as `RFC2616` are not corrected: the nearest one is a different name.

use crate::inverted_index::InvertedIndex;
use crate::query_terms::QueryTerm;
use foldhash::HashMap;

/// Shorter words are near too many terms.
const MIN_WORD_LEN: usize = 5;
/// Words of at least this length may have two edits.
const TWO_EDITS_MIN_LEN: usize = 8;
/// Longer tokens are not natural words.
const MAX_WORD_LEN: usize = 32;
/// Maximum number of corrected words per query.
const MAX_CORRECTED_WORDS: usize = 8;
/// Maximum number of corrections per word.
const MAX_CORRECTIONS: usize = 3;

/// Replaces unknown words with their most likely corrections.
pub(crate) fn correct(terms: &mut [QueryTerm], parts: &[&InvertedIndex]) {
    let is_known = |form: &str| parts.iter().any(|words| words.dictionary.find(form.as_bytes()).is_some());
    for at in unknown_words(terms, is_known) {
        let dictionaries = parts.iter().map(|words| &words.dictionary);
        let known = dictionaries.flat_map(|dictionary| {
            (0..dictionary.len()).map(|at| (dictionary.term(at), u64::from(dictionary.document_frequencies[at])))
        });
        let meant = nearest_words(&terms[at].forms, known);
        terms[at].replace_forms(meant);
    }
}

/// Positions of the words that may be misspelt because the corpus contains none of their forms.
pub(crate) fn unknown_words(terms: &[QueryTerm], is_known: impl Fn(&str) -> bool) -> Vec<usize> {
    let unknown =
        terms.iter().enumerate().filter(|(_, term)| !term.is_extra && !term.forms.iter().any(|form| is_known(form)));
    let words = unknown.filter(|(_, term)| term.forms.iter().all(|form| is_word(form)));
    words.map(|(at, _)| at).take(MAX_CORRECTED_WORDS).collect()
}

/// Whether it may be misspelt, or be a correction.
pub(crate) fn is_word(form: &str) -> bool {
    (MIN_WORD_LEN..=MAX_WORD_LEN).contains(&form.chars().count()) && form.chars().all(char::is_alphabetic)
}

/// Maximum edit distance of a word.
pub(crate) fn max_distance(form: &str) -> usize {
    if form.chars().count() < TWO_EDITS_MIN_LEN { 1 } else { 2 }
}

/// The nearest known words to any of the forms: first by edit distance, then by frequency. `known` has words with
/// their document frequency; the counts of repeated words are added up.
pub(crate) fn nearest_words<'a>(forms: &[String], known: impl Iterator<Item = (&'a [u8], u64)>) -> Vec<String> {
    let wanted: Vec<TypedWord> = forms.iter().map(|form| TypedWord::new(form)).collect();
    let mut found: HashMap<&str, (usize, u64)> = HashMap::default();
    for (term, having) in known {
        let signs = byte_signature(term);
        let near = wanted.iter().filter(|wanted| wanted.may_match(term, signs));
        let Some(wrong) = near.filter_map(|wanted| wanted.distance(term)).min() else { continue };
        if let Ok(term) = std::str::from_utf8(term) {
            let (fewest, count) = found.entry(term).or_insert((wrong, 0));
            *fewest = wrong.min(*fewest);
            *count += having;
        }
    }
    let fewest = found.values().map(|(wrong, _)| *wrong).min();
    let mut found: Vec<(&str, u64)> = found
        .into_iter()
        .filter(|(_, (wrong, _))| Some(*wrong) == fewest)
        .map(|(term, (_, count))| (term, count))
        .collect();
    found.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    found.into_iter().take(MAX_CORRECTIONS).map(|(term, _)| term.to_owned()).collect()
}

/// A word as typed.
struct TypedWord<'a> {
    form: &'a str,
    signature: u64,
    /// Maximum edit distance.
    max_distance: usize,
}

impl TypedWord<'_> {
    fn new(form: &str) -> TypedWord<'_> {
        TypedWord { form, signature: byte_signature(form.as_bytes()), max_distance: max_distance(form) }
    }

    /// Cheap prefilter before the edit distance. A letter has up to four bytes, and each missing, extra or substituted
    /// letter changes at most two signature bits per byte.
    fn may_match(&self, term: &[u8], signs: u64) -> bool {
        let letters = 4 * self.max_distance;
        let is_plain = term.is_ascii() && self.form.is_ascii();
        let (longer, differing) =
            (term.len().abs_diff(self.form.len()), (signs ^ self.signature).count_ones() as usize);
        if is_plain {
            longer <= self.max_distance && differing <= 2 * self.max_distance
        } else {
            longer <= letters && differing <= 2 * letters
        }
    }

    /// Optimal string alignment distance: substituted, missing, extra or transposed letters. `None` if it is too
    /// large.
    fn distance(&self, term: &[u8]) -> Option<usize> {
        let term = std::str::from_utf8(term).ok().filter(|term| is_word(term))?;
        Some(strsim::osa_distance(self.form, term)).filter(|wrong| *wrong <= self.max_distance)
    }
}

/// Byte signature of a word: each byte sets one of 64 bits.
fn byte_signature(term: &[u8]) -> u64 {
    term.iter().fold(0, |signs, byte| signs | 1 << (byte & 63))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inverted_index::Builder;
    use proptest::prelude::*;

    fn words(texts: &[&str]) -> InvertedIndex {
        let mut builder = Builder::default();
        texts.iter().for_each(|text| builder.add_chunk(text, "", None));
        builder.finish()
    }

    fn mended(query: &str, texts: &[&str]) -> Vec<String> {
        let mut terms = vec![QueryTerm::of_form(query)];
        correct(&mut terms, &[&words(texts)]);
        assert_eq!(terms[0].is_correction, terms[0].forms != [query]);
        terms[0].forms.clone()
    }

    #[test]
    fn a_word_with_a_wrong_letter_is_the_one_that_was_meant() {
        let texts = ["the invoice of the cathedral", "an invoice"];
        for typed in ["invoic", "invice", "invocie", "inboice", "iinvoice"] {
            assert_eq!(mended(typed, &texts), ["invoice"], "{typed}");
        }
        assert_eq!(mended("catehdarl", &texts), ["cathedral"]);
        assert_eq!(mended("straße", &["die strasze", "strase"]), ["strase"]);
    }

    #[test]
    fn what_is_known_short_or_far_from_everything_stays() {
        let texts = ["the invoice of the cathedral was cast in 1912"];
        for typed in ["cast", "invoice", "cats", "inv", "harbour", "19123", "rfc2616", "incoming"] {
            assert_eq!(mended(typed, &texts), [typed]);
        }
    }

    #[test]
    fn of_words_as_near_the_most_frequent_are_meant() {
        let texts = ["birds binds", "birds", "birds binds", "bonds birts"];
        assert_eq!(mended("bimds", &texts), ["birds", "binds"]);
        assert_eq!(mended("birxs", &texts), ["birds", "birts"]);
    }

    proptest! {
        /// The prefilter by length and signature drops no near word.
        #[test]
        fn every_word_is_compared_that_is_near(typed in "[a-dß東]{5,10}", other in "[a-dß東]{5,10}") {
            let wanted = TypedWord::new(&typed);
            let is_near = strsim::osa_distance(&typed, &other) <= wanted.max_distance;
            prop_assert!(!is_near || wanted.may_match(other.as_bytes(), byte_signature(other.as_bytes())));
        }
    }
}
