//! BM25 search over packed posting lists (MaxScore).
//!
//! Chunks are scored a window at a time, so that the sums stay in the L1 cache. Non-essential words, which cannot
//! lift a chunk above the threshold without further words, are read only in windows where a chunk is close to it. A
//! query reads less than two bytes for each chunk that has one of its words. That is little compared with vector
//! search: memory bandwidth is not the limit.

use crate::bitmap::Bitmap;
use crate::inverted_index::InvertedIndex;
use crate::postings::{Cursor, PostingList};
use crate::query_terms::QueryTerm;
use crate::term_weight::{K1, LengthNorm, QueryWeights, TermWeight};
use crate::top_k::{ScoredHit, TopK};

/// Chunks per window: their sums are 32 KiB.
const WINDOW: usize = 4096;
/// If fewer than one in this many chunks is allowed, the search seeks to each of them.
const SELECTIVE_FILTER_RATIO: usize = 32;

/// The posting lists of one segment with its filter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LexicalView<'a> {
    pub(crate) words: &'a InvertedIndex,
    /// Removed chunks, sorted.
    pub(crate) removed: &'a [u32],
    /// Chunks that may be returned; `None` means all.
    pub(crate) allowed: Option<&'a Bitmap>,
}

/// The words of a query, weighted for one snapshot.
#[derive(Debug)]
pub(crate) struct WeightedQuery<'a> {
    views: &'a [LexicalView<'a>],
    /// Posting lists of each word's forms, in the order of `weights`: segment number and list.
    lists: Vec<Vec<(u32, PostingList<'a>)>>,
    pub(crate) weights: QueryWeights,
    norm: LengthNorm,
}

struct PostingsReader<'a> {
    cursor: Cursor<'a>,
    weight: f32,
    bit: u32,
    /// Upper bound of its contribution to any chunk.
    bound: f32,
}

// === impl Weighed ===

impl<'a> WeightedQuery<'a> {
    /// `chunks` and `length` are the totals of all segments, without removed chunks.
    pub(crate) fn new(
        views: &'a [LexicalView<'a>],
        terms: &[QueryTerm],
        chunks: usize,
        length: u64,
    ) -> WeightedQuery<'a> {
        let words = terms.iter().map(|term| {
            let mut lists = Vec::new();
            let mut having = 0;
            for (part, view) in views.iter().enumerate() {
                for form in &term.forms {
                    if let Some(list) = view.words.dictionary.find(form.as_bytes()) {
                        having += list.len - count_contained(list, view.removed);
                        lists.push((part as u32, list));
                    }
                }
            }
            (TermWeight::new(term, chunks, having), lists)
        });
        let (weights, lists) = QueryWeights::sort(words.collect());
        WeightedQuery { views, lists, weights, norm: LengthNorm::new(chunks, length) }
    }

    /// The `depth` best chunks, best first.
    pub(crate) fn search(&self, depth: usize) -> Vec<ScoredHit> {
        let mut top = TopK::new(depth, 0.0);
        let mut sums = vec![0.0; WINDOW];
        let mut matched = vec![0; WINDOW];
        for (part, view) in self.views.iter().enumerate() {
            match view.allowed {
                Some(allowed) if allowed.count() * SELECTIVE_FILTER_RATIO < view.words.lengths.len() => {
                    let chunks: Vec<u32> = allowed.iter().map(|chunk| chunk as u32).collect();
                    for (chunk, (score, matched)) in chunks.iter().zip(self.score(part, &chunks)) {
                        top.push(ScoredHit { score, segment: part as u32, chunk: *chunk, matched });
                    }
                }
                _ => self.search_segment(part, &mut top, &mut sums, &mut matched),
            }
        }
        top.finish()
    }

    /// Scores the given chunks of a segment, which must be sorted.
    pub(crate) fn score(&self, part: usize, chunks: &[u32]) -> Vec<(f32, u32)> {
        let mut scores = vec![(0.0, 0); chunks.len()];
        for mut reader in self.readers(part) {
            for (chunk, (score, matched)) in chunks.iter().zip(&mut scores) {
                match reader.cursor.seek(*chunk) {
                    None => break,
                    Some(found) if found == *chunk => {
                        let length = self.views[part].words.lengths[*chunk as usize];
                        *score += reader.weight * self.norm.saturate(reader.cursor.count(), length);
                        *matched |= reader.bit;
                    }
                    Some(_) => {}
                }
            }
        }
        scores
    }

    fn readers(&self, part: usize) -> Vec<PostingsReader<'a>> {
        let words = self.lists.iter().enumerate();
        words
            .flat_map(|(word, lists)| {
                let (weight, bit) = (self.weights.weight(word), self.weights.bit(word));
                lists.iter().filter(move |(of, _)| *of as usize == part).map(move |(_, list)| PostingsReader {
                    cursor: Cursor::new(*list),
                    weight,
                    bit,
                    // Slightly larger than the true bound, to allow for rounding of sums.
                    bound: 1.0001 * weight * score_bound(self.norm, *list),
                })
            })
            .collect()
    }

    fn search_segment(&self, part: usize, top: &mut TopK, sums: &mut [f32], matched: &mut [u32]) {
        let LexicalView { words, allowed, .. } = self.views[part];
        let chunks = words.lengths.len();
        let mut readers = self.readers(part);
        readers.sort_by(|a, b| a.bound.total_cmp(&b.bound));
        let mut from = 0;
        while from < chunks {
            // Readers from `essential` on can lift a chunk above the threshold.
            let mut rest = 0.0;
            let mut essential = 0;
            while essential < readers.len() && rest + readers[essential].bound <= top.threshold() {
                rest += readers[essential].bound;
                essential += 1;
            }
            let next = readers[essential..].iter_mut().filter_map(|reader| reader.cursor.seek(from as u32)).min();
            let Some(next) = next else { return };
            from = next as usize;
            let to = (from + WINDOW).min(chunks);
            if allowed.is_some_and(|allowed| !allowed.any_in(from, to)) {
                from = to;
                continue;
            }
            let (sums, matched) = (&mut sums[..to - from], &mut matched[..to - from]);
            for reader in &mut readers[essential..] {
                self.add(reader, words, from, to, sums, matched);
            }
            if essential > 0 && any_above(sums, top.threshold() - rest) {
                for reader in &mut readers[..essential] {
                    reader.cursor.seek(from as u32);
                    self.add(reader, words, from, to, sums, matched);
                }
            }
            collect_window(part, from, allowed, sums, matched, top);
            sums.fill(0.0);
            matched.fill(0);
            from = to;
        }
    }

    fn add(
        &self,
        reader: &mut PostingsReader,
        words: &InvertedIndex,
        from: usize,
        to: usize,
        sums: &mut [f32],
        matched: &mut [u32],
    ) {
        let (weight, bit) = (reader.weight, reader.bit);
        let lengths = &words.lengths[from..to];
        reader.cursor.read_until(to as u32, |chunk, count| {
            let at = chunk as usize - from;
            sums[at] += weight * self.norm.saturate(count, lengths[at]);
            matched[at] |= bit;
        });
    }
}

fn collect_window(part: usize, from: usize, allowed: Option<&Bitmap>, sums: &[f32], matched: &[u32], top: &mut TopK) {
    for (block, group) in sums.chunks(16).enumerate() {
        if !any_above(group, top.threshold()) {
            continue;
        }
        for (at, score) in group.iter().enumerate() {
            let chunk = from + block * 16 + at;
            if *score > top.threshold() && allowed.is_none_or(|allowed| allowed.contains(chunk)) {
                let matched = matched[block * 16 + at];
                top.push(ScoredHit { score: *score, segment: part as u32, chunk: chunk as u32, matched });
            }
        }
    }
}

fn any_above(sums: &[f32], bar: f32) -> bool {
    sums.chunks(16).any(|group| group.iter().fold(false, |any, sum| any | (*sum > bar)))
}

/// Number of the given chunks that are in a list.
fn count_contained(list: PostingList, chunks: &[u32]) -> usize {
    if chunks.is_empty() {
        return 0;
    }
    let mut cursor = Cursor::new(list);
    let mut count = 0;
    for chunk in chunks {
        match cursor.seek(*chunk) {
            None => break,
            Some(found) => count += usize::from(found == *chunk),
        }
    }
    count
}

/// Upper bound of a list's contribution to any chunk, without its weight.
fn score_bound(norm: LengthNorm, list: PostingList) -> f32 {
    if list.blocks() < 2 {
        return K1 + 1.0;
    }
    let headers = (0..list.blocks()).filter_map(|block| list.header(block));
    headers.map(|header| norm.saturate(u32::from(header.max_count), header.min_length)).fold(0.0, f32::max)
}
