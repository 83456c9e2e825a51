//! Hybrid ranking: fusion of BM25, cosine similarity and word coverage.
//!
//! The score is a weighted sum of three numbers that are comparable across queries: BM25 divided by the maximum that
//! any chunk could get for this query, the cosine, and the share of the query's words that the chunk contains. The
//! score does not depend on other results, so that one threshold works for all queries.
//!
//! Why not rank fusion: a rank loses the distance between the first and the second result. On two public data sets
//! and seven derived from them (words replaced by unknown ones, one half of a text as the query for the other half,
//! long chunks) weighted reciprocal rank fusion had a mean nDCG@10 of 0.565 and this sum 0.719; on the two original
//! sets 0.722 and 0.748. BM25 is divided by its possible maximum and not by the best result: if a query shares only
//! one frequent word with the corpus, the best match is still a bad one.
//!
//! The weights are on a wide plateau: the mean changes by less than 0.005 if any of them is a quarter lower or
//! higher. They were tuned on one half of the queries and validated on the other half. Pseudo-relevance feedback
//! (Rocchio, on the vectors) was tried and gained nothing.

use crate::query::Mode;
use crate::relevance::Evidence;

/// Weight of the cosine, relative to a maximal BM25 of 1.
const SIMILARITY_WEIGHT: f32 = 1.6;
/// Weight of the share of matched query words, regardless of their frequency.
const COVERAGE_WEIGHT: f32 = 0.5;

/// Weights of the ranks for the choice of candidates. The right passage rarely has a low rank by vector.
const WORD_RANK_WEIGHT: f32 = 0.5;
const VECTOR_RANK_WEIGHT: f32 = 1.0;
/// The first results of each search are always candidates: a number or a name that only one chunk has is found by
/// words alone.
const ALWAYS_CANDIDATES: u32 = 10;
/// Constant of reciprocal rank fusion: larger values flatten the influence of the rank.
const RRF_K: f32 = 60.0;

/// Number of chunks that each search returns for `top` hits. Results further down never reach the top.
pub(crate) fn depth(top: usize) -> usize {
    top.saturating_mul(2).max(100)
}

/// Maximum number of candidates to rerank. Each costs a few microseconds, and with all of them the mean would rise by
/// 0.0003.
pub(crate) fn max_candidates(top: usize) -> usize {
    top.saturating_mul(2).max(30)
}

/// Score for the choice of candidates: weighted reciprocal ranks, because only one search may have returned the
/// chunk. The final order does not use it.
pub(crate) fn candidate_score(evidence: &Evidence) -> f32 {
    let reciprocal = |rank: Option<u32>| rank.map_or(0.0, |rank| 1.0 / (RRF_K + 1.0 + rank as f32));
    let is_first =
        [evidence.word_rank, evidence.vector_rank].into_iter().flatten().any(|rank| rank < ALWAYS_CANDIDATES);
    f32::from(u8::from(is_first))
        + WORD_RANK_WEIGHT * reciprocal(evidence.word_rank)
        + VECTOR_RANK_WEIGHT * reciprocal(evidence.vector_rank)
}

/// Final score, higher is better. Searches by words or by vectors alone use BM25 or the cosine.
pub(crate) fn fused_score(evidence: &Evidence) -> f32 {
    let similarity = evidence.similarity.unwrap_or(0.0);
    match evidence.mode {
        Mode::Words => evidence.words,
        Mode::Vectors => similarity,
        Mode::Hybrid => {
            let words = if evidence.max_words > 0.0 { evidence.words / evidence.max_words } else { 0.0 };
            words + SIMILARITY_WEIGHT * similarity + COVERAGE_WEIGHT * evidence.share
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(words: f32, similarity: f32, share: f32) -> Evidence {
        Evidence { words, similarity: Some(similarity), share, max_words: 20.0, ..Evidence::default() }
    }

    #[test]
    fn what_both_searches_find_first_is_looked_at_first() {
        let found =
            |word_rank, vector_rank| candidate_score(&Evidence { word_rank, vector_rank, ..Evidence::default() });
        assert!(found(Some(0), Some(0)) > found(None, Some(0)));
        assert!(found(None, Some(5)) > found(Some(0), None));
        assert!(found(Some(0), None) > found(Some(20), Some(20)));
        assert_eq!(found(None, None), 0.0);
        assert!(max_candidates(1) >= 30 && max_candidates(50) >= 100 && depth(50) >= 50);
    }

    #[test]
    fn each_sign_counts() {
        let order = |evidence: Evidence| fused_score(&evidence);
        assert!(order(found(10.0, 0.5, 0.5)) > order(found(5.0, 0.5, 0.5)));
        assert!(order(found(10.0, 0.5, 0.5)) > order(found(10.0, 0.4, 0.5)));
        assert!(order(found(10.0, 0.5, 0.5)) > order(found(10.0, 0.5, 0.4)));
    }

    #[test]
    fn one_frequent_word_does_not_outweigh_the_meaning() {
        let shares_a_word = found(1.0, 0.1, 0.15);
        let means_the_same = found(0.0, 0.5, 0.0);
        assert!(fused_score(&means_the_same) > fused_score(&shares_a_word));
    }

    #[test]
    fn a_name_outweighs_a_vague_likeness() {
        let has_the_name = found(9.0, 0.3, 1.0);
        let is_alike = found(0.0, 0.5, 0.0);
        assert!(fused_score(&has_the_name) > fused_score(&is_alike));
    }

    #[test]
    fn a_search_by_one_sign_goes_by_that_alone() {
        let both = found(3.0, 0.2, 1.0);
        assert_eq!(fused_score(&Evidence { mode: Mode::Words, ..both }), 3.0);
        assert_eq!(fused_score(&Evidence { mode: Mode::Vectors, ..both }), 0.2);
        assert_eq!(fused_score(&Evidence { max_words: 0.0, words: 0.0, share: 0.0, ..both }), SIMILARITY_WEIGHT * 0.2);
    }
}
