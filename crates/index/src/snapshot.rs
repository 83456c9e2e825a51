//! The index at one moment. Searches run on a snapshot and are not disturbed by what comes later.

use crate::bitmap::Bitmap;
use crate::bm25::Weighed;
use crate::fuse::{depth, fuse, pool, promise};
use crate::language::Language;
use crate::part::{Part, Sums};
use crate::query::{Hit, Mode, Query};
use crate::relevance::{Evidence, settle};
use crate::top::Found;
use crate::vectors::Direction;
use crate::words::Words;
use crate::{bm25, spelling, terms, vectors};
use foldhash::{HashMap, HashMapExt};
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct Snapshot {
    pub(crate) parts: Vec<Arc<Part>>,
    sums: Sums,
    dimension: usize,
}

/// A chunk that either search has found.
struct Candidate {
    part: u32,
    chunk: u32,
    key: u64,
    /// What it is sorted by.
    score: f32,
    evidence: Evidence,
}

// === impl Snapshot ===

impl Snapshot {
    pub(crate) fn new(parts: Vec<Arc<Part>>, dimension: usize) -> Snapshot {
        let mut sums = Sums::default();
        parts.iter().for_each(|part| sums.plus(&part.sums));
        Snapshot { parts, sums, dimension }
    }

    /// The best hits, by relevance, highest first; equal ones in the order of their keys.
    pub fn search(&self, query: &Query) -> Vec<Hit> {
        let depth = depth(query.top).min(self.sums.chunks);
        if depth == 0 || query.top == 0 {
            return Vec::new();
        }
        let allowed: Vec<Option<Bitmap>> = self.parts.iter().map(|part| part.allowed(query.filter)).collect();
        let word_views: Vec<bm25::View> = self
            .parts
            .iter()
            .zip(&allowed)
            .map(|(part, allowed)| bm25::View {
                words: &part.segment.words,
                dead: &part.dead,
                allowed: allowed.as_ref(),
            })
            .collect();
        let mut terms = match query.mode {
            Mode::Vectors => Vec::new(),
            Mode::Hybrid | Mode::Words => terms::query(query.text, &self.languages()),
        };
        let words: Vec<&Words> = self.parts.iter().map(|part| &part.segment.words).collect();
        spelling::mend(&mut terms, &words);
        let weighed = Weighed::new(&word_views, &terms, self.sums.chunks, self.sums.length);
        let by_words = if terms.is_empty() { Vec::new() } else { weighed.search(depth) };
        let vector = query.vector.filter(|_| query.mode != Mode::Words);
        let direction = vector.and_then(|vector| Direction::new(vector, self.dimension));
        let by_vector = direction.as_ref().map_or_else(Vec::new, |direction| {
            let views = self.parts.iter().zip(&allowed);
            let views: Vec<vectors::View> = views
                .map(|(part, allowed)| vectors::View { vectors: &part.segment.vectors, allowed: allowed.as_ref() })
                .collect();
            direction.search(&views, depth)
        });
        let searched = self.parts.iter().zip(&allowed);
        let searched = searched.map(|(part, allowed)| allowed.as_ref().map_or(part.sums.chunks, Bitmap::count)).sum();
        let common = Evidence {
            mode: query.mode,
            terms: weighed.count() as u32,
            most_words: weighed.most(),
            searched,
            ..Evidence::default()
        };
        let mut candidates = self.candidates(common, &weighed, &by_words, &by_vector);
        candidates.truncate(pool(query.top));
        self.complete(&mut candidates, &weighed, direction.as_ref());
        self.hits(candidates, query.top)
    }

    /// Keys of the chunks around a chunk in reading order, itself among them. Nothing for a chunk that is not there.
    pub fn neighbours(&self, chunk: u64, before: usize, after: usize) -> Vec<u64> {
        for part in &self.parts {
            if let Some(at) = part.segment.find(chunk).filter(|at| part.chunks.contains(*at)) {
                let range = part.segment.range(part.segment.owners[at] as usize);
                let from = at.saturating_sub(before).max(range.start);
                let to = at.saturating_add(after).saturating_add(1).min(range.end);
                return part.segment.chunks[from..to].to_vec();
            }
        }
        Vec::new()
    }

    pub fn documents(&self) -> usize {
        self.sums.documents
    }

    pub fn chunks(&self) -> usize {
        self.sums.chunks
    }

    pub fn vectors(&self) -> usize {
        self.sums.vectors
    }

    /// Bytes that this snapshot holds.
    pub fn memory(&self) -> usize {
        self.parts.iter().map(|part| part.bytes()).sum()
    }

    /// Languages of the chunks and their shares, the most frequent first.
    fn languages(&self) -> Vec<(Language, f32)> {
        let all: u32 = self.sums.languages.iter().sum();
        let counted = self.sums.languages.iter().enumerate().filter(|(_, count)| **count > 0);
        let mut languages: Vec<(Language, f32)> = counted
            .filter_map(|(number, count)| Some((Language::numbered(number as u8)?, *count as f32 / all as f32)))
            .collect();
        languages.sort_by(|a, b| b.1.total_cmp(&a.1));
        languages
    }

    /// Brings both findings together, the most promising first.
    fn candidates(
        &self,
        common: Evidence,
        weighed: &Weighed,
        by_words: &[Found],
        by_vector: &[Found],
    ) -> Vec<Candidate> {
        let mut places = HashMap::with_capacity(by_words.len() + by_vector.len());
        let mut candidates: Vec<Candidate> = Vec::with_capacity(by_words.len() + by_vector.len());
        let candidate = |found: &Found, evidence| {
            let key = self.parts[found.part as usize].segment.chunks[found.chunk as usize];
            Candidate { part: found.part, chunk: found.chunk, key, score: 0.0, evidence }
        };
        for (rank, found) in by_words.iter().enumerate() {
            let share = weighed.share(found.matched);
            let evidence = Evidence { words: found.score, share, word_rank: Some(rank as u32), ..common };
            places.insert((found.part, found.chunk), candidates.len());
            candidates.push(candidate(found, evidence));
        }
        for (rank, found) in by_vector.iter().enumerate() {
            let at = *places.entry((found.part, found.chunk)).or_insert_with(|| {
                candidates.push(candidate(found, common));
                candidates.len() - 1
            });
            candidates[at].evidence.vector_rank = Some(rank as u32);
            candidates[at].evidence.similarity = Some(found.score);
        }
        best_first(&mut candidates, promise);
        candidates
    }

    /// Each candidate gets what the search that did not find it would say about it.
    fn complete(&self, candidates: &mut [Candidate], weighed: &Weighed, direction: Option<&Direction>) {
        if let Some(direction) = direction {
            for candidate in candidates.iter_mut().filter(|candidate| candidate.evidence.similarity.is_none()) {
                let vectors = &self.parts[candidate.part as usize].segment.vectors;
                candidate.evidence.similarity = direction.similarity(vectors, candidate.chunk as usize);
            }
        }
        // Lists are read from front to back.
        candidates.sort_unstable_by_key(|candidate| (candidate.part, candidate.chunk));
        for same_part in candidates.chunk_by_mut(|a, b| a.part == b.part) {
            let mut unknown: Vec<&mut Candidate> =
                same_part.iter_mut().filter(|candidate| candidate.evidence.word_rank.is_none()).collect();
            let chunks: Vec<u32> = unknown.iter().map(|candidate| candidate.chunk).collect();
            let Some(first) = unknown.first() else { continue };
            let scores = weighed.score(first.part as usize, &chunks);
            for (candidate, (score, matched)) in unknown.iter_mut().zip(scores) {
                candidate.evidence.words = score;
                candidate.evidence.share = weighed.share(matched);
            }
        }
    }

    /// The best of the candidates in their order, as far as they are worth showing.
    fn hits(&self, mut candidates: Vec<Candidate>, top: usize) -> Vec<Hit> {
        best_first(&mut candidates, fuse);
        let ordered: Vec<Evidence> = candidates.iter().map(|candidate| candidate.evidence).collect();
        let settled = candidates.into_iter().zip(settle(&ordered));
        let hits = settled.filter_map(|(candidate, relevance)| {
            let segment = &self.parts[candidate.part as usize].segment;
            Some(Hit {
                chunk: candidate.key,
                document: segment.documents[segment.owners[candidate.chunk as usize] as usize],
                relevance: relevance?,
                words: candidate.evidence.words,
                similarity: candidate.evidence.similarity.unwrap_or(0.0),
            })
        });
        hits.take(top).collect()
    }
}

/// Equal ones in the order of their keys.
fn best_first(candidates: &mut [Candidate], score: fn(&Evidence) -> f32) {
    candidates.iter_mut().for_each(|candidate| candidate.score = score(&candidate.evidence));
    candidates.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.key.cmp(&b.key)));
}
