//! Deterministic shuffle: the same seed gives the same permutation on every platform and version.

/// SplitMix64: small, fast, and good enough for shuffling examples.
#[derive(Debug)]
pub(super) struct SplitMix64(u64);

impl SplitMix64 {
    pub(super) fn seeded(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// Fisher–Yates shuffle.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// High half of a product instead of a remainder: no division and negligible bias.
    fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next()) * limit as u128) >> 64) as usize
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_is_a_permutation_and_the_next_one_differs() {
        let mut shuffle = SplitMix64::seeded(7);
        let mut first: Vec<usize> = (0..50).collect();
        shuffle.shuffle(&mut first);
        let mut second: Vec<usize> = (0..50).collect();
        shuffle.shuffle(&mut second);
        assert_ne!(first, second);
        first.sort_unstable();
        assert_eq!(first, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn the_generator_is_the_published_one() {
        assert_eq!(SplitMix64::seeded(1234567).next(), 6457827717110365317);
    }
}
