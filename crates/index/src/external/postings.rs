//! Encoding of posting lists for external storage.
//!
//! For each chunk, sorted by key: the gap between its key and the lowest possible next key; its length, shifted left
//! by three bits, with its count in these bits; and the count itself as one byte if it exceeds seven, in which case
//! the bits are 0. Numbers are little-endian base-128 varints: seven bits per byte, and a set eighth bit means that
//! another byte follows. A chunk typically takes three bytes.

/// A chunk that contains a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posting {
    /// Key of the chunk.
    pub key: u64,
    /// Frequency of the term in halves of words, at least 1.
    pub count: u8,
    /// Length of the chunk in halves of words.
    pub length: u16,
}

/// The bytes are not a valid posting list. The store has to analyze its documents again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a posting list is corrupt; the documents have to be indexed again")]
pub struct InvalidPostingsError;

const COUNT_BITS: u32 = 3;
const MAX_INLINE_COUNT: u8 = (1 << COUNT_BITS) - 1;

/// Encodes a posting list. Unsorted postings are sorted by key, and the first of several equal keys wins.
pub fn encode(postings: &[Posting]) -> Vec<u8> {
    if !postings.is_sorted_by(|one, next| one.key < next.key) {
        let mut sorted = postings.to_vec();
        sorted.sort_by_key(|posting| posting.key);
        sorted.dedup_by_key(|posting| posting.key);
        return encode(&sorted);
    }
    let mut out = Vec::with_capacity(postings.len() * 4);
    let mut next = 0;
    for Posting { key, count, length } in postings {
        write_varint(&mut out, key - next);
        next = key.wrapping_add(1);
        let count = (*count).max(1);
        let bits = if count <= MAX_INLINE_COUNT { count } else { 0 };
        write_varint(&mut out, u64::from(*length) << COUNT_BITS | u64::from(bits));
        if bits == 0 {
            out.push(count);
        }
    }
    out
}

/// Calls `with` for each posting, sorted by key. Accepts arbitrary bytes. After an error, discard the postings
/// received so far.
pub fn for_each_posting(list: &[u8], mut with: impl FnMut(Posting)) -> Result<(), InvalidPostingsError> {
    let mut reader = PostingsDecoder::new(list);
    while let Some(posting) = reader.next()? {
        with(posting);
    }
    Ok(())
}

/// Whether a list has any chunk that fulfils the predicate. Stops at the first.
pub fn has_any(list: &[u8], is_one: impl Fn(u64) -> bool) -> Result<bool, InvalidPostingsError> {
    let mut reader = PostingsDecoder::new(list);
    while let Some(posting) = reader.next()? {
        if is_one(posting.key) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Merges several lists into one, sorted by key, with only the chunks that `keep` accepts. The first of several equal
/// keys wins.
pub fn merge_lists(lists: &[&[u8]], keep: impl Fn(u64) -> bool) -> Result<Vec<u8>, InvalidPostingsError> {
    let mut postings = Vec::new();
    for list in lists {
        for_each_posting(list, |posting| {
            if keep(posting.key) {
                postings.push(posting);
            }
        })?;
    }
    // Each list is a sorted run, and the stable sort merges runs.
    postings.sort_by_key(|posting| posting.key);
    postings.dedup_by_key(|posting| posting.key);
    Ok(encode(&postings))
}

fn write_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

struct PostingsDecoder<'a> {
    rest: &'a [u8],
    /// The lowest possible next key; `None` after `u64::MAX`.
    next: Option<u64>,
}

// === impl Reader ===

impl<'a> PostingsDecoder<'a> {
    fn new(list: &'a [u8]) -> PostingsDecoder<'a> {
        PostingsDecoder { rest: list, next: Some(0) }
    }

    #[inline]
    fn next(&mut self) -> Result<Option<Posting>, InvalidPostingsError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let gap = self.read_varint()?;
        let key = self.next.and_then(|next| next.checked_add(gap)).ok_or(InvalidPostingsError)?;
        self.next = key.checked_add(1);
        let both = self.read_varint()?;
        let length = u16::try_from(both >> COUNT_BITS).map_err(|_| InvalidPostingsError)?;
        let mut count = both as u8 & MAX_INLINE_COUNT;
        if count == 0 {
            count = self.read_byte()?;
        }
        if count == 0 {
            return Err(InvalidPostingsError);
        }
        Ok(Some(Posting { key, count, length }))
    }

    #[inline]
    fn read_varint(&mut self) -> Result<u64, InvalidPostingsError> {
        match *self.rest {
            [only, ref rest @ ..] if only < 0x80 => {
                self.rest = rest;
                Ok(u64::from(only))
            }
            [low, high, ref rest @ ..] if high < 0x80 => {
                self.rest = rest;
                Ok(u64::from(low & 0x7f) | u64::from(high) << 7)
            }
            _ => self.read_long_varint(),
        }
    }

    fn read_long_varint(&mut self) -> Result<u64, InvalidPostingsError> {
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.read_byte()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has only one valid bit.
            if bits << shift >> shift != bits {
                return Err(InvalidPostingsError);
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(InvalidPostingsError)
    }

    fn read_byte(&mut self) -> Result<u8, InvalidPostingsError> {
        let (first, rest) = self.rest.split_first().ok_or(InvalidPostingsError)?;
        self.rest = rest;
        Ok(*first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn read(list: &[u8]) -> Result<Vec<Posting>, InvalidPostingsError> {
        let mut postings = Vec::new();
        for_each_posting(list, |posting| postings.push(posting)).map(|()| postings)
    }

    fn key() -> impl Strategy<Value = u64> {
        prop_oneof![3 => 0_u64..500, 1 => any::<u64>(), 1 => u64::MAX - 3..]
    }

    fn postings() -> impl Strategy<Value = Vec<Posting>> {
        let length = prop_oneof![0_u16..300, any::<u16>()];
        prop::collection::btree_map(key(), (1_u8.., length), 0..100)
            .prop_map(|all| all.into_iter().map(|(key, (count, length))| Posting { key, count, length }).collect())
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(postings in postings()) {
            prop_assert_eq!(read(&encode(&postings)), Ok(postings.clone()));
            let mut turned = postings.clone();
            turned.reverse();
            turned.extend(&postings);
            prop_assert_eq!(encode(&turned), encode(&postings));
        }

        #[test]
        fn a_chunk_of_a_list_is_found_in_it(postings in postings(), key in key()) {
            let is_there = postings.iter().any(|posting| posting.key == key);
            prop_assert_eq!(has_any(&encode(&postings), |other| other == key), Ok(is_there));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(postings) = read(&bytes) {
                prop_assert!(postings.is_sorted_by(|one, next| one.key < next.key));
                prop_assert_eq!(read(&encode(&postings)), Ok(postings));
            }
            let _ = merge_lists(&[&bytes, &bytes], |key| key % 2 == 0);
        }

        #[test]
        fn a_list_that_ends_early_is_shorter_or_refused(postings in postings(), cut in 0_usize..400) {
            let bytes = encode(&postings);
            let cut = cut.min(bytes.len());
            if let Ok(read) = read(&bytes[..cut]) {
                prop_assert!(postings.starts_with(&read) && (cut == bytes.len() || read.len() < postings.len()));
            }
        }

        #[test]
        fn joined_lists_have_all_that_is_kept(lists in prop::collection::vec(postings(), 0..5), odd in any::<bool>()) {
            let mut wanted = BTreeMap::new();
            for posting in lists.iter().flatten().filter(|posting| posting.key % 2 == u64::from(odd)) {
                wanted.entry(posting.key).or_insert(*posting);
            }
            let encoded: Vec<Vec<u8>> = lists.iter().map(|list| encode(list)).collect();
            let encoded: Vec<&[u8]> = encoded.iter().map(Vec::as_slice).collect();
            let joined = merge_lists(&encoded, |key| key % 2 == u64::from(odd));
            prop_assert_eq!(joined.and_then(|joined| read(&joined)), Ok(wanted.into_values().collect::<Vec<_>>()));
        }
    }

    #[test]
    fn damage_is_told() {
        assert_eq!(read(&[]), Ok(Vec::new()));
        let too_long = [0xff; 11];
        let beyond = [&[0xff; 9][..], &[0x01, 0x09, 0x00, 0x09]].concat();
        let no_count = [0x00, 0x08, 0x00];
        let no_length = [0x00];
        let too_large = [0x00, 0xff, 0xff, 0x7f];
        for bytes in [&too_long[..], &beyond, &no_count, &no_length, &too_large] {
            assert_eq!(read(bytes), Err(InvalidPostingsError), "{bytes:?}");
        }
    }
}
