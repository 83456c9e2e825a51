//! A question on its way: its words, and the lists that it wants.

use super::{Misspelt, Sums};
use crate::query::Mode;
use crate::spelling::{nearest, unknown};
use crate::terms::{self, Term};
use foldhash::HashMap;
use std::collections::BTreeSet;

/// The words of a question, in the forms that they are looked for.
#[derive(Debug, Clone)]
pub struct Asked {
    pub(super) mode: Mode,
    pub(super) terms: Vec<Term>,
}

// === impl Asked ===

impl Asked {
    /// `sums` are those of the whole base: its languages decide how words are reduced.
    pub fn new(text: &str, mode: Mode, sums: &Sums) -> Asked {
        let terms = match mode {
            Mode::Vectors => Vec::new(),
            Mode::Hybrid | Mode::Words => terms::query(text, &sums.shares()),
        };
        Asked { mode, terms }
    }

    /// All forms to look up, distinct and in order.
    pub fn forms(&self) -> Vec<&str> {
        let forms: BTreeSet<&str> = self.terms.iter().flat_map(|term| &term.forms).map(String::as_str).collect();
        forms.into_iter().collect()
    }

    /// The words that may be misspelt, as none of their forms is known, in all their forms. Known is a form that any live
    /// chunk of the base has, whatever the filter: a word that only other documents have is spelt well.
    pub fn unknown(&self, is_known: impl Fn(&str) -> bool) -> Vec<Misspelt> {
        let words = unknown(&self.terms, is_known).into_iter();
        words.flat_map(|word| self.terms[word].forms.iter().map(move |form| Misspelt::new(form, word))).collect()
    }

    /// Lets misspelt words stand for those that were probably meant. `near` has, for each of [`Asked::unknown`], terms of
    /// the base and how many live chunks have each. More may be given than are near, and the same in several places.
    pub fn mend(&mut self, near: &[(Misspelt, Vec<(String, u64)>)]) {
        let words: BTreeSet<usize> = near.iter().map(|(form, _)| form.word).collect();
        for word in words {
            let Some(term) = self.terms.get_mut(word) else { continue };
            // A term may be near several forms of a word, and has the same chunks each time.
            let mut known: HashMap<&[u8], u64> = HashMap::default();
            let others = near.iter().filter(|(form, _)| form.word == word).flat_map(|(_, others)| others);
            for (other, chunks) in others {
                let most = known.entry(other.as_bytes()).or_default();
                *most = (*most).max(*chunks);
            }
            let meant = nearest(&term.forms, known.into_iter().filter(|(_, chunks)| *chunks > 0));
            term.mean(meant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let known = [("payment", 2), ("paymenz", 9), ("payer", 50), ("gone", 0)];
        let known: Vec<(String, u64)> = known.iter().map(|(term, chunks)| ((*term).into(), *chunks)).collect();
        let near: Vec<_> = unknown.into_iter().map(|word| (word, known.clone())).collect();
        asked.mend(&near);
        assert_eq!(asked.forms(), ["1912", "payment"]);
        assert!(asked.terms.iter().any(|term| term.is_guess));
    }

    #[test]
    fn nothing_is_meant_by_what_is_near_nothing() {
        let mut asked = asked("harbour");
        let near: Vec<_> = asked.unknown(|_| false).into_iter().map(|word| (word, Vec::new())).collect();
        asked.mend(&near);
        assert_eq!(asked.forms(), ["harbour"]);
        assert!(!asked.terms[0].is_guess);
    }
}
