//! Seeded random number generator. The same seed makes the same choices, as far as timing on the machine repeats.

use std::time::Duration;

/// SplitMix64: small, and random enough for choosing test steps.
#[derive(Debug, Clone)]
pub struct SeededRng(u64);

impl SeededRng {
    pub fn new(seed: u64) -> SeededRng {
        SeededRng::for_part(seed, "")
    }

    /// The generator of one component of a run. Components have independent streams.
    pub fn for_part(seed: u64, part: &str) -> SeededRng {
        let mixed = part.bytes().fold(seed, |mixed, byte| (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let mut chance = SeededRng(mixed);
        chance.next();
        chance
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Random number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 11) as usize % bound.max(1)
    }

    /// True with probability 1/`times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Random duration from `least` to `most`.
    pub fn between(&mut self, least: Duration, most: Duration) -> Duration {
        least + Duration::from_micros(self.below((most - least).as_micros() as usize + 1) as u64)
    }

    pub fn choose<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len()))
    }
}
