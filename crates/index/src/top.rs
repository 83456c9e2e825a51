//! Top-k selection with a rising threshold.

/// A chunk of a segment with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found {
    pub(crate) score: f32,
    pub(crate) part: u32,
    pub(crate) chunk: u32,
    /// Bit mask of the matched query words.
    pub(crate) matched: u32,
}

/// The `depth` best. A chunk that is offered several times counts with its best score.
#[derive(Debug)]
pub(crate) struct Top {
    depth: usize,
    held: Vec<Found>,
    bar: f32,
    /// Whether a chunk may be offered several times.
    has_copies: bool,
}

// === impl Top ===

impl Top {
    pub(crate) fn new(depth: usize, floor: f32) -> Top {
        Top { depth, held: Vec::with_capacity(4 * depth.min(4096) + 16), bar: floor, has_copies: false }
    }

    pub(crate) fn with_copies(depth: usize, floor: f32) -> Top {
        Top { has_copies: true, ..Top::new(depth, floor) }
    }

    /// Scores at or below this threshold need not be offered.
    pub(crate) fn bar(&self) -> f32 {
        self.bar
    }

    pub(crate) fn offer(&mut self, found: Found) {
        if found.score > self.bar {
            self.held.push(found);
            if self.held.len() >= 4 * self.depth + 16 {
                self.shrink();
            }
        }
    }

    /// Best first; ties by segment and chunk.
    pub(crate) fn finish(mut self) -> Vec<Found> {
        self.shrink();
        self.held.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then((a.part, a.chunk).cmp(&(b.part, b.chunk))));
        self.held
    }

    fn shrink(&mut self) {
        if self.has_copies {
            self.held
                .sort_unstable_by(|a, b| (a.part, a.chunk).cmp(&(b.part, b.chunk)).then(b.score.total_cmp(&a.score)));
            self.held.dedup_by_key(|found| (found.part, found.chunk));
        }
        if self.depth == 0 {
            return self.held.clear();
        }
        if self.held.len() > self.depth {
            let (_, last, _) = self.held.select_nth_unstable_by(self.depth - 1, |a, b| {
                b.score.total_cmp(&a.score).then((a.part, a.chunk).cmp(&(b.part, b.chunk)))
            });
            self.bar = self.bar.max(last.score);
            self.held.truncate(self.depth);
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
            let mut top = Top::with_copies(depth, 0.0);
            for &(chunk, score) in &scores {
                top.offer(Found { score: score as f32, part: 0, chunk, matched: 0 });
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
