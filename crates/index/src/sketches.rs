//! Binary quantization with Hamming prefilter.
//!
//! Each bit is the sign of a component relative to the mean of all vectors. The vectors with the smallest Hamming
//! distance to the query are then compared in full. A query reads an eighth of the bytes of a full scan of the codes.

use crate::kernel::{Kernel, TOGETHER, ZERO};

/// Binary sketches, interleaved in groups of eight, word by word.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Sketches {
    /// 64-bit words per sketch.
    width: usize,
    bits: Vec<u64>,
    middle: Vec<f32>,
}

/// Number of vectors sampled for the mean.
const SAMPLE: usize = 10_000;
/// Sketches per step; the threshold is updated between steps.
const STRIP: usize = 1024;

/// The nearest so far, with a threshold that falls as nearer ones are added.
struct Near {
    wanted: usize,
    bar: u16,
    /// Number of entries per distance.
    counts: Vec<u32>,
    held: Vec<(u16, u32)>,
}

// === impl Near ===

impl Near {
    /// Drops entries beyond the `wanted` nearest.
    fn cut(&mut self) {
        let mut sum = 0;
        let bar = self.counts.iter().position(|count| {
            sum += *count as usize;
            sum >= self.wanted
        });
        if let Some(bar) = bar {
            self.bar = bar as u16;
            self.counts[bar + 1..].fill(0);
            self.held.retain(|(difference, _)| usize::from(*difference) <= bar);
        }
    }
}

// === impl Sketches ===

impl Sketches {
    /// `codes` has `stride` codes per vector, of which the first `dimension` count.
    pub(crate) fn new(codes: &[u8], scales: &[f32], stride: usize, dimension: usize) -> Sketches {
        let width = dimension.div_ceil(64);
        let every = scales.len().div_ceil(SAMPLE).max(1);
        let value = |code: &u8, scale: f32| f32::from(i16::from(*code) - i16::from(ZERO)) * scale;
        let mut middle = vec![0.0; dimension];
        let sampled = scales.len().div_ceil(every) as f32;
        for (codes, scale) in codes.chunks_exact(stride).zip(scales).step_by(every) {
            for (middle, code) in middle.iter_mut().zip(codes) {
                *middle += value(code, *scale) / sampled;
            }
        }
        let mut bits = vec![0; scales.len().next_multiple_of(TOGETHER) * width];
        for (at, (codes, scale)) in codes.chunks_exact(stride).zip(scales).enumerate() {
            let group = at / TOGETHER * TOGETHER * width + at % TOGETHER;
            for (number, (code, middle)) in codes.iter().zip(&middle).enumerate() {
                bits[group + number / 64 * TOGETHER] |= u64::from(value(code, *scale) > *middle) << (number % 64);
            }
        }
        Sketches { width, bits, middle }
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
        for (at, (number, middle)) in direction.iter().zip(&self.middle).enumerate() {
            query[at / 64] |= u64::from(number > middle) << (at % 64);
        }
        let mut near = Near { wanted, bar: u16::MAX, counts: vec![0; self.width * 64 + 1], held: Vec::new() };
        let mut differences = [0; STRIP];
        for from in (0..vectors).step_by(STRIP) {
            let count = STRIP.min(vectors - from);
            let differences = &mut differences[..count.next_multiple_of(TOGETHER)];
            kernel.differences(&self.bits[from * self.width..], &query, differences);
            for (group, differences) in differences[..count].chunks(32).enumerate() {
                if !differences.iter().fold(false, |any, difference| any | (*difference <= near.bar)) {
                    continue;
                }
                for (at, difference) in differences.iter().enumerate() {
                    let at = from + group * 32 + at;
                    if *difference <= near.bar && allowed(at) {
                        near.counts[usize::from(*difference)] += 1;
                        near.held.push((*difference, at as u32));
                    }
                }
            }
            if near.held.len() > 2 * wanted {
                near.cut();
            }
        }
        near.cut();
        near.held.into_iter().map(|(_, at)| at).collect()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bits.len() * 8 + self.middle.len() * 4
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
        let sketches = Sketches::new(&codes, &vec![0.01; vectors], stride, dimension);
        let own = |at: usize| -> Vec<f32> {
            codes[at * stride..][..dimension].iter().map(|code| (f32::from(*code) - 128.0) * 0.01).collect()
        };
        for kernel in Kernel::all() {
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
