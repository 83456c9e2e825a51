//! Multi-head attention with twelve heads.

use std::arch::x86_64::*;

use super::WIDTH;
use super::math::{exp, largest, sum};
use super::simd_io::{LANES, load, store};

const HEADS: usize = 12;
/// Dimension of one head.
const HEAD: usize = WIDTH / HEADS;
/// Query, key and value of a token.
const ROW: usize = 3 * WIDTH;

/// `looked` has one row of query, key and value per token; `attended` receives one row per token.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,fma")]
pub(super) fn attend(looked: &[f32], tokens: usize, attended: &mut [f32]) {
    // Pads the last register; padding tokens get no weight.
    let padded = tokens.next_multiple_of(LANES);
    let mut keys = vec![0.0; HEAD * padded];
    let mut weights = vec![0.0; padded];
    for head in 0..HEADS {
        let at = head * HEAD;
        // Keys are transposed, so that one instruction multiplies a query with sixteen keys.
        for (token, row) in looked.chunks_exact(ROW).enumerate() {
            for (index, number) in row[WIDTH + at..][..HEAD].iter().enumerate() {
                keys[index * padded + token] = *number;
            }
        }
        for (row, attended) in looked.chunks_exact(ROW).zip(attended.chunks_exact_mut(WIDTH)) {
            compare(&row[at..][..HEAD], &keys, &mut weights);
            weights[tokens..].fill(f32::MIN);
            let most = largest(&weights, |weight| weight);
            for weight in &mut weights {
                *weight = exp(*weight - most);
            }
            weights[tokens..].fill(0.0);
            let share = 1.0 / sum(&weights);
            weighted_sum(&weights[..tokens], looked, at, share, &mut attended[at..][..HEAD]);
        }
    }
}

/// Dot products of a query with all keys.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,fma")]
fn compare(query: &[f32], keys: &[f32], weights: &mut [f32]) {
    let (padded, mut start) = (weights.len(), 0);
    // Several independent registers, because a single accumulator is latency-bound.
    while start + 4 * LANES <= padded {
        compare_some::<4>(query, keys, start, weights);
        start += 4 * LANES;
    }
    while start < padded {
        compare_some::<1>(query, keys, start, weights);
        start += LANES;
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,fma")]
fn compare_some<const REGISTERS: usize>(query: &[f32], keys: &[f32], start: usize, weights: &mut [f32]) {
    let mut fits = [_mm512_setzero_ps(); REGISTERS];
    for (number, keys) in query.iter().zip(keys.chunks_exact(weights.len())) {
        let number = _mm512_set1_ps(*number);
        let keys = &keys[start..][..REGISTERS * LANES];
        for (index, fit) in fits.iter_mut().enumerate() {
            *fit = _mm512_fmadd_ps(number, load(&keys[index * LANES..]), *fit);
        }
    }
    let scale = _mm512_set1_ps((HEAD as f32).sqrt().recip());
    for (index, fit) in fits.into_iter().enumerate() {
        store(_mm512_mul_ps(fit, scale), &mut weights[start + index * LANES..]);
    }
}

/// Weighted sum of the values, times `share`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,fma")]
fn weighted_sum(weights: &[f32], looked: &[f32], at: usize, share: f32, out: &mut [f32]) {
    // Four tokens in parallel, for the same reason.
    let mut sums = [[_mm512_setzero_ps(); 2]; 4];
    for (weights, rows) in weights.chunks(4).zip(looked.chunks(4 * ROW)) {
        for (index, sums) in sums.iter_mut().enumerate().take(weights.len()) {
            let weight = _mm512_set1_ps(weights[index]);
            let values = &rows[index * ROW + 2 * WIDTH + at..][..HEAD];
            sums[0] = _mm512_fmadd_ps(weight, load(values), sums[0]);
            sums[1] = _mm512_fmadd_ps(weight, load(&values[LANES..]), sums[1]);
        }
    }
    let share = _mm512_set1_ps(share);
    for half in 0..2 {
        let [one, two, three, four] = sums.map(|sums| sums[half]);
        let all = _mm512_add_ps(_mm512_add_ps(one, two), _mm512_add_ps(three, four));
        store(_mm512_mul_ps(all, share), &mut out[half * LANES..]);
    }
}
