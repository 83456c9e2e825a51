//! Segment file format: version, little-endian arrays, checksum.
//!
//! The reader validates everything, even if the checksum is correct: the file is untrusted, and a search must neither
//! panic nor return wrong results. Derived data is rebuilt on load and is not stored.

use crate::dictionary::Dictionary;
use crate::inverted_index::InvertedIndex;
use crate::segment::{FORMAT_VERSION, Segment};
use crate::vectors::Vectors;
use std::num::TryFromIntError;

const MAGIC: [u8; 8] = *b"corbieix";
const CHECKSUM_BYTES: usize = 4;

/// Why bytes are rejected as a segment of this index. The owner adds the documents again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    #[error("not a segment file")]
    InvalidMagic,
    #[error("unsupported segment format version {found} (expected {known})")]
    UnsupportedVersion { found: u32, known: u32 },
    #[error("vector dimension of the segment is {found}, expected {wanted}")]
    DimensionMismatch { found: usize, wanted: usize },
    #[error("segment checksum mismatch")]
    ChecksumMismatch,
    #[error("segment is inconsistent")]
    Inconsistent,
}

pub(crate) fn encode(segment: &Segment) -> Vec<u8> {
    let mut out = Vec::with_capacity(segment.bytes() + 256);
    out.extend(MAGIC);
    out.extend(FORMAT_VERSION.to_le_bytes());
    out.extend((segment.vectors.dimension as u32).to_le_bytes());
    put(&mut out, &segment.documents, |number| number.to_le_bytes());
    put(&mut out, &segment.starts, |number| number.to_le_bytes());
    put(&mut out, &segment.chunks, |number| number.to_le_bytes());
    let InvertedIndex { dictionary, lengths, languages } = &segment.words;
    put(&mut out, lengths, |number| number.to_le_bytes());
    put_bytes(&mut out, languages);
    put_bytes(&mut out, &dictionary.term_bytes);
    put(&mut out, &dictionary.ends, |number| number.to_le_bytes());
    put(&mut out, &dictionary.document_frequencies, |number| number.to_le_bytes());
    put(&mut out, &dictionary.starts, |number| number.to_le_bytes());
    put_bytes(&mut out, &dictionary.lists);
    put(&mut out, &segment.vectors.starts, |number| number.to_le_bytes());
    put(&mut out, &segment.vectors.scales, |number| number.to_le_bytes());
    put_bytes(&mut out, &segment.vectors.codes);
    put_bytes(&mut out, &segment.vectors.extra_bits);
    let checksum = crc32fast::hash(&out);
    out.extend(checksum.to_le_bytes());
    out
}

pub(crate) fn decode(bytes: &[u8], dimension: usize) -> Result<Segment, SegmentError> {
    let (bytes, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(SegmentError::InvalidMagic)?;
    let mut rest = bytes.strip_prefix(&MAGIC).ok_or(SegmentError::InvalidMagic)?;
    let found = u32::from_le_bytes(take(&mut rest)?);
    // The version is checked before the checksum, because another version may use another checksum.
    if found != FORMAT_VERSION {
        return Err(SegmentError::UnsupportedVersion { found, known: FORMAT_VERSION });
    }
    if crc32fast::hash(bytes) != u32::from_le_bytes(*checksum) {
        return Err(SegmentError::ChecksumMismatch);
    }
    let found = u32::from_le_bytes(take(&mut rest)?) as usize;
    if found != dimension {
        return Err(SegmentError::DimensionMismatch { found, wanted: dimension });
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
    let dictionary = Dictionary { term_bytes: letters, ends, document_frequencies: counts, starts: list_starts, lists };
    let vector_starts = get(&mut rest, u32::from_le_bytes)?;
    let scales = get(&mut rest, f32::from_le_bytes)?;
    let codes = get_bytes(&mut rest)?.to_vec();
    let rests = get_bytes(&mut rest)?.to_vec();
    let words = InvertedIndex { dictionary, lengths, languages };
    let is_whole = rest.is_empty()
        && is_partition(&starts, documents.len(), chunks.len())
        && words.lengths.len() == chunks.len()
        && words.languages.len() == chunks.len()
        && words.dictionary.is_valid(&words.lengths)
        && is_partition(&vector_starts, chunks.len(), scales.len());
    if !is_whole {
        return Err(SegmentError::Inconsistent);
    }
    let vectors =
        Vectors::from_parts(dimension, codes, rests, scales, vector_starts).ok_or(SegmentError::Inconsistent)?;
    let segment = Segment::new(documents, starts, chunks, words, vectors);
    segment.has_distinct_keys().then_some(segment).ok_or(SegmentError::Inconsistent)
}

/// Whether `starts` is a valid partition of `all` items among `owners`.
fn is_partition(starts: &[u32], owners: usize, all: usize) -> bool {
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

fn get<T, const N: usize>(rest: &mut &[u8], number: impl Fn([u8; N]) -> T) -> Result<Vec<T>, SegmentError> {
    let count = usize::try_from(u64::from_le_bytes(take(rest)?))?;
    let length = count.checked_mul(N).ok_or(SegmentError::Inconsistent)?;
    let (bytes, behind) = rest.split_at_checked(length).ok_or(SegmentError::Inconsistent)?;
    *rest = behind;
    Ok(bytes.as_chunks::<N>().0.iter().map(|bytes| number(*bytes)).collect())
}

fn get_bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], SegmentError> {
    let length = usize::try_from(u64::from_le_bytes(take(rest)?))?;
    let (bytes, behind) = rest.split_at_checked(length).ok_or(SegmentError::Inconsistent)?;
    *rest = behind;
    Ok(bytes)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], SegmentError> {
    let (bytes, behind) = rest.split_first_chunk().ok_or(SegmentError::InvalidMagic)?;
    *rest = behind;
    Ok(*bytes)
}

// === impl Damage ===

impl From<TryFromIntError> for SegmentError {
    fn from(_: TryFromIntError) -> SegmentError {
        SegmentError::Inconsistent
    }
}
