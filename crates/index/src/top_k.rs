//! Top-k selection with a rising threshold.

/// A chunk of a segment with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ScoredHit {
    pub(crate) score: f32,
    pub(crate) segment: u32,
    pub(crate) chunk: u32,
    /// Bit mask of the matched query words.
    pub(crate) matched: u32,
}

/// The `depth` best. A chunk that is offered several times counts with its best score.
#[derive(Debug)]
pub(crate) struct TopK {
    depth: usize,
    entries: Vec<ScoredHit>,
    threshold: f32,
    /// Whether a chunk may be offered several times.
    has_duplicates: bool,
}

// === impl Top ===

impl TopK {
    pub(crate) fn new(depth: usize, floor: f32) -> TopK {
        TopK { depth, entries: Vec::with_capacity(4 * depth.min(4096) + 16), threshold: floor, has_duplicates: false }
    }

    pub(crate) fn with_duplicates(depth: usize, floor: f32) -> TopK {
        TopK { has_duplicates: true, ..TopK::new(depth, floor) }
    }

    /// Scores at or below this threshold need not be offered.
    pub(crate) fn threshold(&self) -> f32 {
        self.threshold
    }

    pub(crate) fn push(&mut self, found: ScoredHit) {
        if found.score > self.threshold {
            self.entries.push(found);
            if self.entries.len() >= 4 * self.depth + 16 {
                self.shrink();
            }
        }
    }

    /// Best first; ties by segment and chunk.
    pub(crate) fn finish(mut self) -> Vec<ScoredHit> {
        self.shrink();
        self.entries
            .sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then((a.segment, a.chunk).cmp(&(b.segment, b.chunk))));
        self.entries
    }

    fn shrink(&mut self) {
        if self.has_duplicates {
            self.entries.sort_unstable_by(|a, b| {
                (a.segment, a.chunk).cmp(&(b.segment, b.chunk)).then(b.score.total_cmp(&a.score))
            });
            self.entries.dedup_by_key(|found| (found.segment, found.chunk));
        }
        if self.depth == 0 {
            return self.entries.clear();
        }
        if self.entries.len() > self.depth {
            let (_, last, _) = self.entries.select_nth_unstable_by(self.depth - 1, |a, b| {
                b.score.total_cmp(&a.score).then((a.segment, a.chunk).cmp(&(b.segment, b.chunk)))
            });
            self.threshold = self.threshold.max(last.score);
            self.entries.truncate(self.depth);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_best_are_kept(scores in prop::collection::vec((0_u32..50, 0_u32..1000), 0..400), depth in 0_usize..20) {
            let mut top = TopK::with_duplicates(depth, 0.0);
            for &(chunk, score) in &scores {
                top.push(ScoredHit { score: score as f32, segment: 0, chunk, matched: 0 });
            }
            let mut best = std::collections::BTreeMap::new();
            for &(chunk, score) in scores.iter().filter(|(_, score)| *score > 0) {
                let held = best.entry(chunk).or_insert(0);
                *held = score.max(*held);
            }
            let mut wanted: Vec<u32> = best.into_values().collect();
            wanted.sort_unstable_by(|a, b| b.cmp(a));
            wanted.truncate(depth);
            prop_assert_eq!(top.finish().iter().map(|found| found.score as u32).collect::<Vec<_>>(), wanted);
        }
    }
}
