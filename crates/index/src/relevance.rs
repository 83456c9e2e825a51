//! How probable it is that a chunk answers a query, from 0 to 1, meaning the same for every query.
//!
//! A logistic regression on the cosine, the share of the query's words that the chunk has, and the size of the base:
//! among many chunks the nearest is near by chance. Fitted to answers of two public sets, whole, in long chunks and in
//! bases of one to five texts, and to what is found for questions that nothing answers: the documents with the answers
//! taken out, questions of other sets, small talk, nonsense; and to queries whose words were replaced by unknown ones, as
//! paraphrases do. Half of the queries were for fitting; on the others the expected calibration error is 0.007. BM25
//! itself adds nothing to the two, the order aside.
//!
//! Hits are shown in the order of [`fuse`](crate::fuse), which ranks better than this does. Where the two disagree,
//! neighbours share the mean of what they have, so that relevance never rises along the list.
//!
//! Nothing is shown where the best of the first hits is not probable at all. The bounds are low: a question that is
//! answered by chance words is worse off without its answer than another one with a hit at 0.02.

use crate::query::Mode;

/// All that is known about a chunk and a query.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Evidence {
    pub(crate) mode: Mode,
    /// Cosine of the best window; none where the chunk or the query has no vector.
    pub(crate) similarity: Option<f32>,
    /// BM25.
    pub(crate) words: f32,
    /// The most that BM25 could be for this query.
    pub(crate) most_words: f32,
    /// Share of the query's words that the chunk has, weighed by how rare they are.
    pub(crate) share: f32,
    /// Place among the chunks found by words, from 0; none where it was not among them.
    pub(crate) word_rank: Option<u32>,
    pub(crate) vector_rank: Option<u32>,
    /// Words of the query that were looked for.
    pub(crate) terms: u32,
    /// Chunks that could have been found.
    pub(crate) searched: usize,
}

/// A logistic regression: what each sign adds to the logarithm of the odds.
struct Odds {
    bias: f32,
    similarity: f32,
    share: f32,
    /// For each unit of the distance that chance alone brings the nearest of many.
    chance: f32,
}

const BOTH: Odds = Odds { bias: -4.7, similarity: 12.6, share: 3.8, chance: 1.02 };
/// Where the query has no words that could be looked for, or is not to be searched by them.
const VECTORS: Odds = Odds { bias: -3.5, similarity: 13.5, share: 0.0, chance: 1.3 };
/// Where there is no vector. Less sure: three words in ten are worth a look, and many a stranger has those.
const WORDS: Odds = Odds { bias: -3.9, similarity: 0.0, share: 5.0, chance: 0.0 };

/// How many of the first hits are looked at to tell whether there is an answer at all.
const FIRST: usize = 10;
/// The best of them has to be this relevant.
const ANSWERED: f32 = 0.02;
/// And this relevant where no chunk has a word of the query: what nobody has written about is near something, too.
const ANSWERED_BY_MEANING: f32 = 0.05;
/// And every hit this relevant.
const FLOOR: f32 = 0.003;

/// By the evidence of one chunk alone.
pub(crate) fn relevance(evidence: &Evidence) -> f32 {
    let Odds { bias, similarity, share, chance } = match evidence {
        Evidence { mode: Mode::Words, .. } | Evidence { similarity: None, .. } => WORDS,
        Evidence { mode: Mode::Vectors, .. } | Evidence { terms: 0, .. } => VECTORS,
        _ => BOTH,
    };
    let nearest_by_chance = (2.0 * (evidence.searched.max(1) as f32).ln()).sqrt();
    let odds = bias + similarity * evidence.similarity.unwrap_or(0.0) + share * evidence.share * evidence.share
        - chance * nearest_by_chance;
    (1.0 / (1.0 + (-odds).exp())).max(by_words(evidence))
}

/// What a chunk is worth that has the words of the query, whatever they mean: numbers and names mean nothing to vectors.
/// Not fitted, as the sets have no such queries: a chunk with all words of a query, if these are rare, is more probably an
/// answer than not; each word that is missing takes much of that away.
fn by_words(evidence: &Evidence) -> f32 {
    if evidence.terms == 0 || evidence.mode == Mode::Vectors {
        return 0.0;
    }
    // A word that one of a thousand chunks has counts about six, and one that every fifth has less than two.
    let rarity = evidence.most_words / evidence.terms as f32 / 2.2;
    let rarity = ((rarity - 1.0) / 4.0).clamp(0.1, 1.0);
    0.6 * rarity * evidence.share.powi(6)
}

/// Settles the relevance of chunks in the order they are shown: none for those that are not.
///
/// Searches by words or vectors alone show all they find; they are for those who compare.
pub(crate) fn settle(ordered: &[Evidence]) -> Vec<Option<f32>> {
    let own: Vec<f32> = ordered.iter().map(relevance).collect();
    let shows_all = ordered.first().is_none_or(|first| first.mode != Mode::Hybrid);
    let has_words = ordered.iter().take(FIRST).any(|evidence| evidence.share > 0.0);
    let least = if has_words { ANSWERED } else { ANSWERED_BY_MEANING };
    let is_answered = own.iter().take(FIRST).any(|relevance| *relevance >= least);
    let is_shown = |relevance: &f32| shows_all || (is_answered && *relevance >= FLOOR);
    let mut pooled = pool(own.iter().copied().filter(is_shown)).into_iter();
    own.iter().map(|relevance| if is_shown(relevance) { pooled.next() } else { None }).collect()
}

/// The nearest numbers that do not rise: runs that do are replaced by their mean.
fn pool(numbers: impl Iterator<Item = f32>) -> Vec<f32> {
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

    /// In a base of 240 chunks, of a query with five words.
    fn found(similarity: f32, share: f32) -> Evidence {
        Evidence { similarity: Some(similarity), share, terms: 5, searched: 240, ..Evidence::default() }
    }

    fn shown(ordered: &[Evidence]) -> Vec<f32> {
        settle(ordered).into_iter().flatten().collect()
    }

    #[test]
    fn k59_a_paraphrase_without_a_shared_word_is_found() {
        assert!(relevance(&found(0.6, 0.0)) > 0.3);
        assert_eq!(shown(&[found(0.45, 0.0)]).len(), 1);
    }

    #[test]
    fn k59_unrelated_text_scores_low_and_an_absent_topic_finds_nothing() {
        assert!(relevance(&found(0.1, 0.2)) < 0.01);
        assert_eq!(settle(&[found(0.3, 0.1), found(0.25, 0.2), found(0.1, 0.0)]), [None, None, None]);
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
        assert_eq!(pool([0.5, 0.125, 0.375].into_iter()), [0.5, 0.25, 0.25]);
        assert_eq!(pool([0.125, 0.25, 0.375].into_iter()), [0.25, 0.25, 0.25]);
        assert_eq!(pool([].into_iter()), [] as [f32; 0]);
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
