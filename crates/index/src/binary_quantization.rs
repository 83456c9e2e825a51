//! Binary quantization with Hamming prefilter.
//!
//! Each bit is the sign of a component relative to the mean of all vectors. The vectors with the smallest Hamming
//! distance to the query are then compared in full. A query reads an eighth of the bytes of a full scan of the codes.

use crate::kernel::{Kernel, SKETCH_GROUP, ZERO};

/// Binary sketches, interleaved in groups of eight, word by word.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct BinarySketches {
    /// 64-bit words per sketch.
    width: usize,
    bits: Vec<u64>,
    mean: Vec<f32>,
}

/// Number of vectors sampled for the mean.
const MEAN_SAMPLE: usize = 10_000;
/// Sketches per step; the threshold is updated between steps.
const SKETCHES_PER_STEP: usize = 1024;

/// The nearest so far, with a threshold that falls as nearer ones are added.
struct NearestSketches {
    wanted: usize,
    threshold: u16,
    /// Number of entries per distance.
    counts: Vec<u32>,
    entries: Vec<(u16, u32)>,
}

// === impl Near ===

impl NearestSketches {
    /// Drops entries beyond the `wanted` nearest.
    fn prune(&mut self) {
        let mut sum = 0;
        let bar = self.counts.iter().position(|count| {
            sum += *count as usize;
            sum >= self.wanted
        });
        if let Some(bar) = bar {
            self.threshold = bar as u16;
            self.counts[bar + 1..].fill(0);
            self.entries.retain(|(difference, _)| usize::from(*difference) <= bar);
        }
    }
}

// === impl Sketches ===

impl BinarySketches {
    /// `codes` has `stride` codes per vector, of which the first `dimension` count.
    pub(crate) fn new(codes: &[u8], scales: &[f32], stride: usize, dimension: usize) -> BinarySketches {
        let width = dimension.div_ceil(64);
        let every = scales.len().div_ceil(MEAN_SAMPLE).max(1);
        let value = |code: &u8, scale: f32| f32::from(i16::from(*code) - i16::from(ZERO)) * scale;
        let mut middle = vec![0.0; dimension];
        let sampled = scales.len().div_ceil(every) as f32;
        for (codes, scale) in codes.chunks_exact(stride).zip(scales).step_by(every) {
            for (middle, code) in middle.iter_mut().zip(codes) {
                *middle += value(code, *scale) / sampled;
            }
        }
        let mut bits = vec![0; scales.len().next_multiple_of(SKETCH_GROUP) * width];
        for (at, (codes, scale)) in codes.chunks_exact(stride).zip(scales).enumerate() {
            let group = at / SKETCH_GROUP * SKETCH_GROUP * width + at % SKETCH_GROUP;
            for (number, (code, middle)) in codes.iter().zip(&middle).enumerate() {
                bits[group + number / 64 * SKETCH_GROUP] |= u64::from(value(code, *scale) > *middle) << (number % 64);
            }
        }
        BinarySketches { width, bits, mean: middle }
    }

    /// The nearest allowed vectors by Hamming distance, about `wanted` of them.
    pub(crate) fn nearest(
        &self,
        kernel: Kernel,
        direction: &[f32],
        vectors: usize,
        wanted: usize,
        allowed: impl Fn(usize) -> bool,
    ) -> Vec<u32> {
        let mut query = vec![0; self.width];
        for (at, (number, middle)) in direction.iter().zip(&self.mean).enumerate() {
            query[at / 64] |= u64::from(number > middle) << (at % 64);
        }
        let mut near =
            NearestSketches { wanted, threshold: u16::MAX, counts: vec![0; self.width * 64 + 1], entries: Vec::new() };
        let mut differences = [0; SKETCHES_PER_STEP];
        for from in (0..vectors).step_by(SKETCHES_PER_STEP) {
            let count = SKETCHES_PER_STEP.min(vectors - from);
            let differences = &mut differences[..count.next_multiple_of(SKETCH_GROUP)];
            kernel.hamming_distances(&self.bits[from * self.width..], &query, differences);
            for (group, differences) in differences[..count].chunks(32).enumerate() {
                if !differences.iter().fold(false, |any, difference| any | (*difference <= near.threshold)) {
                    continue;
                }
                for (at, difference) in differences.iter().enumerate() {
                    let at = from + group * 32 + at;
                    if *difference <= near.threshold && allowed(at) {
                        near.counts[usize::from(*difference)] += 1;
                        near.entries.push((*difference, at as u32));
                    }
                }
            }
            if near.entries.len() > 2 * wanted {
                near.prune();
            }
        }
        near.prune();
        near.entries.into_iter().map(|(_, at)| at).collect()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bits.len() * 8 + self.mean.len() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_by_bits_are_found_among_those_allowed() {
        let (dimension, stride, vectors) = (70, 128, 3000);
        let mut state = 7_u64;
        let codes: Vec<u8> = (0..vectors * stride)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            })
            .collect();
        let sketches = BinarySketches::new(&codes, &vec![0.01; vectors], stride, dimension);
        let own = |at: usize| -> Vec<f32> {
            codes[at * stride..][..dimension].iter().map(|code| (f32::from(*code) - 128.0) * 0.01).collect()
        };
        for kernel in Kernel::supported() {
            for at in [0, 7, 8, 1023, 1024, 2999] {
                assert_eq!(sketches.nearest(*kernel, &own(at), vectors, 1, |_| true), [at as u32]);
                assert!(!sketches.nearest(*kernel, &own(at), vectors, 5, |other| other != at).contains(&(at as u32)));
            }
            let near = sketches.nearest(*kernel, &own(3), vectors, 100, |_| true);
            assert!((100..400).contains(&near.len()));
            assert_eq!(sketches.nearest(*kernel, &own(3), vectors, vectors, |_| true).len(), vectors);
            assert_eq!(sketches.nearest(*kernel, &own(3), vectors, 100, |other| other < 3), [0, 1, 2]);
        }
    }
}
