//! A scored query: the chunks that match its words, with their BM25 scores.

use super::score::{FormPostings, ScoredChunk, score};
use super::{CorpusStats, ExternalQuery, InvalidPostingsError, for_each_posting};
use crate::candidate;
use crate::query::Mode;
use crate::relevance::Evidence;
use crate::term_weight::{LengthNorm, QueryWeights, TermWeight};
use crate::top_k::{ScoredHit, TopK};
use std::collections::HashMap;
use std::hash::BuildHasher;

/// A result of the vector search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VectorMatch {
    pub key: u64,
    /// Cosine of its best window.
    pub similarity: f32,
}

/// A chunk to rerank.
#[derive(Debug, Clone, PartialEq)]
pub struct RerankCandidate {
    pub key: u64,
    /// `None` if the vector search did not return it; the chunk may have vectors nevertheless.
    pub similarity: Option<f32>,
    candidate: candidate::Candidate<u64>,
}

/// Like [`crate::Hit`], without the document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExternalHit {
    pub chunk: u64,
    /// From 0 to 1. Hits are sorted by it.
    pub relevance: f32,
    /// BM25.
    pub words: f32,
    /// Cosine of the chunk's best window, 0 if it has no vector.
    pub similarity: f32,
}

/// A query with weighted terms and scored chunks.
#[derive(Debug, Clone)]
pub struct ScoredQuery {
    weights: QueryWeights,
    common: Evidence,
    top: usize,
    /// All allowed chunks that have any of the words, sorted by key.
    scored: Vec<ScoredChunk>,
}

// === impl Asked ===

impl ExternalQuery {
    /// Scores the lists of all [forms](ExternalQuery::forms). A chunk occurs once in all lists of a form. `is_live` returns
    /// whether a chunk still exists: all live chunks count for the document frequency. `is_allowed` evaluates the
    /// filter and is only called for live chunks. `sums` are the statistics of the whole corpus, and `searched` is
    /// the number of chunks that are live and allowed.
    pub fn score<B: AsRef<[u8]>, S: BuildHasher>(
        self,
        lists: &HashMap<String, Vec<B>, S>,
        is_live: impl Fn(u64) -> bool,
        is_allowed: impl Fn(u64) -> bool,
        sums: &CorpusStats,
        searched: u64,
        top: usize,
    ) -> Result<ScoredQuery, InvalidPostingsError> {
        let chunks = sums.chunks as usize;
        let norm = LengthNorm::new(chunks, sums.length);
        let mut read: foldhash::HashMap<&str, FormPostings> = foldhash::HashMap::default();
        for form in self.forms() {
            let mut counted = FormPostings::default();
            for list in lists.get(form).into_iter().flatten() {
                for_each_posting(list.as_ref(), |posting| {
                    if is_live(posting.key) {
                        counted.document_frequency += 1;
                        if is_allowed(posting.key) {
                            counted
                                .frequencies
                                .push((posting.key, norm.saturate(u32::from(posting.count), posting.length)));
                        }
                    }
                })?;
            }
            counted.sort();
            read.insert(form, counted);
        }
        let words = self.terms.iter().map(|term| {
            let lists: Vec<&FormPostings> = term.forms.iter().filter_map(|form| read.get(form.as_str())).collect();
            let having = lists.iter().map(|list| list.document_frequency).sum();
            (TermWeight::new(term, chunks, having), lists)
        });
        let (weights, lists) = QueryWeights::sort(words.collect());
        let scored = score(&weights, &lists);
        let common = Evidence {
            mode: self.mode,
            terms: weights.count(),
            max_words: weights.max_score(),
            has_code: weights.has_code,
            searched: searched as usize,
            ..Evidence::default()
        };
        Ok(ScoredQuery { weights, common, top, scored })
    }
}

// === impl Weighed ===

impl ScoredQuery {
    /// Chunks to rerank, the most promising first. `by_vector` has the [`depth`](super::depth) nearest live and
    /// allowed chunks, nearest first, ties by key, each chunk once. For [`ScoredQuery::hits`] the owner fetches the
    /// cosines of candidates without a similarity, if the chunks have vectors and the query has one.
    pub fn candidates(&self, by_vector: &[VectorMatch]) -> Vec<RerankCandidate> {
        if self.top == 0 {
            return Vec::new();
        }
        let depth = super::depth(self.top);
        let by_vector = if self.common.mode == Mode::Words { &[] } else { &by_vector[..depth.min(by_vector.len())] };
        let by_words = self.best_scored(depth).into_iter().map(|scored| (scored.key, self.evidence(&scored)));
        let by_vector = by_vector.iter().map(|near| (near.key, near.similarity));
        let candidates = candidate::merge_results(self.common, by_words, by_vector, |key| key, self.top).into_iter();
        candidates
            .map(|found| RerankCandidate { key: found.key, similarity: found.evidence.similarity, candidate: found })
            .collect()
    }

    /// The ranked hits. `similarities` has the missing cosines, of the best window of each chunk.
    pub fn hits<S: BuildHasher>(
        self,
        candidates: Vec<RerankCandidate>,
        similarities: &HashMap<u64, f32, S>,
    ) -> Vec<ExternalHit> {
        let complete = |RerankCandidate { key, similarity, candidate: mut found }: RerankCandidate| {
            if self.common.mode != Mode::Words {
                found.evidence.similarity = similarity.or_else(|| similarities.get(&key).copied());
            }
            if found.evidence.word_rank.is_none()
                && let Ok(at) = self.scored.binary_search_by_key(&key, |scored| scored.key)
            {
                let ScoredChunk { score, matched, .. } = self.scored[at];
                found.evidence = found.evidence.with_words(&self.weights, score, matched);
            }
            found
        };
        let settled = candidate::rank_candidates(candidates.into_iter().map(complete).collect(), self.top).into_iter();
        settled
            .map(|(found, relevance)| ExternalHit {
                chunk: found.key,
                relevance,
                words: found.evidence.words,
                similarity: found.evidence.similarity.unwrap_or(0.0),
            })
            .collect()
    }

    fn evidence(&self, scored: &ScoredChunk) -> Evidence {
        self.common.with_words(&self.weights, scored.score, scored.matched)
    }

    /// The best chunks by BM25, best first: at most `most`.
    pub fn best(&self, most: usize) -> Vec<u64> {
        self.best_scored(most).into_iter().map(|scored| scored.key).collect()
    }

    /// Drops chunks that the filter does not allow, if it was not evaluated before scoring. It is enough to evaluate
    /// the filter until the [`depth`](super::depth) [best](ScoredQuery::best) allowed chunks are determined: everything
    /// after them can be dropped, except the results of the vector search.
    pub fn retain(&mut self, is_allowed: impl Fn(u64) -> bool) {
        self.scored.retain(|scored| is_allowed(scored.key));
    }

    /// The best chunks by BM25, best first; ties by key.
    fn best_scored(&self, depth: usize) -> Vec<ScoredChunk> {
        let mut top = TopK::new(depth.min(self.scored.len()), 0.0);
        for (chunk, ScoredChunk { score, matched, .. }) in (0..).zip(&self.scored) {
            top.push(ScoredHit { score: *score, segment: 0, chunk, matched: *matched });
        }
        top.finish().into_iter().map(|found| self.scored[found.chunk as usize]).collect()
    }
}
