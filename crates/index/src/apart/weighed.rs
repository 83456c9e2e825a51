//! A scored query: the chunks that match its words, with their BM25 scores.

use super::score::{Counted, Scored, score};
use super::{Asked, Damage, Sums, each};
use crate::candidate;
use crate::query::Mode;
use crate::relevance::Evidence;
use crate::top::{Found, Top};
use crate::weight::{Norm, Weight, Weights};
use std::collections::HashMap;
use std::hash::BuildHasher;

/// A result of the vector search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
    pub key: u64,
    /// Cosine of its best window.
    pub similarity: f32,
}

/// A chunk to rerank.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub key: u64,
    /// `None` if the vector search did not return it; the chunk may have vectors nevertheless.
    pub similarity: Option<f32>,
    found: candidate::Candidate<u64>,
}

/// Like [`crate::Hit`], without the document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
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
pub struct Weighed {
    weights: Weights,
    common: Evidence,
    top: usize,
    /// All allowed chunks that have any of the words, sorted by key.
    scored: Vec<Scored>,
}

// === impl Asked ===

impl Asked {
    /// Scores the lists of all [forms](Asked::forms). A chunk occurs once in all lists of a form. `is_live` returns
    /// whether a chunk still exists: all live chunks count for the document frequency. `is_allowed` evaluates the
    /// filter and is only called for live chunks. `sums` are the statistics of the whole corpus, and `searched` is
    /// the number of chunks that are live and allowed.
    pub fn weigh<B: AsRef<[u8]>, S: BuildHasher>(
        self,
        lists: &HashMap<String, Vec<B>, S>,
        is_live: impl Fn(u64) -> bool,
        is_allowed: impl Fn(u64) -> bool,
        sums: &Sums,
        searched: u64,
        top: usize,
    ) -> Result<Weighed, Damage> {
        let chunks = sums.chunks as usize;
        let norm = Norm::new(chunks, sums.length);
        let mut read: foldhash::HashMap<&str, Counted> = foldhash::HashMap::default();
        for form in self.forms() {
            let mut counted = Counted::default();
            for list in lists.get(form).into_iter().flatten() {
                each(list.as_ref(), |posting| {
                    if is_live(posting.key) {
                        counted.having += 1;
                        if is_allowed(posting.key) {
                            counted.counts.push((posting.key, norm.count(u32::from(posting.count), posting.length)));
                        }
                    }
                })?;
            }
            counted.sort();
            read.insert(form, counted);
        }
        let words = self.terms.iter().map(|term| {
            let lists: Vec<&Counted> = term.forms.iter().filter_map(|form| read.get(form.as_str())).collect();
            let having = lists.iter().map(|list| list.having).sum();
            (Weight::new(term, chunks, having), lists)
        });
        let (weights, lists) = Weights::sort(words.collect());
        let scored = score(&weights, &lists);
        let common = Evidence {
            mode: self.mode,
            terms: weights.count() as u32,
            most_words: weights.most(),
            searched: searched as usize,
            ..Evidence::default()
        };
        Ok(Weighed { weights, common, top, scored })
    }
}

// === impl Weighed ===

impl Weighed {
    /// Chunks to rerank, the most promising first. `by_vector` has the [`depth`](super::depth) nearest live and
    /// allowed chunks, nearest first, ties by key, each chunk once. For [`Weighed::hits`] the owner fetches the
    /// cosines of candidates without a similarity, if the chunks have vectors and the query has one.
    pub fn candidates(&self, by_vector: &[Near]) -> Vec<Candidate> {
        if self.top == 0 {
            return Vec::new();
        }
        let depth = super::depth(self.top);
        let by_vector = if self.common.mode == Mode::Words { &[] } else { &by_vector[..depth.min(by_vector.len())] };
        let by_words = self.best_scored(depth).into_iter().map(|scored| (scored.key, self.evidence(&scored)));
        let by_vector = by_vector.iter().map(|near| (near.key, near.similarity));
        let candidates = candidate::gather(self.common, by_words, by_vector, |key| key, self.top).into_iter();
        candidates.map(|found| Candidate { key: found.key, similarity: found.evidence.similarity, found }).collect()
    }

    /// The ranked hits. `similarities` has the missing cosines, of the best window of each chunk.
    pub fn hits<S: BuildHasher>(self, candidates: Vec<Candidate>, similarities: &HashMap<u64, f32, S>) -> Vec<Hit> {
        let complete = |Candidate { key, similarity, mut found }: Candidate| {
            if self.common.mode != Mode::Words {
                found.evidence.similarity = similarity.or_else(|| similarities.get(&key).copied());
            }
            if found.evidence.word_rank.is_none()
                && let Ok(at) = self.scored.binary_search_by_key(&key, |scored| scored.key)
            {
                let Evidence { words, share, .. } = self.evidence(&self.scored[at]);
                (found.evidence.words, found.evidence.share) = (words, share);
            }
            found
        };
        let settled = candidate::settle(candidates.into_iter().map(complete).collect(), self.top).into_iter();
        settled
            .map(|(found, relevance)| Hit {
                chunk: found.key,
                relevance,
                words: found.evidence.words,
                similarity: found.evidence.similarity.unwrap_or(0.0),
            })
            .collect()
    }

    fn evidence(&self, scored: &Scored) -> Evidence {
        Evidence { words: scored.score, share: self.weights.share(scored.matched), ..self.common }
    }

    /// The best chunks by BM25, best first: at most `most`.
    pub fn best(&self, most: usize) -> Vec<u64> {
        self.best_scored(most).into_iter().map(|scored| scored.key).collect()
    }

    /// Drops chunks that the filter does not allow, if it was not evaluated before scoring. It is enough to evaluate
    /// the filter until the [`depth`](super::depth) [best](Weighed::best) allowed chunks are determined: everything
    /// after them can be dropped, except the results of the vector search.
    pub fn keep(&mut self, is_allowed: impl Fn(u64) -> bool) {
        self.scored.retain(|scored| is_allowed(scored.key));
    }

    /// The best chunks by BM25, best first; ties by key.
    fn best_scored(&self, depth: usize) -> Vec<Scored> {
        let mut top = Top::new(depth.min(self.scored.len()), 0.0);
        for (chunk, Scored { score, matched, .. }) in (0..).zip(&self.scored) {
            top.offer(Found { score: *score, part: 0, chunk, matched: *matched });
        }
        top.finish().into_iter().map(|found| self.scored[found.chunk as usize]).collect()
    }
}
