//! BM25 scoring over external posting lists.
//!
//! Lists are read in parallel, a window of keys at a time, so that the sums stay in the L1 cache. Words with the
//! lowest weight are added first, as in the index: chunks with the same words have bit-identical scores.

use crate::term_weight::QueryWeights;

/// Keys per window: their sums are 32 KiB. A multiple of 64.
const WINDOW: usize = 4096;

/// A chunk that contains words of the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ScoredChunk {
    pub(super) key: u64,
    pub(super) score: f32,
    /// Bit mask of the matched words.
    pub(super) matched: u32,
}

/// The decoded lists of one form.
#[derive(Debug, Default)]
pub(super) struct FormPostings {
    /// Number of live chunks that have the form.
    pub(super) document_frequency: usize,
    /// Allowed chunks, sorted by key, with their saturated term frequency.
    pub(super) frequencies: Vec<(u64, f32)>,
}

struct WeightedPostings<'a> {
    rest: &'a [(u64, f32)],
    weight: f32,
    bit: u32,
}

struct Window {
    sums: Vec<f32>,
    matched: Vec<u32>,
    /// Bit mask of the slots with a value.
    touched: Vec<u64>,
}

/// All chunks that have any of the words, sorted by key. `lists` has the lists of each word's forms.
pub(super) fn score(weights: &QueryWeights, lists: &[Vec<&FormPostings>]) -> Vec<ScoredChunk> {
    let words = lists.iter().enumerate();
    let readers = words.flat_map(|(word, lists)| {
        let (weight, bit) = (weights.weight(word), weights.bit(word));
        lists.iter().map(move |list| WeightedPostings { rest: &list.frequencies, weight, bit })
    });
    let mut readers: Vec<WeightedPostings> = readers.collect();
    readers.sort_by(|a, b| a.weight.total_cmp(&b.weight));
    let mut window =
        Window { sums: vec![0.0; WINDOW], matched: vec![0; WINDOW], touched: vec![0; WINDOW / u64::BITS as usize] };
    let mut scored = Vec::new();
    loop {
        readers.retain(|reader| !reader.rest.is_empty());
        let Some(from) = readers.iter().filter_map(|reader| reader.rest.first()).map(|(key, _)| *key).min() else {
            return scored;
        };
        for reader in &mut readers {
            window.add(reader, from);
        }
        window.drain_into(&mut scored, from);
    }
}

// === impl Counted ===

impl FormPostings {
    /// The key ranges of a form's lists may overlap.
    pub(super) fn sort(&mut self) {
        if !self.frequencies.is_sorted_by_key(|(key, _)| *key) {
            self.frequencies.sort_by_key(|(key, _)| *key);
        }
    }
}

// === impl Window ===

impl Window {
    /// Consumes the entries of a list that fall into the window.
    fn add(&mut self, reader: &mut WeightedPostings, from: u64) {
        let mut read = 0;
        for (key, count) in reader.rest {
            let at = key - from;
            if at >= WINDOW as u64 {
                break;
            }
            let at = at as usize;
            self.sums[at] += reader.weight * count;
            self.matched[at] |= reader.bit;
            self.touched[at / 64] |= 1 << (at % 64);
            read += 1;
        }
        reader.rest = &reader.rest[read..];
    }

    fn drain_into(&mut self, scored: &mut Vec<ScoredChunk>, from: u64) {
        for (block, touched) in self.touched.iter_mut().enumerate() {
            while *touched != 0 {
                let at = block * 64 + touched.trailing_zeros() as usize;
                *touched &= *touched - 1;
                scored.push(ScoredChunk { key: from + at as u64, score: self.sums[at], matched: self.matched[at] });
                (self.sums[at], self.matched[at]) = (0.0, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query_terms::QueryTerm;
    use crate::term_weight::TermWeight;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn key() -> impl Strategy<Value = u64> {
        prop_oneof![0_u64..100, 0_u64..20_000, any::<u64>(), u64::MAX - 5000..]
    }

    /// Uses integers, because proptest's float sampler fails on its own rounding after many draws.
    fn weight() -> impl Strategy<Value = f32> {
        (100_u16..2000).prop_map(|thousandths| f32::from(thousandths) / 1000.0)
    }

    proptest! {
        #[test]
        fn every_chunk_has_the_sum_of_its_words(
            words in prop::collection::vec((1_usize..900, prop::collection::vec((key(), weight()), 0..60)), 0..40),
        ) {
            let term = QueryTerm::of_form("word");
            let lists: Vec<FormPostings> = words
                .into_iter()
                .map(|(having, mut counts)| {
                    counts.sort_by_key(|(key, _)| *key);
                    counts.dedup_by_key(|(key, _)| *key);
                    FormPostings { document_frequency: having, frequencies: counts }
                })
                .collect();
            let words = lists.iter().map(|list| (TermWeight::new(&term, 1000, list.document_frequency), vec![list])).collect();
            let (weights, lists) = QueryWeights::sort(words);
            let mut wanted: BTreeMap<u64, (f64, u32)> = BTreeMap::new();
            for (word, lists) in lists.iter().enumerate() {
                for (key, count) in lists.iter().flat_map(|list| &list.frequencies) {
                    let (sum, matched) = wanted.entry(*key).or_default();
                    *sum += f64::from(weights.weight(word) * count);
                    *matched |= weights.bit(word);
                }
            }
            let scored = score(&weights, &lists);
            prop_assert_eq!(scored.len(), wanted.len());
            for (scored, (key, (sum, matched))) in scored.iter().zip(wanted) {
                prop_assert_eq!((scored.key, scored.matched), (key, matched));
                prop_assert!((f64::from(scored.score) - sum).abs() < 1e-3, "{:?} {}", scored, sum);
            }
        }
    }
}
