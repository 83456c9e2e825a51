//! Loads and stores of 512-bit registers with length checks, so they are safe to call.

use std::arch::x86_64::{__m512, __m512i, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_storeu_ps};

/// Numbers per register.
pub(super) const LANES: usize = 16;

#[inline]
#[target_feature(enable = "avx512f")]
#[expect(unsafe_code, reason = "a load from a slice whose length was checked")]
pub(super) fn load(numbers: &[f32]) -> __m512 {
    let numbers: &[f32; LANES] = numbers.first_chunk().expect("a whole register");
    // SAFETY: sixteen numbers are the 64 bytes that are read; no alignment is required.
    unsafe { _mm512_loadu_ps(numbers.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
#[expect(unsafe_code, reason = "a load from an array of the right size")]
pub(super) fn load_integers(numbers: &[i32; LANES]) -> __m512i {
    // SAFETY: sixteen integers are the 64 bytes that are read; no alignment is required.
    unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
#[expect(unsafe_code, reason = "a store to a slice whose length was checked")]
pub(super) fn store(numbers: __m512, out: &mut [f32]) {
    let out: &mut [f32; LANES] = out.first_chunk_mut().expect("a whole register");
    // SAFETY: sixteen numbers are the 64 bytes that are written; no alignment is required.
    unsafe { _mm512_storeu_ps(out.as_mut_ptr(), numbers) }
}
