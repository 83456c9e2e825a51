//! Inverted index of a segment.
//!
//! A word of the text counts as two halves, a word of the context as one half; lengths are in halves as well.
//!
//! This crate has its own posting lists instead of tantivy, because words and vectors of a chunk have to be added and
//! removed together: here they are one segment, one file and one snapshot, a filter is one set of chunks for both,
//! and removed chunks do not count in scores. tantivy has separate files, threads, commits and deletions, and
//! `bench/run knowledge` shows that it is no faster.

use crate::bitmap::Bitmap;
use crate::dictionary::Dictionary;
use crate::language::{LANGUAGES, Language};
use crate::postings::{Cursor, Posting};
use crate::tokenizer::{TokenKind, to_term, tokenize};
use crate::update::Document;
use foldhash::HashMap;

/// Weight of a word in the text, in halves.
pub(crate) const TEXT_WEIGHT: u32 = 2;
/// Weight of a word in the context, in halves.
const CONTEXT_WEIGHT: u32 = 1;
const NO_LANGUAGE: u8 = u8::MAX;

/// The inverted index of a segment's chunks.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct InvertedIndex {
    pub(crate) dictionary: Dictionary,
    /// Length of each chunk, in halves.
    pub(crate) lengths: Vec<u16>,
    /// Language number of each chunk.
    pub(crate) languages: Vec<u8>,
}

/// Builds an inverted index, one chunk after the other.
#[derive(Default)]
pub(crate) struct Builder {
    terms: HashMap<String, u32>,
    /// Cache of token to term, by language: each token is stemmed once.
    term_cache: HashMap<u8, HashMap<String, u32>>,
    /// Term, chunk and count.
    postings: Vec<(u32, u32, u8)>,
    lengths: Vec<u16>,
    languages: Vec<u8>,
}

// === impl Builder ===

impl Builder {
    /// Adds the chunks of a document, each in its language.
    pub(crate) fn add_document(&mut self, document: &Document) {
        let languages: Vec<Option<Language>> =
            document.chunks.iter().map(|chunk| Language::detect(&chunk.text)).collect();
        let usual = most_frequent(&languages);
        for (chunk, language) in document.chunks.iter().zip(languages) {
            // A table or a heading has the language of the surrounding text.
            let language = language.or(usual).or_else(|| Language::fallback(&chunk.text));
            self.add_chunk(&chunk.text, &chunk.context, language);
        }
    }

    pub(crate) fn add_chunk(&mut self, text: &str, context: &str, language: Option<Language>) {
        let chunk = self.lengths.len() as u32;
        let mut counts: Vec<(u32, u32)> = Vec::new();
        for (part, weight) in [(text, TEXT_WEIGHT), (context, CONTEXT_WEIGHT)] {
            tokenize(part, |token, kind| counts.push((self.term(token, kind, language), weight)));
        }
        let length: u32 = counts.iter().map(|(_, weight)| weight).sum();
        counts.sort_unstable();
        for same in counts.chunk_by(|a, b| a.0 == b.0) {
            let count: u32 = same.iter().map(|(_, weight)| weight).sum();
            self.postings.push((same[0].0, chunk, count.min(255) as u8));
        }
        self.lengths.push(length.min(u32::from(u16::MAX)) as u16);
        self.languages.push(language.map_or(NO_LANGUAGE, Language::number));
    }

    pub(crate) fn finish(self) -> InvertedIndex {
        let mut starts = vec![0_u32; self.terms.len() + 1];
        for (term, _, _) in &self.postings {
            starts[*term as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut postings = vec![Posting { chunk: 0, count: 0 }; self.postings.len()];
        let mut next = starts.clone();
        for (term, chunk, count) in self.postings {
            let at = &mut next[term as usize];
            postings[*at as usize] = Posting { chunk, count };
            *at += 1;
        }
        let mut terms: Vec<(&str, u32)> = self.terms.iter().map(|(term, number)| (term.as_str(), *number)).collect();
        terms.sort_unstable();
        let mut dictionary = Dictionary::default();
        for (term, number) in terms {
            let list = &postings[starts[number as usize] as usize..starts[number as usize + 1] as usize];
            dictionary.push(term.as_bytes(), list, &self.lengths);
        }
        dictionary.finish();
        InvertedIndex { dictionary, lengths: self.lengths, languages: self.languages }
    }

    fn term(&mut self, token: &str, kind: TokenKind, language: Option<Language>) -> u32 {
        let language = language.filter(|_| kind == TokenKind::Word);
        let known = self.term_cache.entry(language.map_or(NO_LANGUAGE, Language::number)).or_default();
        if let Some(number) = known.get(token) {
            return *number;
        }
        let next = self.terms.len() as u32;
        let number = *self.terms.entry(to_term(token, kind, language)).or_insert(next);
        known.insert(token.to_owned(), number);
        number
    }
}

fn most_frequent(languages: &[Option<Language>]) -> Option<Language> {
    let mut counts = [0_u32; LANGUAGES];
    languages.iter().flatten().for_each(|language| counts[usize::from(language.number())] += 1);
    let (number, count) =
        counts.iter().enumerate().max_by_key(|(number, count)| (**count, std::cmp::Reverse(*number)))?;
    if *count > 0 { Language::from_number(number as u8) } else { None }
}

// === impl Words ===

impl InvertedIndex {
    /// Merges several inverted indexes, in this order, without removed chunks.
    pub(crate) fn merge(parts: &[(&InvertedIndex, &Bitmap)]) -> InvertedIndex {
        let mut joined = InvertedIndex::default();
        let mut renumbered: Vec<Vec<u32>> = Vec::new();
        for (words, alive) in parts {
            let mut numbers = vec![u32::MAX; words.lengths.len()];
            for chunk in alive.iter() {
                numbers[chunk] = joined.lengths.len() as u32;
                joined.lengths.push(words.lengths[chunk]);
                joined.languages.push(words.languages[chunk]);
            }
            renumbered.push(numbers);
        }
        let mut at = vec![0; parts.len()];
        let mut postings = Vec::new();
        loop {
            let heads = parts.iter().zip(&at).filter(|((words, _), at)| **at < words.dictionary.len());
            let Some(term) = heads.map(|((words, _), at)| words.dictionary.term(*at)).min() else { break };
            postings.clear();
            for (((words, _), at), numbers) in parts.iter().zip(&mut at).zip(&renumbered) {
                if *at < words.dictionary.len() && words.dictionary.term(*at) == term {
                    Cursor::new(words.dictionary.list(*at)).read_until(u32::MAX, |chunk, count| {
                        let chunk = numbers[chunk as usize];
                        if chunk != u32::MAX {
                            postings.push(Posting { chunk, count: count as u8 });
                        }
                    });
                    *at += 1;
                }
            }
            if !postings.is_empty() {
                joined.dictionary.push(term, &postings, &joined.lengths);
            }
        }
        joined.dictionary.finish();
        joined
    }

    pub(crate) fn bytes(&self) -> usize {
        self.dictionary.bytes() + self.lengths.len() * 3
    }

    pub(crate) fn language(&self, chunk: usize) -> Option<Language> {
        Language::from_number(self.languages[chunk])
    }
}
