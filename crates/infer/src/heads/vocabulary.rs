//! Mapping of hash buckets to rows of a head's weights (rank over a bit set).

use super::ngrams::NgramCounts;

/// A set of buckets. The rank of a bucket is its row.
#[derive(Clone)]
pub(super) struct Vocabulary {
    /// One bit per possible bucket.
    bits: Box<[u64; WORDS]>,
    /// Number of set buckets before each 64-bit word.
    before: Box<[u32; WORDS]>,
    len: usize,
}

/// Input features of a head.
pub(super) struct Features {
    /// Rows and their values, normalized to unit length.
    pub(super) rows: Vec<(usize, f32)>,
    /// Vocabulary coverage, from 0 to 1.
    pub(super) known_share: f32,
}

const WORDS: usize = (1 << 16) / 64;

impl Vocabulary {
    /// The buckets that occur in at least `fewest_texts` texts, but at most `most`: the rarest are dropped first.
    pub(super) fn of(texts: &[&NgramCounts], fewest_texts: u32, most: usize) -> Vocabulary {
        let mut texts_with = vec![0u32; 1 << 16];
        for (bucket, _) in texts.iter().copied().flatten() {
            texts_with[usize::from(*bucket)] += 1;
        }
        let mut fewest = fewest_texts.max(1);
        let count = |fewest: u32| texts_with.iter().filter(|texts| **texts >= fewest).count();
        while count(fewest) > most {
            fewest += 1;
        }
        Vocabulary::from_sorted((0..=u16::MAX).filter(|bucket| texts_with[usize::from(*bucket)] >= fewest))
    }

    pub(super) fn from_sorted(buckets: impl Iterator<Item = u16>) -> Vocabulary {
        let mut bits = Box::new([0u64; WORDS]);
        for bucket in buckets {
            bits[usize::from(bucket) / 64] |= 1 << (bucket % 64);
        }
        let mut before = Box::new([0; WORDS]);
        let mut len = 0;
        for (word, before) in bits.iter().zip(before.iter_mut()) {
            *before = len;
            len += word.count_ones();
        }
        Vocabulary { bits, before, len: len as usize }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn buckets(&self) -> impl Iterator<Item = u16> {
        (0..=u16::MAX).filter(|bucket| self.row(*bucket).is_some())
    }

    pub(super) fn features(&self, counts: &NgramCounts) -> Features {
        let mut rows = Vec::with_capacity(counts.len());
        let (mut known, mut all) = (0.0, 0.0);
        for (bucket, value) in counts {
            all += value * value;
            if let Some(row) = self.row(*bucket) {
                known += value * value;
                rows.push((row, *value));
            }
        }
        let length = f32::sqrt(known);
        rows.iter_mut().for_each(|(_, value)| *value /= length);
        Features { rows, known_share: if all > 0.0 { known / all } else { 1.0 } }
    }

    fn row(&self, bucket: u16) -> Option<usize> {
        let (word, bit) = (usize::from(bucket) / 64, bucket % 64);
        let bits = self.bits[word];
        let below = bits & ((1 << bit) - 1);
        (bits >> bit & 1 == 1).then(|| (self.before[word] + below.count_ones()) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn features_have_length_one_and_tell_what_is_unknown() {
        let vocabulary = Vocabulary::from_sorted([3, 900].into_iter());
        let features = vocabulary.features(&vec![(3, 1.0), (4, 2.0), (900, 2.0)]);
        let length = 5f32.sqrt();
        assert_eq!(features.rows, [(0, 1.0 / length), (1, 2.0 / length)]);
        assert_eq!(features.known_share, 5.0 / 9.0);
        assert_eq!(vocabulary.features(&vec![]).known_share, 1.0);
    }

    #[test]
    fn the_rarest_are_left_out_first() {
        let texts: [NgramCounts; 3] = [vec![(1, 1.0), (2, 1.0), (3, 1.0)], vec![(1, 1.0), (2, 1.0)], vec![(1, 1.0)]];
        let buckets = |fewest, most| {
            Vocabulary::of(&texts.iter().collect::<Vec<_>>(), fewest, most).buckets().collect::<Vec<_>>()
        };
        assert_eq!(buckets(1, 10), [1, 2, 3]);
        assert_eq!(buckets(2, 10), [1, 2]);
        assert_eq!(buckets(1, 2), [1, 2]);
        assert!(buckets(1, 0).is_empty());
    }

    proptest! {
        #[test]
        fn rows_are_ranks(buckets in prop::collection::btree_set(any::<u16>(), 0..300), asked in any::<u16>()) {
            let vocabulary = Vocabulary::from_sorted(buckets.iter().copied());
            let rank = |bucket: &u16| buckets.iter().position(|other| other == bucket);
            prop_assert_eq!(vocabulary.len(), buckets.len());
            prop_assert_eq!(vocabulary.row(asked), rank(&asked));
            for bucket in &buckets {
                prop_assert_eq!(vocabulary.row(*bucket), rank(bucket));
            }
            prop_assert_eq!(vocabulary.buckets().collect::<BTreeSet<_>>(), buckets);
        }
    }
}
