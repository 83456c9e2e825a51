//! Merges the results of both searches and ranks them.

use crate::fusion::{candidate_score, fused_score, max_candidates};
use crate::relevance::{self, Evidence};
use foldhash::{HashMap, HashMapExt};
use std::hash::Hash;

/// A chunk that the word search or the vector search has returned.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidate<P> {
    pub(crate) location: P,
    pub(crate) key: u64,
    pub(crate) evidence: Evidence,
    /// Sort key.
    score: f32,
}

/// Merges both result lists, which are sorted best first, and keeps the candidates to rerank for `top` hits, the most
/// promising first. Results of the word search carry their word evidence.
pub(crate) fn merge_results<P: Copy + Eq + Hash>(
    common: Evidence,
    by_words: impl ExactSizeIterator<Item = (P, Evidence)>,
    by_vector: impl ExactSizeIterator<Item = (P, f32)>,
    key: impl Fn(P) -> u64,
    top: usize,
) -> Vec<Candidate<P>> {
    let mut places = HashMap::with_capacity(by_words.len() + by_vector.len());
    let mut candidates: Vec<Candidate<P>> = Vec::with_capacity(by_words.len() + by_vector.len());
    let candidate = |place, evidence| Candidate { location: place, key: key(place), evidence, score: 0.0 };
    for (rank, (place, evidence)) in by_words.enumerate() {
        places.insert(place, candidates.len());
        candidates.push(candidate(place, Evidence { word_rank: Some(rank as u32), ..evidence }));
    }
    for (rank, (place, similarity)) in by_vector.enumerate() {
        let at = *places.entry(place).or_insert_with(|| {
            candidates.push(candidate(place, common));
            candidates.len() - 1
        });
        candidates[at].evidence.vector_rank = Some(rank as u32);
        candidates[at].evidence.similarity = Some(similarity);
    }
    sort_by_score(&mut candidates, candidate_score);
    candidates.truncate(max_candidates(top));
    candidates
}

/// The best `top` candidates in order with their relevance, without irrelevant ones.
pub(crate) fn rank_candidates<P>(mut candidates: Vec<Candidate<P>>, top: usize) -> Vec<(Candidate<P>, f32)> {
    sort_by_fused_score(&mut candidates);
    let ordered: Vec<Evidence> = candidates.iter().map(|candidate| candidate.evidence).collect();
    let settled = candidates.into_iter().zip(relevance::final_relevance(&ordered));
    settled.filter_map(|(candidate, relevance)| Some((candidate, relevance?))).take(top).collect()
}

/// The order of hits.
pub(crate) fn sort_by_fused_score<P>(candidates: &mut [Candidate<P>]) {
    sort_by_score(candidates, fused_score);
}

/// Ties are sorted by key.
fn sort_by_score<P>(candidates: &mut [Candidate<P>], score: fn(&Evidence) -> f32) {
    candidates.iter_mut().for_each(|candidate| candidate.score = score(&candidate.evidence));
    candidates.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.key.cmp(&b.key)));
}
