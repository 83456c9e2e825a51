//! Relevance: calibrated probability that a chunk answers a query, from 0 to 1, comparable across queries and bases.
//!
//! A logistic regression on the cosine, the share of the query's words that the chunk contains, and the number of these
//! words. None of them depends on the other documents, so a passage keeps its relevance when a base grows. IDF and
//! BM25 do depend on them, and rank only ([`fuse`](crate::fusion)).
//!
//! `corbie eval-search --fit-relevance` fits the coefficients to the answers of public data sets in bases of 10 to 10,000
//! documents: to queries with an answer, to queries without one (of other sets, small talk, nonsense), and to queries with
//! words replaced by unknown ones, as in paraphrases. One half of the queries is used for fitting; on the other half the
//! expected calibration error is 0.009, and between 0.02 and 0.035 in each size of the set with complete judgements. More
//! features (products, squares, words weighted by their length) change the error by less than 0.002.
//!
//! Hits are returned in the order of [`fuse`](crate::fusion), which ranks better than relevance does. If the two
//! disagree, neighbours share the mean of their values (isotonic regression), so that relevance never rises along the
//! list.
//!
//! No hits are returned if even the best of the first hits is improbable. Only this threshold depends on the number of
//! chunks: among many, the nearest is near by chance. It is low, because losing the answer to a question that matches by
//! chance words is worse than a hit at 0.03 for another question.

use crate::query::Mode;
use crate::term_weight::QueryWeights;

/// All features of a chunk for a query.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Evidence {
    pub(crate) mode: Mode,
    /// Cosine of the best window; `None` if the chunk or the query has no vector.
    pub(crate) similarity: Option<f32>,
    /// BM25.
    pub(crate) words: f32,
    /// Upper bound of BM25 for this query.
    pub(crate) max_words: f32,
    /// Share of the query's words that the chunk contains, weighted by rarity. For ranking only.
    pub(crate) share: f32,
    /// The same without IDF, so that it is independent of other chunks.
    pub(crate) plain_share: f32,
    /// Rank in the word search, from 0; `None` if the word search did not return it.
    pub(crate) word_rank: Option<u32>,
    pub(crate) vector_rank: Option<u32>,
    /// Number of query words searched.
    pub(crate) terms: u32,
    /// Whether one of them is a number or a symbol.
    pub(crate) has_code: bool,
    /// Number of chunks searched.
    pub(crate) searched: usize,
}

/// The features of a candidate's relevance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HitFeatures {
    pub chunk: u64,
    /// Inputs of the model: 1, the cosine, the square of the share of the query's words that the chunk contains, and the
    /// logarithm of their number.
    pub inputs: [f32; INPUTS],
}

/// Number of inputs of the model.
pub const INPUTS: usize = 4;

/// Coefficients of the inputs, in log-odds.
type Coefficients = [f32; INPUTS];

const HYBRID_MODEL: Coefficients = [-6.39, 8.44, 5.14, -0.03];
/// For queries without searchable words, and for vector mode.
const VECTOR_MODEL: Coefficients = [-6.58, 10.06, 0.0, 0.0];
/// For queries or chunks without a vector.
const LEXICAL_MODEL: Coefficients = [-6.11, 0.0, 9.36, 1.38];

/// Number of first hits that decide whether there is an answer at all.
const DECISIVE_HITS: usize = 10;
/// Minimum relevance of the best of them, in log-odds: of a single chunk, and the increase per unit of the expected
/// maximum similarity among many random chunks. It is 0.012 among ten chunks and 0.047 among 10,000.
const MIN_BEST_ODDS: f32 = -5.8;
const MIN_BEST_ODDS_BY_CHANCE: f32 = 0.65;
/// The increase if none of them has a word of the query: an absent topic also has near vectors.
const MIN_BEST_ODDS_BY_VECTOR: f32 = 0.7;
/// Minimum relevance of every hit.
const MIN_RELEVANCE: f32 = 0.003;
/// Relevance of a chunk with all words of a query that has a number, regardless of similarity.
const EXACT_MATCH_RELEVANCE: f32 = 0.6;

// === impl Evidence ===

impl Evidence {
    /// Adds the results of the word search.
    pub(crate) fn with_words(self, weights: &QueryWeights, words: f32, matched: u32) -> Evidence {
        let (share, plain_share) = (weights.coverage_share(matched), weights.plain_share(matched));
        Evidence { words, share, plain_share, ..self }
    }

    fn inputs(&self) -> [f32; INPUTS] {
        let similarity = self.similarity.unwrap_or(0.0);
        [1.0, similarity, self.plain_share * self.plain_share, (self.terms.max(1) as f32).ln()]
    }
}

// === impl HitFeatures ===

impl HitFeatures {
    pub(crate) fn of(chunk: u64, evidence: &Evidence) -> HitFeatures {
        HitFeatures { chunk, inputs: evidence.inputs() }
    }
}

/// From the evidence of one chunk alone.
pub(crate) fn relevance(evidence: &Evidence) -> f32 {
    let coefficients = match evidence {
        Evidence { mode: Mode::Words, .. } | Evidence { similarity: None, .. } => LEXICAL_MODEL,
        Evidence { mode: Mode::Vectors, .. } | Evidence { terms: 0, .. } => VECTOR_MODEL,
        _ => HYBRID_MODEL,
    };
    let odds: f32 = coefficients.iter().zip(evidence.inputs()).map(|(weight, input)| weight * input).sum();
    probability(odds).max(exact_match_relevance(evidence))
}

fn probability(odds: f32) -> f32 {
    1.0 / (1.0 + (-odds).exp())
}

/// Below this relevance of the best hit, nothing is returned. Among many chunks, the nearest is near by chance.
fn min_best_relevance(searched: usize, has_words: bool) -> f32 {
    let nearest_by_chance = (2.0 * (searched.max(1) as f32).ln()).sqrt();
    let by_vector = if has_words { 0.0 } else { MIN_BEST_ODDS_BY_VECTOR };
    probability(MIN_BEST_ODDS + MIN_BEST_ODDS_BY_CHANCE * nearest_by_chance + by_vector)
}

/// Relevance of a chunk by exact words, regardless of similarity: vectors do not represent numbers well. Not fitted,
/// because the data sets have no such queries: a chunk with all words of a query is more likely than not an answer. Each
/// missing word lowers this sharply.
fn exact_match_relevance(evidence: &Evidence) -> f32 {
    if !evidence.has_code || evidence.mode == Mode::Vectors {
        return 0.0;
    }
    EXACT_MATCH_RELEVANCE * evidence.plain_share.powi(6)
}

/// The final relevance of ranked chunks; `None` for chunks that are not returned.
///
/// Searches by words or vectors alone return everything; they are for comparisons.
pub(crate) fn final_relevance(ordered: &[Evidence]) -> Vec<Option<f32>> {
    let own: Vec<f32> = ordered.iter().map(relevance).collect();
    let shows_all = ordered.first().is_none_or(|first| first.mode != Mode::Hybrid);
    let has_words = ordered.iter().take(DECISIVE_HITS).any(|evidence| evidence.plain_share > 0.0);
    let least = min_best_relevance(ordered.first().map_or(0, |first| first.searched), has_words);
    let is_answered = own.iter().take(DECISIVE_HITS).any(|relevance| *relevance >= least);
    let is_shown = |relevance: &f32| shows_all || (is_answered && *relevance >= MIN_RELEVANCE);
    let mut pooled = isotonic_regression(own.iter().copied().filter(is_shown)).into_iter();
    own.iter().map(|relevance| if is_shown(relevance) { pooled.next() } else { None }).collect()
}

/// Isotonic regression (pool adjacent violators): rising runs are replaced by their mean.
fn isotonic_regression(numbers: impl Iterator<Item = f32>) -> Vec<f32> {
    let mut runs: Vec<(f32, usize)> = Vec::new();
    for number in numbers {
        let mut run = (number, 1);
        while let Some((mean, count)) = runs.pop_if(|(mean, _)| *mean < run.0) {
            let both = count + run.1;
            run = ((mean * count as f32 + run.0 * run.1 as f32) / both as f32, both);
        }
        runs.push(run);
    }
    runs.into_iter().flat_map(|(mean, count)| std::iter::repeat_n(mean, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// In a corpus of 240 chunks, for a query with five words.
    fn found(similarity: f32, plain_share: f32) -> Evidence {
        Evidence { similarity: Some(similarity), plain_share, terms: 5, searched: 240, ..Evidence::default() }
    }

    fn shown(ordered: &[Evidence]) -> Vec<f32> {
        final_relevance(ordered).into_iter().flatten().collect()
    }

    #[test]
    fn k59_a_paraphrase_without_a_shared_word_is_found() {
        assert!(relevance(&found(0.6, 0.0)) > 0.2);
        assert_eq!(shown(&[found(0.45, 0.0)]).len(), 1);
    }

    #[test]
    fn k59_unrelated_text_scores_low_and_an_absent_topic_finds_nothing() {
        assert!(relevance(&found(0.1, 0.2)) < 0.01);
        assert_eq!(final_relevance(&[found(0.3, 0.1), found(0.25, 0.2), found(0.1, 0.0)]), [None, None, None]);
    }

    #[test]
    fn x51_nothing_of_the_corpus_is_part_of_relevance() {
        let alone =
            Evidence { words: 0.3, max_words: 2.0, share: 0.9, word_rank: Some(0), searched: 1, ..found(0.5, 0.6) };
        let among_many =
            Evidence { words: 9.0, max_words: 40.0, share: 0.2, word_rank: Some(70), searched: 100_000, ..alone };
        assert_eq!(relevance(&alone), relevance(&among_many));
    }

    #[test]
    fn k59_a_few_documents_are_enough_to_tell_an_answer_from_chance() {
        let tiny = |similarity, share| Evidence { searched: 2, ..found(similarity, share) };
        assert_eq!(shown(&[tiny(0.35, 0.0)]).len(), 1);
        assert!(shown(&[tiny(0.1, 0.1)]).is_empty());
        let alone = Evidence { searched: 1, ..found(0.02, 0.0) };
        assert!(shown(&[alone]).is_empty());
        assert!(min_best_relevance(10, true) < 0.02 && min_best_relevance(100_000, true) < 0.07);
    }

    #[test]
    fn a_number_is_found_by_its_digits_alone() {
        let number = |plain_share| Evidence { has_code: true, terms: 1, ..found(0.0, plain_share) };
        assert!(relevance(&number(1.0)) >= EXACT_MATCH_RELEVANCE);
        assert!(relevance(&number(0.5)) < 0.02);
    }

    #[test]
    fn a_question_asked_in_its_own_words_is_surely_answered() {
        assert!(relevance(&found(0.7, 1.0)) > 0.9);
    }

    #[test]
    fn words_alone_and_vectors_alone_tell_something_too() {
        let words = |share| relevance(&Evidence { similarity: None, ..found(0.0, share) });
        assert!(words(1.0) > 0.7 && words(0.1) < 0.03);
        let no_words = |similarity| relevance(&Evidence { terms: 0, ..found(similarity, 0.0) });
        assert!(no_words(0.7) > 0.6 && no_words(0.1) < 0.01);
    }

    #[test]
    fn weak_hits_beside_a_good_one_are_shown_as_what_they_are() {
        let hits = shown(&[found(0.6, 0.9), found(0.3, 0.2), found(-0.1, 0.0)]);
        assert_eq!(hits.len(), 2);
        assert!(hits[0] > 0.7 && hits[1] < 0.05);
    }

    #[test]
    fn searches_of_one_kind_show_all_they_find() {
        let nothing = Evidence { mode: Mode::Vectors, ..found(-0.5, 0.0) };
        assert_eq!(shown(&[nothing]).len(), 1);
        assert_eq!(shown(&[Evidence { mode: Mode::Words, ..nothing }]).len(), 1);
    }

    #[test]
    fn k56_hits_out_of_order_share_their_mean() {
        assert_eq!(isotonic_regression([0.5, 0.125, 0.375].into_iter()), [0.5, 0.25, 0.25]);
        assert_eq!(isotonic_regression([0.125, 0.25, 0.375].into_iter()), [0.25, 0.25, 0.25]);
        assert_eq!(isotonic_regression([].into_iter()), [] as [f32; 0]);
    }

    proptest! {
        #[test]
        fn k56_relevance_is_a_share_and_never_rises(
            signs in proptest::collection::vec((-1.0_f32..=1.0, 0.0_f32..=1.0), 0..40),
            searched in 0_usize..2_000_000,
        ) {
            let ordered: Vec<Evidence> =
                signs.iter().map(|(similarity, share)| Evidence { searched, ..found(*similarity, *share) }).collect();
            let hits = shown(&ordered);
            prop_assert!(hits.iter().all(|relevance| (0.0..=1.0).contains(relevance)));
            prop_assert!(hits.windows(2).all(|pair| pair[0] >= pair[1] - 1e-6), "{hits:?}");
        }

        #[test]
        fn more_of_any_sign_is_never_less_relevant(similarity in -1.0_f32..0.9, share in 0.0_f32..0.9) {
            let here = relevance(&found(similarity, share));
            prop_assert!(relevance(&found(similarity + 0.1, share)) >= here);
            prop_assert!(relevance(&found(similarity, share + 0.1)) >= here);
        }
    }
}
