//! SIMD kernels: dot products of a query with many vectors, and Hamming distances to many sketches.
//!
//! Each kernel has a portable version, which is the reference for tests, and versions for SIMD instruction sets. All
//! return the same integers, bit for bit.

/// The codes of a vector are padded to a multiple of this, with [`ZERO`].
pub(crate) const LANES: usize = 64;
/// The code of zero: codes are the numbers from -127 to 127, plus this.
pub(crate) const ZERO: u8 = 128;
/// Largest absolute component of a query. With it, sums over 4096 codes fit into 32 bits.
pub(crate) const MAX_QUERY_COMPONENT: i16 = 2047;
/// Sketches are interleaved in groups of eight, word by word.
pub(crate) const SKETCH_GROUP: usize = 8;

/// Prefetch distance in vectors.
const PREFETCH_DISTANCE: usize = 6;

/// A quantized query, as long as a padded vector.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QuantizedQuery {
    components: Vec<i16>,
    /// `whole` is 16 times this plus `low`.
    high: Vec<i8>,
    low: Vec<i8>,
    /// The contribution of the offset [`ZERO`] to each product.
    zero_offset: i32,
}

/// The instruction set of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

// === impl Numbers ===

impl QuantizedQuery {
    /// `whole` has numbers from -[`MAX_QUERY_COMPONENT`] to [`MAX_QUERY_COMPONENT`], at most 4096 of them.
    pub(crate) fn new(mut whole: Vec<i16>) -> QuantizedQuery {
        whole.resize(whole.len().next_multiple_of(LANES), 0);
        let high = whole.iter().map(|number| (number >> 4) as i8).collect();
        let low = whole.iter().map(|number| (number & 15) as i8).collect();
        let shift = whole.iter().map(|number| i32::from(*number) * i32::from(ZERO)).sum();
        QuantizedQuery { components: whole, high, low, zero_offset: shift }
    }

    pub(crate) fn components(&self) -> &[i16] {
        &self.components
    }

    fn len(&self) -> usize {
        self.components.len()
    }
}

// === impl Kernel ===

impl Kernel {
    /// The best kernel for this CPU.
    pub(crate) fn detect() -> Kernel {
        Kernel::supported().last().copied().unwrap_or(Kernel::Portable)
    }

    /// All kernels that this CPU supports, the best one last.
    pub(crate) fn supported() -> &'static [Kernel] {
        #[cfg(target_arch = "x86_64")]
        {
            let has_avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt");
            let has_avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vnni")
                && is_x86_feature_detected!("avx512vpopcntdq");
            if has_avx2 && has_avx512 {
                return &[Kernel::Portable, Kernel::Avx2, Kernel::Avx512];
            }
            if has_avx2 {
                return &[Kernel::Portable, Kernel::Avx2];
            }
        }
        &[Kernel::Portable]
    }

    /// The dot product of the query with each of the contiguous vectors in `codes`.
    #[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "calls functions that require CPU features"))]
    pub(crate) fn products(self, codes: &[u8], query: &QuantizedQuery, out: &mut [i32]) {
        assert!(query.len() > 0 && codes.len() >= out.len() * query.len(), "as many vectors as products");
        match self {
            Kernel::Portable => products_portable(codes, query, out),
            // SAFETY: only `all` returns these variants, after detecting the CPU features.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { x86::products_avx2(codes, query, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { x86::products_avx512(codes, query, out) },
        }
    }

    /// Like `products`, for vectors at scattered positions. Prefetches the next ones to hide memory latency.
    pub(crate) fn products_at(
        self,
        codes: &[u8],
        query: &QuantizedQuery,
        places: &[u32],
        mut each: impl FnMut(usize, i32),
    ) {
        let stride = query.len();
        let mut product = [0];
        for (at, place) in places.iter().enumerate() {
            let next = places.get(at + PREFETCH_DISTANCE).map(|next| *next as usize * stride);
            if let Some(next) = next.and_then(|from| codes.get(from..from + stride)) {
                prefetch(next);
            }
            let place = *place as usize;
            self.products(&codes[place * stride..][..stride], query, &mut product);
            each(place, product[0]);
        }
    }

    /// Hamming distance of each sketch to the query. `out` has one element per sketch slot.
    #[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "calls functions that require CPU features"))]
    pub(crate) fn hamming_distances(self, sketches: &[u64], query: &[u64], out: &mut [u16]) {
        assert!(!query.is_empty() && out.len().is_multiple_of(SKETCH_GROUP), "whole groups");
        assert!(sketches.len() >= out.len() * query.len(), "as many codes as differences");
        match self {
            Kernel::Portable => hamming_portable(sketches, query, out),
            // SAFETY: only `all` returns these variants, after detecting the CPU features.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { x86::differences_avx2(sketches, query, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { x86::differences_avx512(sketches, query, out) },
        }
    }
}

/// Prefetches a vector if the platform supports it.
fn prefetch(codes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    x86::fetch(codes);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = codes;
}

fn products_portable(codes: &[u8], query: &QuantizedQuery, out: &mut [i32]) {
    for (codes, out) in codes.chunks_exact(query.len()).zip(out) {
        let sum: i32 =
            codes.iter().zip(&query.components).map(|(code, number)| i32::from(*code) * i32::from(*number)).sum();
        *out = sum - query.zero_offset;
    }
}

#[inline(always)]
fn hamming_portable(sketches: &[u64], query: &[u64], out: &mut [u16]) {
    for (group, out) in sketches.chunks_exact(query.len() * SKETCH_GROUP).zip(out.chunks_exact_mut(SKETCH_GROUP)) {
        let mut sums = [0_u32; SKETCH_GROUP];
        for (words, query) in group.chunks_exact(SKETCH_GROUP).zip(query) {
            for (sum, word) in sums.iter_mut().zip(words) {
                *sum += (word ^ query).count_ones();
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = sum as u16;
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "loads from slices whose lengths were checked")]
mod x86 {
    use super::{LANES, QuantizedQuery, SKETCH_GROUP};
    use std::arch::x86_64::*;

    pub(super) fn fetch(codes: &[u8]) {
        for line in codes.chunks(LANES) {
            // SAFETY: a prefetch is only a hint and is valid for any address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
        }
    }

    #[target_feature(enable = "avx2,popcnt")]
    pub(super) fn differences_avx2(sketches: &[u64], query: &[u64], out: &mut [u16]) {
        super::hamming_portable(sketches, query, out);
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512vpopcntdq")]
    pub(super) fn differences_avx512(sketches: &[u64], query: &[u64], out: &mut [u16]) {
        for (group, out) in sketches.chunks_exact(query.len() * SKETCH_GROUP).zip(out.chunks_exact_mut(SKETCH_GROUP)) {
            let mut sums = _mm512_setzero_si512();
            for (words, query) in group.chunks_exact(SKETCH_GROUP).zip(query) {
                // SAFETY: reads 64 bytes, which are eight words; the load is unaligned.
                let words = unsafe { _mm512_loadu_si512(words.as_ptr().cast()) };
                let differing = _mm512_xor_si512(words, _mm512_set1_epi64(*query as i64));
                sums = _mm512_add_epi64(sums, _mm512_popcnt_epi64(differing));
            }
            // SAFETY: writes 16 bytes, which are eight numbers of two bytes.
            unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), _mm512_cvtepi64_epi16(sums)) };
        }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn products_avx2(codes: &[u8], query: &QuantizedQuery, out: &mut [i32]) {
        for (codes, out) in codes.chunks_exact(query.len()).zip(out) {
            let mut sums = _mm256_setzero_si256();
            for (codes, numbers) in codes.chunks_exact(16).zip(query.components.chunks_exact(16)) {
                // SAFETY: reads 16 and 32 bytes, which are sixteen codes and sixteen numbers.
                let (codes, numbers) =
                    unsafe { (_mm_loadu_si128(codes.as_ptr().cast()), _mm256_loadu_si256(numbers.as_ptr().cast())) };
                sums = _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_cvtepu8_epi16(codes), numbers));
            }
            let half = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
            let quarter = _mm_add_epi32(half, _mm_unpackhi_epi64(half, half));
            let sum = _mm_add_epi32(quarter, _mm_shuffle_epi32::<1>(quarter));
            *out = _mm_cvtsi128_si32(sum) - query.zero_offset;
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) fn products_avx512(codes: &[u8], query: &QuantizedQuery, out: &mut [i32]) {
        let stride = query.len();
        let (fours, rest) = out.as_chunks_mut::<4>();
        let (four_codes, rest_codes) = codes.split_at(fours.len() * 4 * stride);
        for (codes, out) in four_codes.chunks_exact(4 * stride).zip(fours) {
            *out = products_of::<4>(codes, query);
        }
        for (codes, out) in rest_codes.chunks_exact(stride).zip(rest) {
            [*out] = products_of::<1>(codes, query);
        }
    }

    /// Processes several vectors together, so that the query is loaded once for all of them.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn products_of<const VECTORS: usize>(codes: &[u8], query: &QuantizedQuery) -> [i32; VECTORS] {
        let stride = query.len();
        let mut high = [_mm512_setzero_si512(); VECTORS];
        let mut low = [_mm512_setzero_si512(); VECTORS];
        for at in (0..stride).step_by(LANES) {
            let (highs, lows) = (load(&query.high[at..at + LANES]), load(&query.low[at..at + LANES]));
            for vector in 0..VECTORS {
                let from = vector * stride + at;
                // Loading is the same for signed and unsigned bytes.
                let codes = load(&codes[from..from + LANES]);
                high[vector] = _mm512_dpbusd_epi32(high[vector], codes, highs);
                low[vector] = _mm512_dpbusd_epi32(low[vector], codes, lows);
            }
        }
        std::array::from_fn(|vector| {
            let sums = _mm512_add_epi32(_mm512_slli_epi32::<4>(high[vector]), low[vector]);
            _mm512_reduce_add_epi32(sums) - query.zero_offset
        })
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load<T>(bytes: &[T]) -> __m512i {
        assert!(size_of_val(bytes) == LANES, "a whole register");
        // SAFETY: the slice has the 64 bytes that are read; the load is unaligned.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_kernels_give_the_portable_products(
            whole in prop::collection::vec(-MAX_QUERY_COMPONENT..=MAX_QUERY_COMPONENT, 1..400),
            seed in any::<u64>(),
            vectors in 0_usize..9,
        ) {
            let query = QuantizedQuery::new(whole);
            let mut state = seed;
            let codes: Vec<u8> = (0..vectors * query.len())
                .map(|_| {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    (state >> 56) as u8
                })
                .collect();
            let mut wanted = vec![0; vectors];
            Kernel::Portable.products(&codes, &query, &mut wanted);
            for kernel in Kernel::supported() {
                let mut products = vec![0; vectors];
                kernel.products(&codes, &query, &mut products);
                prop_assert_eq!(&products, &wanted);
            }
        }

        #[test]
        fn all_kernels_give_the_portable_differences(
            query in prop::collection::vec(any::<u64>(), 1..9),
            words in prop::collection::vec(any::<u64>(), 9 * 32),
        ) {
            let sketches = &words[..query.len() * 32];
            let mut wanted = vec![0; 32];
            Kernel::Portable.hamming_distances(sketches, &query, &mut wanted);
            prop_assert_eq!(u32::from(wanted[9]), (0..query.len()).map(|at| (sketches[query.len() * 8 + at * 8 + 1] ^ query[at]).count_ones()).sum::<u32>());
            for kernel in Kernel::supported() {
                let mut differences = vec![0; 32];
                kernel.hamming_distances(sketches, &query, &mut differences);
                prop_assert_eq!(&differences, &wanted);
            }
        }
    }

    #[test]
    fn extreme_numbers_do_not_overflow() {
        let query = QuantizedQuery::new(vec![MAX_QUERY_COMPONENT; 4096]);
        for kernel in Kernel::supported() {
            let mut products = [0];
            kernel.products(&[255; 4096], &query, &mut products);
            assert_eq!(products[0], 4096 * 127 * i32::from(MAX_QUERY_COMPONENT));
            kernel.products(&[1; 4096], &query, &mut products);
            assert_eq!(products[0], -4096 * 127 * i32::from(MAX_QUERY_COMPONENT));
        }
    }

    /// The buffers end at a guard page and start unaligned.
    #[cfg(target_os = "linux")]
    #[test]
    fn no_kernel_reads_or_writes_beyond_its_slices() {
        let noise = |at: usize| (at * 2_654_435_761) >> 7;
        for numbers in [1, 16, 63, 64, 65, 128, 384, 400] {
            for vectors in 0..10 {
                let whole = (0..numbers).map(|at| (noise(at) % 4095) as i16 - MAX_QUERY_COMPONENT).collect();
                let query = corbie_test_support::guard_page::with_guard_pages(|| QuantizedQuery::new(whole).clone());
                let codes = corbie_test_support::guard_page::with_guard_pages(|| {
                    (0..=vectors * query.len()).map(|at| noise(at) as u8).collect::<Box<[u8]>>()
                });
                let mut wanted = vec![0; vectors];
                Kernel::Portable.products(&codes[1..], &query, &mut wanted);
                let places: Vec<u32> = (0..vectors as u32).rev().collect();
                for kernel in Kernel::supported() {
                    let mut products = corbie_test_support::guard_page::with_guard_pages(|| vec![0; vectors]);
                    kernel.products(&codes[1..], &query, &mut products);
                    assert_eq!(products, wanted, "{kernel:?}");
                    kernel.products_at(&codes[1..], &query, &places, |at, product| assert_eq!(product, wanted[at]));
                }
            }
        }
        for words in 1..9 {
            for groups in 0..5 {
                let places = groups * SKETCH_GROUP;
                let make = |count: usize| {
                    (0..=count).map(|at| noise(at) as u64 ^ (noise(at) << 40) as u64).collect::<Box<[u64]>>()
                };
                let (query, sketches) =
                    corbie_test_support::guard_page::with_guard_pages(|| (make(words), make(places * words)));
                let mut wanted = vec![0; places];
                Kernel::Portable.hamming_distances(&sketches[1..], &query[1..], &mut wanted);
                for kernel in Kernel::supported() {
                    let mut differences = corbie_test_support::guard_page::with_guard_pages(|| vec![0; places]);
                    kernel.hamming_distances(&sketches[1..], &query[1..], &mut differences);
                    assert_eq!(differences, wanted, "{kernel:?}");
                }
            }
        }
    }
}
