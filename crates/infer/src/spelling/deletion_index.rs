//! Deletion index (SymSpell): finds similar words without a full scan.
//!
//! Two words with an edit distance of one become equal when each loses at most one letter, and so on for a distance of
//! two. Every word is indexed under all variants with deleted letters, and a search looks up all such variants of its
//! word.

use super::distance::MAX_LETTERS;
use super::lexicon::WordId;

/// Shorter words lose at most one letter: their remaining letters would match too many words.
const MIN_LETTERS_FOR_TWO_DELETIONS: usize = 5;
/// A power of two, a few times smaller than the number of entries.
const BUCKET_COUNT: usize = 1 << 17;

/// Words by their deletion variants. Only hashes are stored, so results include false positives.
#[derive(Debug)]
pub(super) struct DeletionIndex {
    /// Start of each bucket's entries, followed by the end of the last.
    starts: Vec<u32>,
    entries: Vec<DeletionEntry>,
}

#[derive(Debug, Clone, Copy, Default)]
struct DeletionEntry {
    id: WordId,
    /// The part of the hash that the bucket does not determine.
    rest: u16,
}

impl DeletionIndex {
    /// Indexes words in the order of their IDs. The first `loose` words may lose two letters, all further words one.
    pub(super) fn of<'a>(words: impl Iterator<Item = &'a [char]>, loose: usize) -> DeletionIndex {
        let mut found: Vec<(u32, WordId)> = Vec::new();
        for (id, word) in words.enumerate() {
            for_each_deletion(word, if id < loose { 2 } else { 1 }, |hash| found.push((hash, id as WordId)));
        }
        let mut starts = vec![0; BUCKET_COUNT + 1];
        for (hash, _) in &found {
            starts[bucket(*hash) + 1] += 1;
        }
        for bucket in 0..BUCKET_COUNT {
            starts[bucket + 1] += starts[bucket];
        }
        let mut entries = vec![DeletionEntry::default(); found.len()];
        let mut next = starts.clone();
        for (hash, id) in found {
            let place = &mut next[bucket(hash)];
            entries[*place as usize] = DeletionEntry { id, rest: rest(hash) };
            *place += 1;
        }
        DeletionIndex { starts, entries }
    }

    /// Words with the same hash; most are the same word.
    pub(super) fn exact_candidates(&self, word: &[char]) -> impl Iterator<Item = WordId> {
        self.bucket_entries(hash(word.iter()))
    }

    /// Candidates within this edit distance, without duplicates, in the order of their IDs.
    pub(super) fn candidates(&self, word: &[char], slips: usize) -> Vec<WordId> {
        let mut ids = Vec::new();
        for_each_deletion(word, slips, |hash| ids.extend(self.bucket_entries(hash)));
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn bucket_entries(&self, hash: u32) -> impl Iterator<Item = WordId> {
        let bucket = bucket(hash);
        let entries = &self.entries[self.starts[bucket] as usize..self.starts[bucket + 1] as usize];
        entries.iter().filter(move |entry| entry.rest == rest(hash)).map(|entry| entry.id)
    }
}

/// Hashes the word and its variants with one or two deleted letters.
fn for_each_deletion(word: &[char], gaps: usize, mut call: impl FnMut(u32)) {
    call(hash(word.iter()));
    if word.len() > MAX_LETTERS {
        return;
    }
    for gap in 0..word.len() {
        let (before, after) = (&word[..gap], &word[gap + 1..]);
        if gaps >= 1 && word.len() >= 2 {
            call(hash(before.iter().chain(after)));
        }
        if gaps >= 2 && word.len() >= MIN_LETTERS_FOR_TWO_DELETIONS {
            for other in 0..after.len() {
                call(hash(before.iter().chain(&after[..other]).chain(&after[other + 1..])));
            }
        }
    }
}

/// FNV-1a over letters, folded.
fn hash<'a>(letters: impl Iterator<Item = &'a char>) -> u32 {
    let step = |hash: u64, letter: &char| (hash ^ u64::from(*letter)).wrapping_mul(0x0100_0000_01b3);
    let hash = letters.fold(0xcbf2_9ce4_8422_2325, step);
    (hash ^ (hash >> 32)) as u32
}

fn bucket(hash: u32) -> usize {
    hash as usize % BUCKET_COUNT
}

fn rest(hash: u32) -> u16 {
    (hash >> 16) as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn letters(word: &str) -> Vec<char> {
        word.chars().collect()
    }

    #[test]
    fn a_word_is_found_with_two_slips() {
        let words = ["balance", "card", "a"].map(letters);
        let gaps = DeletionIndex::of(words.iter().map(Vec::as_slice), 1);
        for (typed, slips, expected) in [
            ("balance", 0, vec![0]),
            ("blaance", 1, vec![0]),
            ("balanc", 1, vec![0]),
            ("ballqnce", 2, vec![0]),
            ("bxlxnce", 2, vec![0]),
            ("bxlxnce", 1, vec![]),
            ("crad", 1, vec![1]),
            ("ab", 1, vec![2]),
            ("", 2, vec![]),
        ] {
            assert_eq!(gaps.candidates(&letters(typed), slips), expected, "{typed}");
        }
    }

    proptest! {
        #[test]
        fn a_slip_never_hides_a_word(word in "[a-zé]{2,24}", at in 0usize..24, letter in prop::char::range('a', 'z')) {
            let word = letters(&word);
            let at = at % word.len();
            let gaps = DeletionIndex::of([word.as_slice()].into_iter(), 0);
            let (mut wrong, mut missing, mut swapped) = (word.clone(), word.clone(), word.clone());
            wrong[at] = letter;
            missing.remove(at);
            swapped.swap(at, at.saturating_sub(1));
            for typed in [wrong, missing, swapped] {
                prop_assert_eq!(gaps.candidates(&typed, 1), vec![0]);
            }
        }
    }
}
