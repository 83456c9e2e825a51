//! Fixed-size bitmap: a set of chunks or documents of one segment.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    pub(crate) fn empty(len: usize) -> Bitmap {
        Bitmap { words: vec![0; len.div_ceil(64)], len }
    }

    pub(crate) fn full(len: usize) -> Bitmap {
        let mut bitmap = Bitmap::empty(len);
        bitmap.insert_range(0, len);
        bitmap
    }

    pub(crate) fn contains(&self, at: usize) -> bool {
        self.words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    pub(crate) fn insert(&mut self, at: usize) {
        self.words[at / 64] |= 1 << (at % 64);
    }

    pub(crate) fn insert_range(&mut self, from: usize, to: usize) {
        self.each_word(from, to, |word, mask| *word |= mask);
    }

    pub(crate) fn remove_range(&mut self, from: usize, to: usize) {
        self.each_word(from, to, |word, mask| *word &= !mask);
    }

    pub(crate) fn intersect(&mut self, other: &Bitmap) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether any bit is set from `from` up to `to`, exclusive.
    pub(crate) fn any_in(&self, from: usize, to: usize) -> bool {
        let to = to.min(self.len);
        if from >= to {
            return false;
        }
        let (first, last) = (from / 64, (to - 1) / 64);
        (first..=last).any(|at| self.words[at] & mask(at, from, to) != 0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    at * 64 + bit
                })
            })
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.len() * 8
    }

    fn each_word(&mut self, from: usize, to: usize, change: impl Fn(&mut u64, u64)) {
        let to = to.min(self.len);
        if from >= to {
            return;
        }
        for at in from / 64..=(to - 1) / 64 {
            change(&mut self.words[at], mask(at, from, to));
        }
    }
}

/// The bits of a word between `from` and `to`, exclusive.
fn mask(word: usize, from: usize, to: usize) -> u64 {
    let low = if word == from / 64 { u64::MAX << (from % 64) } else { u64::MAX };
    let high = if word == (to - 1) / 64 { u64::MAX >> (63 - (to - 1) % 64) } else { u64::MAX };
    low & high
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_are_what_setting_each_bit_gives(len in 1_usize..300, a in 0_usize..300, b in 0_usize..300) {
            let (from, to) = (a.min(b), a.max(b).min(len));
            let mut bitmap = Bitmap::empty(len);
            bitmap.insert_range(from, to);
            let wanted: Vec<usize> = (from..to).collect();
            prop_assert_eq!(bitmap.iter().collect::<Vec<_>>(), wanted.clone());
            prop_assert_eq!(bitmap.count(), wanted.len());
            prop_assert_eq!(bitmap.any_in(from, len), !wanted.is_empty());
            prop_assert!(!bitmap.any_in(0, from));
            let mut rest = Bitmap::full(len);
            rest.remove_range(from, to);
            rest.intersect(&bitmap);
            prop_assert_eq!(rest.count(), 0);
        }
    }
}
