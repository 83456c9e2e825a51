//! Segment file format: version, little-endian arrays, checksum.
//!
//! The reader validates everything, even if the checksum is correct: the file is untrusted, and a search must neither
//! panic nor return wrong results. Derived data is rebuilt on load and is not stored.

use crate::dictionary::Dictionary;
use crate::segment::Segment;
use crate::vectors::Vectors;
use crate::words::Words;
use std::num::TryFromIntError;

/// Must be incremented whenever the encoding or the terms change.
pub(crate) const VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"corbieix";
const CHECKSUM: usize = 4;

/// Why bytes are rejected as a segment of this index. The owner adds the documents again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("this is no saved segment")]
    NotASegment,
    #[error("the segment was saved by version {found} of the format, and this is version {known}")]
    OtherVersion { found: u32, known: u32 },
    #[error("the segment has vectors of {found} numbers, and the index has {wanted}")]
    OtherDimension { found: usize, wanted: usize },
    #[error("the segment's bytes have changed since it was saved")]
    Changed,
    #[error("the segment contradicts itself")]
    Inconsistent,
}

pub(crate) fn encode(segment: &Segment) -> Vec<u8> {
    let mut out = Vec::with_capacity(segment.bytes() + 256);
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend((segment.vectors.dimension as u32).to_le_bytes());
    put(&mut out, &segment.documents, |number| number.to_le_bytes());
    put(&mut out, &segment.starts, |number| number.to_le_bytes());
    put(&mut out, &segment.chunks, |number| number.to_le_bytes());
    let Words { dictionary, lengths, languages } = &segment.words;
    put(&mut out, lengths, |number| number.to_le_bytes());
    put_bytes(&mut out, languages);
    put_bytes(&mut out, &dictionary.letters);
    put(&mut out, &dictionary.ends, |number| number.to_le_bytes());
    put(&mut out, &dictionary.counts, |number| number.to_le_bytes());
    put(&mut out, &dictionary.starts, |number| number.to_le_bytes());
    put_bytes(&mut out, &dictionary.lists);
    put(&mut out, &segment.vectors.starts, |number| number.to_le_bytes());
    put(&mut out, &segment.vectors.scales, |number| number.to_le_bytes());
    put_bytes(&mut out, &segment.vectors.codes);
    put_bytes(&mut out, &segment.vectors.rests);
    let checksum = crc32fast::hash(&out);
    out.extend(checksum.to_le_bytes());
    out
}

pub(crate) fn decode(bytes: &[u8], dimension: usize) -> Result<Segment, Damage> {
    let (bytes, checksum) = bytes.split_last_chunk::<CHECKSUM>().ok_or(Damage::NotASegment)?;
    let mut rest = bytes.strip_prefix(&MAGIC).ok_or(Damage::NotASegment)?;
    let found = u32::from_le_bytes(take(&mut rest)?);
    // The version is checked before the checksum, because another version may use another checksum.
    if found != VERSION {
        return Err(Damage::OtherVersion { found, known: VERSION });
    }
    if crc32fast::hash(bytes) != u32::from_le_bytes(*checksum) {
        return Err(Damage::Changed);
    }
    let found = u32::from_le_bytes(take(&mut rest)?) as usize;
    if found != dimension {
        return Err(Damage::OtherDimension { found, wanted: dimension });
    }
    let documents = get(&mut rest, u64::from_le_bytes)?;
    let starts = get(&mut rest, u32::from_le_bytes)?;
    let chunks = get(&mut rest, u64::from_le_bytes)?;
    let lengths = get(&mut rest, u16::from_le_bytes)?;
    let languages = get_bytes(&mut rest)?.to_vec();
    let letters = get_bytes(&mut rest)?.to_vec();
    let ends = get(&mut rest, u32::from_le_bytes)?;
    let counts = get(&mut rest, u32::from_le_bytes)?;
    let list_starts = get(&mut rest, u32::from_le_bytes)?;
    let lists = get_bytes(&mut rest)?.to_vec();
    let dictionary = Dictionary { letters, ends, counts, starts: list_starts, lists };
    let vector_starts = get(&mut rest, u32::from_le_bytes)?;
    let scales = get(&mut rest, f32::from_le_bytes)?;
    let codes = get_bytes(&mut rest)?.to_vec();
    let rests = get_bytes(&mut rest)?.to_vec();
    let words = Words { dictionary, lengths, languages };
    let is_whole = rest.is_empty()
        && is_split(&starts, documents.len(), chunks.len())
        && words.lengths.len() == chunks.len()
        && words.languages.len() == chunks.len()
        && words.dictionary.check(&words.lengths)
        && is_split(&vector_starts, chunks.len(), scales.len());
    if !is_whole {
        return Err(Damage::Inconsistent);
    }
    let vectors = Vectors::from_parts(dimension, codes, rests, scales, vector_starts).ok_or(Damage::Inconsistent)?;
    let segment = Segment::new(documents, starts, chunks, words, vectors);
    segment.has_distinct_keys().then_some(segment).ok_or(Damage::Inconsistent)
}

/// Whether `starts` is a valid partition of `all` items among `owners`.
fn is_split(starts: &[u32], owners: usize, all: usize) -> bool {
    starts.len() == owners + 1
        && starts.first() == Some(&0)
        && starts.last().is_some_and(|last| *last as usize == all)
        && starts.is_sorted()
}

fn put<T: Copy, const N: usize>(out: &mut Vec<u8>, numbers: &[T], bytes: impl Fn(T) -> [u8; N]) {
    out.extend((numbers.len() as u64).to_le_bytes());
    for number in numbers {
        out.extend(bytes(*number));
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn get<T, const N: usize>(rest: &mut &[u8], number: impl Fn([u8; N]) -> T) -> Result<Vec<T>, Damage> {
    let count = usize::try_from(u64::from_le_bytes(take(rest)?))?;
    let length = count.checked_mul(N).ok_or(Damage::Inconsistent)?;
    let (bytes, behind) = rest.split_at_checked(length).ok_or(Damage::Inconsistent)?;
    *rest = behind;
    Ok(bytes.as_chunks::<N>().0.iter().map(|bytes| number(*bytes)).collect())
}

fn get_bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Damage> {
    let length = usize::try_from(u64::from_le_bytes(take(rest)?))?;
    let (bytes, behind) = rest.split_at_checked(length).ok_or(Damage::Inconsistent)?;
    *rest = behind;
    Ok(bytes)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Damage> {
    let (bytes, behind) = rest.split_first_chunk().ok_or(Damage::NotASegment)?;
    *rest = behind;
    Ok(*bytes)
}

// === impl Damage ===

impl From<TryFromIntError> for Damage {
    fn from(_: TryFromIntError) -> Damage {
        Damage::Inconsistent
    }
}
