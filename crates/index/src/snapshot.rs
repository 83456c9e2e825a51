//! Immutable snapshot of the index. Searches on it are isolated from later changes.

use crate::bitmap::Bitmap;
use crate::bm25::WeightedQuery;
use crate::candidate::{self, Candidate};
use crate::fusion::depth;
use crate::inverted_index::InvertedIndex;
use crate::language::Language;
use crate::live_segment::{LiveSegment, SegmentStats};
use crate::query::{Hit, Mode, Query};
use crate::relevance::{Evidence, HitFeatures};
use crate::vectors::QueryVector;
use crate::{bm25, query_terms, spelling, vectors};
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct Snapshot {
    pub(crate) segments: Vec<Arc<LiveSegment>>,
    stats: SegmentStats,
    dimension: usize,
}

/// Location of a chunk: segment number and position in it.
type ChunkLocation = (u32, u32);

// === impl Snapshot ===

impl Snapshot {
    pub(crate) fn new(parts: Vec<Arc<LiveSegment>>, dimension: usize) -> Snapshot {
        let mut sums = SegmentStats::default();
        parts.iter().for_each(|part| sums.add(&part.stats));
        Snapshot { segments: parts, stats: sums, dimension }
    }

    /// The best hits, sorted by relevance, highest first; ties by key.
    pub fn search(&self, query: &Query) -> Vec<Hit> {
        let shown = candidate::rank_candidates(self.candidates(query), query.top).into_iter();
        shown.map(|(candidate, relevance)| self.hit(&candidate, relevance)).collect()
    }

    /// The features of relevance of all candidates, in the order of [`Snapshot::search`], to fit its model.
    pub fn features(&self, query: &Query) -> Vec<HitFeatures> {
        let mut candidates = self.candidates(query);
        candidate::sort_by_fused_score(&mut candidates);
        let features = |candidate: &Candidate<ChunkLocation>| HitFeatures::of(candidate.key, &candidate.evidence);
        candidates.iter().map(features).collect()
    }

    fn candidates(&self, query: &Query) -> Vec<Candidate<ChunkLocation>> {
        let depth = depth(query.top).min(self.stats.chunks);
        if depth == 0 || query.top == 0 {
            return Vec::new();
        }
        let allowed: Vec<Option<Bitmap>> = self.segments.iter().map(|part| part.allowed(query.filter)).collect();
        let word_views: Vec<bm25::LexicalView> = self
            .segments
            .iter()
            .zip(&allowed)
            .map(|(part, allowed)| bm25::LexicalView {
                words: &part.segment.words,
                removed: &part.removed_chunks,
                allowed: allowed.as_ref(),
            })
            .collect();
        let counted = self.stats.languages.iter().zip(0..).map(|(count, number)| (number, u64::from(*count)));
        let mut terms = match query.mode {
            Mode::Vectors => Vec::new(),
            Mode::Hybrid | Mode::Words => query_terms::parse_query(query.text, &Language::shares(counted)),
        };
        let words: Vec<&InvertedIndex> = self.segments.iter().map(|part| &part.segment.words).collect();
        spelling::correct(&mut terms, &words);
        let weighed = WeightedQuery::new(&word_views, &terms, self.stats.chunks, self.stats.length);
        let by_words = if terms.is_empty() { Vec::new() } else { weighed.search(depth) };
        let vector = query.vector.filter(|_| query.mode != Mode::Words);
        let direction = vector.and_then(|vector| QueryVector::new(vector, self.dimension));
        let by_vector = direction.as_ref().map_or_else(Vec::new, |direction| {
            let views = self.segments.iter().zip(&allowed);
            let views: Vec<vectors::VectorView> = views
                .map(|(part, allowed)| vectors::VectorView {
                    vectors: &part.segment.vectors,
                    allowed: allowed.as_ref(),
                })
                .collect();
            direction.search(&views, depth)
        });
        let searched = self.segments.iter().zip(&allowed);
        let searched = searched.map(|(part, allowed)| allowed.as_ref().map_or(part.stats.chunks, Bitmap::count)).sum();
        let common = Evidence {
            mode: query.mode,
            terms: weighed.weights.count(),
            max_words: weighed.weights.max_score(),
            has_code: weighed.weights.has_code,
            searched,
            ..Evidence::default()
        };
        let by_words = by_words.iter().map(|found| {
            ((found.segment, found.chunk), common.with_words(&weighed.weights, found.score, found.matched))
        });
        let by_vector = by_vector.iter().map(|found| ((found.segment, found.chunk), found.score));
        let key = |(part, chunk): ChunkLocation| self.segments[part as usize].segment.chunks[chunk as usize];
        let mut candidates = candidate::merge_results(common, by_words, by_vector, key, query.top);
        self.complete(&mut candidates, &weighed, direction.as_ref());
        candidates
    }

    /// Keys of the chunks around a chunk in reading order, including the chunk itself. Empty for an unknown chunk.
    pub fn neighbours(&self, chunk: u64, before: usize, after: usize) -> Vec<u64> {
        for part in &self.segments {
            if let Some(at) = part.segment.find(chunk).filter(|at| part.chunks.contains(*at)) {
                let range = part.segment.range(part.segment.owners[at] as usize);
                let from = at.saturating_sub(before).max(range.start);
                let to = at.saturating_add(after).saturating_add(1).min(range.end);
                return part.segment.chunks[from..to].to_vec();
            }
        }
        Vec::new()
    }

    /// Cosine of each window of a chunk with a query, in reading order. Empty if either has no vector.
    pub fn window_similarities(&self, chunk: u64, vector: &[f32]) -> Vec<f32> {
        let Some(direction) = QueryVector::new(vector, self.dimension) else { return Vec::new() };
        for part in &self.segments {
            if let Some(at) = part.segment.find(chunk).filter(|at| part.chunks.contains(*at)) {
                return direction.window_similarities(&part.segment.vectors, at);
            }
        }
        Vec::new()
    }

    pub fn documents(&self) -> usize {
        self.stats.documents
    }

    pub fn chunks(&self) -> usize {
        self.stats.chunks
    }

    pub fn vectors(&self) -> usize {
        self.stats.vectors
    }

    /// Memory of this snapshot in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.segments.iter().map(|part| part.bytes()).sum()
    }

    /// Computes the scores of the search that did not return a candidate.
    fn complete(
        &self,
        candidates: &mut [Candidate<ChunkLocation>],
        weighed: &WeightedQuery,
        direction: Option<&QueryVector>,
    ) {
        if let Some(direction) = direction {
            for candidate in candidates.iter_mut().filter(|candidate| candidate.evidence.similarity.is_none()) {
                let (part, chunk) = candidate.location;
                let vectors = &self.segments[part as usize].segment.vectors;
                candidate.evidence.similarity = direction.similarity(vectors, chunk as usize);
            }
        }
        // Posting lists are read forwards.
        candidates.sort_unstable_by_key(|candidate| candidate.location);
        for same_part in candidates.chunk_by_mut(|a, b| a.location.0 == b.location.0) {
            let mut unknown: Vec<&mut Candidate<ChunkLocation>> =
                same_part.iter_mut().filter(|candidate| candidate.evidence.word_rank.is_none()).collect();
            let chunks: Vec<u32> = unknown.iter().map(|candidate| candidate.location.1).collect();
            let Some(first) = unknown.first() else { continue };
            let scores = weighed.score(first.location.0 as usize, &chunks);
            for (candidate, (score, matched)) in unknown.iter_mut().zip(scores) {
                candidate.evidence = candidate.evidence.with_words(&weighed.weights, score, matched);
            }
        }
    }

    fn hit(&self, candidate: &Candidate<ChunkLocation>, relevance: f32) -> Hit {
        let (part, chunk) = candidate.location;
        let segment = &self.segments[part as usize].segment;
        Hit {
            chunk: candidate.key,
            document: segment.documents[segment.owners[chunk as usize] as usize],
            relevance,
            words: candidate.evidence.words,
            similarity: candidate.evidence.similarity.unwrap_or(0.0),
        }
    }
}
