//! A query over external posting lists: its terms, and the lists it needs.

use super::{CorpusStats, FuzzyLookup, FuzzyMatch};
use crate::query::Mode;
use crate::query_terms::{self, QueryTerm};
use crate::spelling::{nearest_words, unknown_words};
use std::collections::BTreeSet;

/// The terms of a query, in all forms to look up.
#[derive(Debug, Clone)]
pub struct ExternalQuery {
    pub(super) mode: Mode,
    pub(super) terms: Vec<QueryTerm>,
}

// === impl Asked ===

impl ExternalQuery {
    /// `sums` are the statistics of the whole corpus: its languages decide how words are stemmed.
    pub fn new(text: &str, mode: Mode, sums: &CorpusStats) -> ExternalQuery {
        let terms = match mode {
            Mode::Vectors => Vec::new(),
            Mode::Hybrid | Mode::Words => query_terms::parse_query(text, &sums.shares()),
        };
        ExternalQuery { mode, terms }
    }

    /// All forms to look up, distinct and sorted.
    pub fn forms(&self) -> Vec<&str> {
        let forms: BTreeSet<&str> = self.terms.iter().flat_map(|term| &term.forms).map(String::as_str).collect();
        forms.into_iter().collect()
    }

    /// All forms of the words that may be misspelt because the corpus contains none of their forms. A form counts if
    /// any live chunk of the corpus has it, regardless of the filter: a word that only filtered-out documents contain
    /// is spelt correctly.
    pub fn unknown_words(&self, is_known: impl Fn(&str) -> bool) -> Vec<FuzzyLookup> {
        let words = unknown_words(&self.terms, is_known).into_iter();
        words.flat_map(|word| self.terms[word].forms.iter().map(move |form| FuzzyLookup::new(form, word))).collect()
    }

    /// Replaces misspelt words with the most likely corrections. `near` has the terms of one
    /// [step](super::group_by_distance) or of several, each with the number of live chunks that have it.
    pub fn correct(&mut self, near: &[(FuzzyMatch, u64)]) {
        let words: BTreeSet<usize> = near.iter().map(|(close, _)| close.word).collect();
        for word in words {
            let Some(term) = self.terms.get_mut(word) else { continue };
            let known = near.iter().filter(|(close, chunks)| close.word == word && *chunks > 0);
            let meant = nearest_words(&term.forms, known.map(|(close, chunks)| (close.term.as_bytes(), *chunks)));
            term.replace_forms(meant);
        }
    }

    /// Whether the misspelt word of this term has been corrected already.
    pub fn is_corrected(&self, close: &FuzzyMatch) -> bool {
        self.terms.get(close.word).is_some_and(|term| term.is_correction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::external::group_by_distance;

    fn asked(text: &str) -> ExternalQuery {
        ExternalQuery::new(text, Mode::Hybrid, &CorpusStats { chunks: 3, length: 30, languages: vec![(0, 3)] })
    }

    #[test]
    fn forms_are_distinct_and_none_are_looked_up_for_vectors_alone() {
        assert_eq!(asked("invoices or an Invoice").forms(), ["invoic", "invoice", "invoices"]);
        assert!(ExternalQuery::new("invoices", Mode::Vectors, &CorpusStats::default()).forms().is_empty());
    }

    #[test]
    fn a_misspelt_word_stands_for_what_is_near() {
        let mut asked = asked("the paymetns of 1912");
        assert!(asked.unknown_words(|form| form == "paymetn").is_empty());
        let unknown = asked.unknown_words(|_| false);
        assert_eq!(unknown.iter().map(|word| word.form.as_str()).collect::<Vec<_>>(), ["paymetn", "paymetns"]);
        let known = [("payment", 2), ("paymenz", 9), ("payer", 50), ("paymeent", 0)];
        let steps = group_by_distance(&unknown, known.iter().map(|(term, _)| *term));
        let count = |close: FuzzyMatch| {
            let (_, chunks) = known.iter().find(|(term, _)| *term == close.term).expect("a known one");
            (close, *chunks)
        };
        for step in steps {
            let step: Vec<_> = step.into_iter().filter(|close| !asked.is_corrected(close)).map(count).collect();
            asked.correct(&step);
        }
        assert_eq!(asked.forms(), ["1912", "payment"]);
        assert!(asked.terms.iter().any(|term| term.is_correction));
    }

    #[test]
    fn nothing_is_meant_by_what_is_near_nothing() {
        let mut asked = asked("harbour");
        assert!(group_by_distance(&asked.unknown_words(|_| false), ["castle"].into_iter()).is_empty());
        asked.correct(&[]);
        assert_eq!(asked.forms(), ["harbour"]);
        assert!(!asked.terms[0].is_correction);
    }
}
