//! BM25 term weights and length normalization.
//!
//! Document frequency and average length are computed over live chunks only: a removed document has no effect on the
//! scores of the remaining ones.

use crate::inverted_index::TEXT_WEIGHT;
use crate::query_terms::QueryTerm;

/// Term frequency saturation.
pub(crate) const K1: f32 = 1.2;
/// Strength of length normalization.
const B: f32 = 0.75;
/// Maximum number of query words in the bit mask of matched words.
const MAX_MATCH_BITS: usize = 32;
/// Weight factor of a spelling correction.
const CORRECTION_FACTOR: f32 = 0.9;
/// Smoothing: number of virtual chunks without the word that are added to every index.
const SMOOTHING_CHUNKS: f32 = 100.0;

/// The weight of a query word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TermWeight {
    /// BM25 factor (IDF).
    pub(crate) idf: f32,
    /// Coverage weight by rarity; 0 for extra words.
    coverage: f32,
    /// The part of it that a matching chunk gets.
    matched_coverage: f32,
    /// What a matching chunk gets regardless of rarity, and whether the word counts at all.
    matched_plain: f32,
    is_counted: bool,
    is_code: bool,
}

/// All words of a query, the rarest first.
#[derive(Debug, Clone)]
pub(crate) struct QueryWeights {
    words: Vec<TermWeight>,
    /// Total coverage weight of the query's words, without extra words.
    coverage: f32,
    /// Number of the query's words, without extra words.
    counted: u32,
    /// Whether a word is a number or a symbol.
    pub(crate) has_code: bool,
}

/// Length normalization of term frequencies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LengthNorm {
    base: f32,
    slope: f32,
}

/// Weight of a query word in [`Evidence::share`](crate::relevance::Evidence), if `having` chunks contain it.
///
/// Rare words have a higher weight, as in BM25. In a corpus of three documents the document frequency is not
/// informative, and a missing word would have many times the weight of a present one; the virtual chunks smooth this.
fn coverage_weight(chunks: usize, having: usize) -> f32 {
    (1.0 + (chunks as f32 + SMOOTHING_CHUNKS) / (having as f32 + 1.0)).ln()
}

// === impl Weight ===

impl TermWeight {
    /// `having` is the document frequency. A chunk that has the word in two forms counts twice.
    pub(crate) fn new(term: &QueryTerm, chunks: usize, having: usize) -> TermWeight {
        let trust = if term.is_correction { CORRECTION_FACTOR } else { 1.0 };
        let weight = idf(chunks, having) * (1.0 + (term.count as f32).ln()) * trust;
        let mass = if term.is_extra { 0.0 } else { coverage_weight(chunks, having) };
        TermWeight {
            idf: weight,
            coverage: mass,
            matched_coverage: mass * trust,
            matched_plain: if term.is_extra { 0.0 } else { term.plain_weight * trust },
            is_counted: !term.is_extra,
            is_code: term.is_code,
        }
    }
}

/// Inverse document frequency of a word that `having` chunks contain.
fn idf(chunks: usize, having: usize) -> f32 {
    let (chunks, having) = (chunks as f32, having.min(chunks) as f32);
    (1.0 + (chunks - having + 0.5) / (having + 0.5)).ln()
}

// === impl Weights ===

impl QueryWeights {
    /// Sorts words, each with its payload, by coverage weight.
    pub(crate) fn sort<T>(mut words: Vec<(TermWeight, T)>) -> (QueryWeights, Vec<T>) {
        words.sort_by(|(a, _), (b, _)| b.coverage.total_cmp(&a.coverage));
        let (words, others): (Vec<TermWeight>, Vec<T>) = words.into_iter().unzip();
        let read = || words.iter().take(MAX_MATCH_BITS);
        let coverage = read().map(|word| word.coverage).sum();
        let counted = read().filter(|word| word.is_counted).count() as u32;
        let has_code = read().any(|word| word.is_code);
        (QueryWeights { words, coverage, counted, has_code }, others)
    }

    /// Number of query words, without extra words.
    pub(crate) fn count(&self) -> u32 {
        self.counted
    }

    pub(crate) fn weight(&self, word: usize) -> f32 {
        self.words[word].idf
    }

    /// The bit of this word in the mask of matched words.
    pub(crate) fn bit(&self, word: usize) -> u32 {
        if word < MAX_MATCH_BITS { 1 << word } else { 0 }
    }

    /// Upper bound of BM25: the score of a chunk that only repeats the query's words.
    pub(crate) fn max_score(&self) -> f32 {
        let words = self.words.iter().filter(|word| word.coverage > 0.0);
        words.map(|word| word.idf).sum::<f32>() * (K1 + 1.0)
    }

    /// Share of the query that these words cover, weighted by rarity.
    pub(crate) fn coverage_share(&self, matched: u32) -> f32 {
        self.matched_share(matched, self.coverage, |word| word.matched_coverage)
    }

    /// Share of the query's words among these, without IDF. Independent of the corpus.
    pub(crate) fn plain_share(&self, matched: u32) -> f32 {
        self.matched_share(matched, self.counted as f32, |word| word.matched_plain)
    }

    /// Share of the query that these words cover, weighted by IDF alone.
    pub(crate) fn idf_share(&self, matched: u32) -> f32 {
        let total = self.words.iter().take(MAX_MATCH_BITS).map(|word| word.idf).sum();
        self.matched_share(matched, total, |word| word.idf)
    }

    fn matched_share(&self, matched: u32, total: f32, weight: fn(&TermWeight) -> f32) -> f32 {
        if total <= 0.0 {
            return 0.0;
        }
        let words = self.words.iter().take(MAX_MATCH_BITS).enumerate();
        words.filter(|(at, _)| matched >> at & 1 == 1).map(|(_, word)| weight(word)).sum::<f32>() / total
    }
}

// === impl Norm ===

impl LengthNorm {
    /// `chunks` and `length` are the totals of all live chunks.
    pub(crate) fn new(chunks: usize, length: u64) -> LengthNorm {
        let average = if chunks == 0 { 1.0 } else { (length as f32 / chunks as f32).max(1.0) };
        // Counts are in halves, and so are these constants.
        LengthNorm { base: TEXT_WEIGHT as f32 * K1 * (1.0 - B), slope: TEXT_WEIGHT as f32 * K1 * B / average }
    }

    /// Saturated frequency of a word that occurs this often in a chunk.
    pub(crate) fn saturate(self, count: u32, length: u16) -> f32 {
        let count = count as f32;
        count * (K1 + 1.0) / (count + self.base + self.slope * f32::from(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_words_count_like_others_in_a_tiny_base_and_more_in_a_large_one() {
        assert!(coverage_weight(2, 0) < 1.4 * coverage_weight(2, 2));
        assert!(coverage_weight(100_000, 1) > 4.0 * coverage_weight(100_000, 10_000));
        assert!(coverage_weight(0, 0).is_finite());
    }
}
