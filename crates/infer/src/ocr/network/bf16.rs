//! Convolutions with bf16 dot products (AVX-512 BF16).
//!
//! Two input channels share one lane, so one instruction replaces two. Products are accumulated in f32; weights and
//! pixels are rounded to 8-bit fractions, which does not affect the result (the word F1 score over the test pages is
//! the same to three digits).

use std::arch::x86_64::{
    __m512, __m512bh, __m512i, _mm512_dpbf16_ps, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_set1_ps,
    _mm512_storeu_ps,
};

use super::convolution::{Area, CHANNELS_PER_BLOCK, MAX_FULL_TILE_WEIGHTS, PIXELS_PER_TILE, Window};
use super::tensor::Tensor;

/// Weights indexed by block of output channels, pair of input channels, row and column, channel in the block.
#[derive(Debug)]
pub(crate) struct Bf16Weights {
    weights: Vec<u32>,
    inputs: usize,
}

const LANES: usize = 16;

fn is_supported() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512vl")
        && std::arch::is_x86_feature_detected!("avx512dq")
        && std::arch::is_x86_feature_detected!("avx512bf16")
}

impl Bf16Weights {
    /// `weights` is indexed by output channel, input channel, row and column. `None` without CPU support.
    pub(crate) fn new(window: Window, inputs: usize, outputs: usize, weights: &[f32]) -> Option<Bf16Weights> {
        if !is_supported() {
            return None;
        }
        let places = window.height * window.width;
        let terms = inputs.div_ceil(2) * places;
        let mut packed = vec![0u32; outputs.div_ceil(CHANNELS_PER_BLOCK) * terms * CHANNELS_PER_BLOCK];
        for (index, weight) in weights.iter().enumerate() {
            let (output, input, place) = (index / places / inputs, index / places % inputs, index % places);
            let term = input / 2 * places + place;
            let pair = &mut packed
                [(output / CHANNELS_PER_BLOCK * terms + term) * CHANNELS_PER_BLOCK + output % CHANNELS_PER_BLOCK];
            *pair |= if input % 2 == 0 { to_bf16(*weight) >> 16 } else { to_bf16(*weight) };
        }
        Some(Bf16Weights { weights: packed, inputs })
    }

    #[expect(unsafe_code, reason = "calling a function for a processor's features; `new` has looked for them")]
    pub(crate) fn run(&self, window: Window, bias: &[f32], input: &Tensor, area: Area, output: &mut [f32]) {
        // SAFETY: `Pairs` exists only if `is_supported` found all of these features.
        unsafe { run(self, window, bias, input, area, output) }
    }
}

/// Rounds an f32 to bf16 in the upper 16 bits; the lower 16 bits are zero.
#[inline(always)]
fn to_bf16(number: f32) -> u32 {
    let bits = number.to_bits();
    bits.wrapping_add(0x7fff + (bits >> 16 & 1)) & 0xffff_0000
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")]
fn run(pairs: &Bf16Weights, window: Window, bias: &[f32], input: &Tensor, area: Area, output: &mut [f32]) {
    let lines = pairs.inputs.div_ceil(2) * window.height * window.stride_x;
    let piece = if lines > MAX_FULL_TILE_WEIGHTS { PIXELS_PER_TILE / 2 } else { PIXELS_PER_TILE };
    let length = piece + window.overhang();
    let mut copy = vec![0u32; lines * length + 2 * PIXELS_PER_TILE];
    let offsets = window.offsets(pairs.inputs.div_ceil(2), length);
    let group = window.stride_x * length;
    let (mut even, mut odd) = (vec![0.0f32; group], vec![0.0f32; group]);
    let mut sums = [0.0f32; CHANNELS_PER_BLOCK * PIXELS_PER_TILE];
    for row in 0..area.rows {
        for first in (0..area.columns).step_by(piece) {
            let pixels = piece.min(area.columns - first);
            let mut planes = input.planes();
            for copy in copy.chunks_exact_mut(window.height * group).take(pairs.inputs.div_ceil(2)) {
                let (one, other) = (planes.next().unwrap_or_default(), planes.next());
                if window == Window::POINT {
                    let here = first..first + pixels;
                    match other {
                        Some(other) => interleave(copy, &one[here.clone()], &other[here]),
                        None => interleave(copy, &one[here], &odd),
                    }
                    continue;
                }
                for (inner, copy) in copy.chunks_exact_mut(group).enumerate() {
                    let line = row * window.stride_y + inner;
                    window.copy_row(one, area.input_width, line, first, pixels, &mut even, length);
                    match other {
                        Some(other) => window.copy_row(other, area.input_width, line, first, pixels, &mut odd, length),
                        None => odd.fill(0.0),
                    }
                    interleave(copy, &even, &odd);
                }
            }
            let blocks = pairs
                .weights
                .chunks_exact(offsets.len() * CHANNELS_PER_BLOCK)
                .zip(bias.chunks_exact(CHANNELS_PER_BLOCK));
            for (block, (weights, bias)) in blocks.enumerate() {
                for place in (0..pixels).step_by(2 * LANES) {
                    let (copy, here) = (&copy[place..], first + place);
                    let rest = (pixels - place).min(2 * LANES);
                    match area.place(block, row, here) {
                        // Writes directly to the output.
                        Some(start) if rest == 2 * LANES => {
                            sum(copy, &offsets, weights, bias, &mut output[start..], area.rows * area.columns);
                        }
                        _ => {
                            sum(copy, &offsets, weights, bias, &mut sums, PIXELS_PER_TILE);
                            area.put(block, row, here, rest, &sums, output);
                        }
                    }
                }
            }
        }
    }
}

/// Interleaves the pixels of two channels.
#[inline(always)]
fn interleave(pairs: &mut [u32], even: &[f32], odd: &[f32]) {
    for (pair, (even, odd)) in pairs.iter_mut().zip(even.iter().zip(odd)) {
        *pair = to_bf16(*even) >> 16 | to_bf16(*odd);
    }
}

/// Accumulates a block of channels for two registers of pixels; `apart` is the stride between channels.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")]
fn sum(copy: &[u32], offsets: &[usize], weights: &[u32], bias: &[f32], sums: &mut [f32], apart: usize) {
    let mut left: [__m512; CHANNELS_PER_BLOCK] = [_mm512_set1_ps(0.0); CHANNELS_PER_BLOCK];
    for (sum, bias) in left.iter_mut().zip(bias) {
        *sum = _mm512_set1_ps(*bias);
    }
    let mut right = left;
    for (offset, weights) in offsets.iter().zip(weights.chunks_exact(CHANNELS_PER_BLOCK)) {
        let (one, two) = load(&copy[*offset..]);
        for channel in 0..CHANNELS_PER_BLOCK {
            let weight = pair(_mm512_set1_epi32(weights[channel].cast_signed()));
            left[channel] = _mm512_dpbf16_ps(left[channel], one, weight);
            right[channel] = _mm512_dpbf16_ps(right[channel], two, weight);
        }
    }
    for channel in 0..CHANNELS_PER_BLOCK {
        store(left[channel], &mut sums[channel * apart..]);
        store(right[channel], &mut sums[channel * apart + LANES..]);
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
#[expect(unsafe_code, reason = "loads from a slice whose length was checked")]
fn load(pairs: &[u32]) -> (__m512bh, __m512bh) {
    let pairs: &[u32; 2 * LANES] = pairs.first_chunk().expect("two whole registers");
    // SAFETY: thirty-two numbers are twice the 64 bytes that are read; no alignment is required.
    let (one, two) =
        unsafe { (_mm512_loadu_si512(pairs.as_ptr().cast()), _mm512_loadu_si512(pairs[LANES..].as_ptr().cast())) };
    (pair(one), pair(two))
}

/// Reinterprets the bits as the operand type of the dot product.
#[inline]
#[target_feature(enable = "avx512f")]
#[expect(unsafe_code, reason = "there is no other way from one type of register to the other")]
fn pair(bits: __m512i) -> __m512bh {
    // SAFETY: both are 64-byte registers for which any bits are valid.
    unsafe { std::mem::transmute(bits) }
}

#[inline]
#[target_feature(enable = "avx512f")]
#[expect(unsafe_code, reason = "a store to a slice whose length was checked")]
fn store(numbers: __m512, out: &mut [f32]) {
    let out: &mut [f32; LANES] = out.first_chunk_mut().expect("a whole register");
    // SAFETY: sixteen numbers are the 64 bytes that are written; no alignment is required.
    unsafe { _mm512_storeu_ps(out.as_mut_ptr(), numbers) }
}
