//! A query over external posting lists: its terms, and the lists it needs.

use super::{Close, Misspelt, Sums};
use crate::query::Mode;
use crate::spelling::{nearest, unknown};
use crate::terms::{self, Term};
use std::collections::BTreeSet;

/// The terms of a query, in all forms to look up.
#[derive(Debug, Clone)]
pub struct Asked {
    pub(super) mode: Mode,
    pub(super) terms: Vec<Term>,
}

// === impl Asked ===

impl Asked {
    /// `sums` are the statistics of the whole corpus: its languages decide how words are stemmed.
    pub fn new(text: &str, mode: Mode, sums: &Sums) -> Asked {
        let terms = match mode {
            Mode::Vectors => Vec::new(),
            Mode::Hybrid | Mode::Words => terms::query(text, &sums.shares()),
        };
        Asked { mode, terms }
    }

    /// All forms to look up, distinct and sorted.
    pub fn forms(&self) -> Vec<&str> {
        let forms: BTreeSet<&str> = self.terms.iter().flat_map(|term| &term.forms).map(String::as_str).collect();
        forms.into_iter().collect()
    }

    /// All forms of the words that may be misspelt because the corpus contains none of their forms. A form counts if
    /// any live chunk of the corpus has it, regardless of the filter: a word that only filtered-out documents contain
    /// is spelt correctly.
    pub fn unknown(&self, is_known: impl Fn(&str) -> bool) -> Vec<Misspelt> {
        let words = unknown(&self.terms, is_known).into_iter();
        words.flat_map(|word| self.terms[word].forms.iter().map(move |form| Misspelt::new(form, word))).collect()
    }

    /// Replaces misspelt words with the most likely corrections. `near` has the terms of one
    /// [step](super::nearest_first) or of several, each with the number of live chunks that have it.
    pub fn mend(&mut self, near: &[(Close, u64)]) {
        let words: BTreeSet<usize> = near.iter().map(|(close, _)| close.word).collect();
        for word in words {
            let Some(term) = self.terms.get_mut(word) else { continue };
            let known = near.iter().filter(|(close, chunks)| close.word == word && *chunks > 0);
            let meant = nearest(&term.forms, known.map(|(close, chunks)| (close.term.as_bytes(), *chunks)));
            term.mean(meant);
        }
    }

    /// Whether the misspelt word of this term has been corrected already.
    pub fn is_mended(&self, close: &Close) -> bool {
        self.terms.get(close.word).is_some_and(|term| term.is_guess)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apart::nearest_first;

    fn asked(text: &str) -> Asked {
        Asked::new(text, Mode::Hybrid, &Sums { chunks: 3, length: 30, languages: vec![(0, 3)] })
    }

    #[test]
    fn forms_are_distinct_and_none_are_looked_up_for_vectors_alone() {
        assert_eq!(asked("invoices or an Invoice").forms(), ["invoic", "invoice", "invoices"]);
        assert!(Asked::new("invoices", Mode::Vectors, &Sums::default()).forms().is_empty());
    }

    #[test]
    fn a_misspelt_word_stands_for_what_is_near() {
        let mut asked = asked("the paymetns of 1912");
        assert!(asked.unknown(|form| form == "paymetn").is_empty());
        let unknown = asked.unknown(|_| false);
        assert_eq!(unknown.iter().map(|word| word.form.as_str()).collect::<Vec<_>>(), ["paymetn", "paymetns"]);
        let known = [("payment", 2), ("paymenz", 9), ("payer", 50), ("paymeent", 0)];
        let steps = nearest_first(&unknown, known.iter().map(|(term, _)| *term));
        let count = |close: Close| {
            let (_, chunks) = known.iter().find(|(term, _)| *term == close.term).expect("a known one");
            (close, *chunks)
        };
        for step in steps {
            let step: Vec<_> = step.into_iter().filter(|close| !asked.is_mended(close)).map(count).collect();
            asked.mend(&step);
        }
        assert_eq!(asked.forms(), ["1912", "payment"]);
        assert!(asked.terms.iter().any(|term| term.is_guess));
    }

    #[test]
    fn nothing_is_meant_by_what_is_near_nothing() {
        let mut asked = asked("harbour");
        assert!(nearest_first(&asked.unknown(|_| false), ["castle"].into_iter()).is_empty());
        asked.mend(&[]);
        assert_eq!(asked.forms(), ["harbour"]);
        assert!(!asked.terms[0].is_guess);
    }
}
