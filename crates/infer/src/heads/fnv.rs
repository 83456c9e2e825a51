//! FNV-1a hash: stable across machines and versions, unlike the standard library's hasher.

/// Incremental hasher.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fnv(u64);

impl Fnv {
    pub(super) fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    pub(super) fn with(mut self, bytes: &[u8]) -> Fnv {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self
    }

    pub(super) fn value(self) -> u64 {
        self.0
    }

    /// Folds all 64 bits into 16, because the low bits of FNV are the weakest.
    pub(super) fn folded(self) -> u16 {
        let half = self.0 ^ (self.0 >> 32);
        (half ^ (half >> 16)) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values_are_met() {
        assert_eq!(Fnv::new().value(), 0xcbf2_9ce4_8422_2325);
        assert_eq!(Fnv::new().with(b"a").value(), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(Fnv::new().with(b"foo").with(b"bar").value(), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn folding_takes_part_of_every_bit() {
        assert_eq!(Fnv(0x0001_0020_0300_4000).folded(), 0x4321);
    }
}
