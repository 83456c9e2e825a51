//! Facets as stored in a column: one hash per key and value, because the strings may be longer than an index entry.

use sha2::{Digest, Sha256};

pub(super) fn facet_hashes(facets: &[corbie_index::Facet]) -> Vec<i64> {
    let mut numbers: Vec<i64> = facets.iter().map(|facet| facet_hash(&facet.key, &facet.value)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

pub(super) fn facet_hash(key: &str, value: &str) -> i64 {
    let mut hash = Sha256::new();
    hash.update((key.len() as u64).to_le_bytes());
    hash.update(key);
    hash.update(value);
    hash_prefix(&hash.finalize())
}

/// The first eight bytes of a hash as a number.
pub(super) fn hash_prefix(hash: &[u8]) -> i64 {
    hash.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes))
}
