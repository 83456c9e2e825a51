//! Relevance: calibrated probability that a chunk answers a query, from 0 to 1, comparable across queries.
//!
//! A logistic regression on the cosine, the share of the query's words that the chunk contains, and the size of the
//! corpus: among many chunks the nearest is near by chance. It is fitted to the answers of two public data sets,
//! unmodified, in long chunks and in corpora of one to five texts; to the results of questions without an answer: the
//! documents with the answers removed, questions of other data sets, small talk, nonsense; and to queries with words
//! replaced by unknown ones, as in paraphrases. One half of the queries was used for fitting; on the other half the
//! expected calibration error is 0.007. BM25 improves the order, but adds nothing to these features.
//!
//! Hits are returned in the order of [`fuse`](crate::fusion), which ranks better than relevance does. If the two
//! disagree, neighbours share the mean of their values (isotonic regression), so that relevance never rises along the
//! list.
//!
//! No hits are returned if even the best of the first hits is improbable. The thresholds are low: losing the answer
//! to a question that matches by chance words is worse than a hit at 0.02 for another question.

use crate::query::Mode;

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
    /// Share of the query's words that the chunk contains, weighted by rarity.
    pub(crate) share: f32,
    /// Rank in the word search, from 0; `None` if the word search did not return it.
    pub(crate) word_rank: Option<u32>,
    pub(crate) vector_rank: Option<u32>,
    /// Number of query words searched.
    pub(crate) terms: u32,
    /// Number of chunks searched.
    pub(crate) searched: usize,
}

/// Coefficients of a logistic regression, in log-odds.
struct LogisticModel {
    bias: f32,
    similarity: f32,
    share: f32,
    /// Per unit of the expected maximum similarity among many random chunks.
    chance: f32,
}

const HYBRID_MODEL: LogisticModel = LogisticModel { bias: -4.7, similarity: 12.6, share: 3.8, chance: 1.02 };
/// For queries without searchable words, and for vector mode.
const VECTOR_MODEL: LogisticModel = LogisticModel { bias: -3.5, similarity: 13.5, share: 0.0, chance: 1.3 };
/// For queries or chunks without a vector. Less confident: three words in ten are worth a hit, but unrelated chunks
/// often have as many.
const LEXICAL_MODEL: LogisticModel = LogisticModel { bias: -3.9, similarity: 0.0, share: 5.0, chance: 0.0 };

/// Number of first hits that decide whether there is an answer at all.
const DECISIVE_HITS: usize = 10;
/// Minimum relevance of the best of them.
const MIN_BEST_RELEVANCE: f32 = 0.02;
/// The same if none of them has a word of the query: an absent topic also has near vectors.
const MIN_BEST_RELEVANCE_BY_VECTOR: f32 = 0.05;
/// Minimum relevance of every hit.
const MIN_RELEVANCE: f32 = 0.003;

/// From the evidence of one chunk alone.
pub(crate) fn relevance(evidence: &Evidence) -> f32 {
    let LogisticModel { bias, similarity, share, chance } = match evidence {
        Evidence { mode: Mode::Words, .. } | Evidence { similarity: None, .. } => LEXICAL_MODEL,
        Evidence { mode: Mode::Vectors, .. } | Evidence { terms: 0, .. } => VECTOR_MODEL,
        _ => HYBRID_MODEL,
    };
    let nearest_by_chance = (2.0 * (evidence.searched.max(1) as f32).ln()).sqrt();
    let odds = bias + similarity * evidence.similarity.unwrap_or(0.0) + share * evidence.share * evidence.share
        - chance * nearest_by_chance;
    (1.0 / (1.0 + (-odds).exp())).max(exact_match_relevance(evidence))
}

/// Relevance of a chunk by exact words, regardless of similarity: vectors do not represent numbers and names well.
/// Not fitted, because the data sets have no such queries: a chunk with all words of a query is more likely than not
/// an answer if the words are rare. Each missing word lowers this sharply.
fn exact_match_relevance(evidence: &Evidence) -> f32 {
    if evidence.terms == 0 || evidence.mode == Mode::Vectors {
        return 0.0;
    }
    // A word in one of a thousand chunks weighs about six, and a word in every fifth chunk less than two.
    let rarity = evidence.max_words / evidence.terms as f32 / 2.2;
    let rarity = ((rarity - 1.0) / 4.0).clamp(0.1, 1.0);
    0.6 * rarity * evidence.share.powi(6)
}

/// The final relevance of ranked chunks; `None` for chunks that are not returned.
///
/// Searches by words or vectors alone return everything; they are for comparisons.
pub(crate) fn final_relevance(ordered: &[Evidence]) -> Vec<Option<f32>> {
    let own: Vec<f32> = ordered.iter().map(relevance).collect();
    let shows_all = ordered.first().is_none_or(|first| first.mode != Mode::Hybrid);
    let has_words = ordered.iter().take(DECISIVE_HITS).any(|evidence| evidence.share > 0.0);
    let least = if has_words { MIN_BEST_RELEVANCE } else { MIN_BEST_RELEVANCE_BY_VECTOR };
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
    fn found(similarity: f32, share: f32) -> Evidence {
        Evidence { similarity: Some(similarity), share, terms: 5, searched: 240, ..Evidence::default() }
    }

    fn shown(ordered: &[Evidence]) -> Vec<f32> {
        final_relevance(ordered).into_iter().flatten().collect()
    }

    #[test]
    fn k59_a_paraphrase_without_a_shared_word_is_found() {
        assert!(relevance(&found(0.6, 0.0)) > 0.3);
        assert_eq!(shown(&[found(0.45, 0.0)]).len(), 1);
    }

    #[test]
    fn k59_unrelated_text_scores_low_and_an_absent_topic_finds_nothing() {
        assert!(relevance(&found(0.1, 0.2)) < 0.01);
        assert_eq!(final_relevance(&[found(0.3, 0.1), found(0.25, 0.2), found(0.1, 0.0)]), [None, None, None]);
    }

    #[test]
    fn k59_a_few_documents_are_enough_to_tell_an_answer_from_chance() {
        let tiny = |similarity, share| Evidence { searched: 2, ..found(similarity, share) };
        assert_eq!(shown(&[tiny(0.35, 0.0)]).len(), 1);
        assert!(shown(&[tiny(0.1, 0.1)]).is_empty());
        let alone = Evidence { searched: 1, ..found(0.02, 0.0) };
        assert!(shown(&[alone]).is_empty());
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
        assert!(no_words(0.7) > 0.7 && no_words(0.1) < 0.01);
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
