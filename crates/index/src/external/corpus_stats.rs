//! Corpus statistics for BM25 and language selection.

use crate::language::Language;
use std::collections::BTreeMap;

/// Statistics of a corpus or a document, without removed documents.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CorpusStats {
    pub chunks: u64,
    /// Total length of all chunks, in halves of words.
    pub length: u64,
    /// Language number (255: none) and its number of chunks.
    pub languages: Vec<(u8, u64)>,
}

// === impl Sums ===

impl CorpusStats {
    pub fn add(&mut self, other: &CorpusStats) {
        self.chunks += other.chunks;
        self.length += other.length;
        self.languages.extend(&other.languages);
        self.languages = sum_by_language(&self.languages).into_iter().collect();
    }

    /// Languages and their shares, the most frequent first.
    pub(super) fn shares(&self) -> Vec<(Language, f32)> {
        Language::shares(sum_by_language(&self.languages).into_iter())
    }
}

/// Adds up rows of the same language: a store may have one row per document.
fn sum_by_language(languages: &[(u8, u64)]) -> BTreeMap<u8, u64> {
    let mut sums = BTreeMap::new();
    languages.iter().for_each(|(number, chunks)| *sums.entry(*number).or_default() += chunks);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_same_language_are_one() {
        let mut sums = CorpusStats { chunks: 3, length: 40, languages: vec![(255, 1), (1, 2)] };
        sums.add(&CorpusStats { chunks: 2, length: 5, languages: vec![(1, 1), (0, 1)] });
        assert_eq!(sums, CorpusStats { chunks: 5, length: 45, languages: vec![(0, 1), (1, 3), (255, 1)] });
        let rows = CorpusStats { languages: vec![(1, 1), (0, 1), (255, 1), (1, 1), (1, 1)], ..sums.clone() };
        assert_eq!(rows.shares(), sums.shares());
        assert_eq!(sums.shares().iter().map(|(_, share)| *share).collect::<Vec<_>>(), [0.75, 0.25]);
    }
}
