//! Binary file format of a classifier.
//!
//! A header contains the magic bytes, the version, and the length and checksum of the body. The body follows, with
//! every number in little-endian order. The reader trusts no input: it compares each length with the remaining bytes
//! before it allocates, and it accepts only numbers that training can produce.

use ndarray::Array2;

use super::dense::DenseHead;
use super::early_exit::EarlyExit;
use super::ensemble::Ensemble;
use super::fnv::Fnv;
use super::knn::KnnHead;
use super::neighbours::Neighbours;
use super::ngrams::NgramKind;
use super::out_of_scope::{OutOfScope, Standardizer};
use super::sparse::SparseHead;
use super::vocabulary::Vocabulary;
use super::{Classifier, ModelId};

const MAGIC: &[u8; 12] = b"corbie heads";
const VERSION: u32 = 2;

/// Larger than any number in a real classifier, and small enough that sums and products of such numbers stay finite.
const MAX_VALUE: f32 = 1e9;

/// Error for bytes that are not a valid classifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    #[error("not a classifier file; use a file saved by corbie")]
    InvalidMagic,
    #[error("unsupported classifier format {found} (expected {VERSION}); train it again")]
    UnsupportedVersion { found: u32 },
    #[error("the classifier file has {found} bytes, expected {expected}; copy it again or retrain")]
    WrongLength { found: usize, expected: u64 },
    #[error("the classifier file is corrupt: {reason}; copy it again or retrain")]
    Corrupt { reason: &'static str },
}

pub(super) fn write(classifier: &Classifier) -> Vec<u8> {
    let mut body = Vec::new();
    let Classifier {
        model,
        dense,
        words,
        chars,
        ensemble: product,
        knn: votes,
        early_exit: glance,
        out_of_scope: scope,
    } = classifier;
    put_count(&mut body, model.as_str().len());
    body.extend_from_slice(model.as_str().as_bytes());
    put_count(&mut body, dense.dimension());
    put_count(&mut body, dense.classes());
    put_floats(&mut body, &dense.weights);
    put_floats(&mut body, &dense.bias);
    for head in [words, chars] {
        put_count(&mut body, head.vocabulary.len());
        body.extend(head.vocabulary.buckets().flat_map(|bucket| bucket.to_le_bytes()));
        put_floats(&mut body, &head.weights);
        put_floats(&mut body, &head.bias);
    }
    put_floats(&mut body, &product.weights);
    put_floats(&mut body, &[votes.power]);
    put_floats(&mut body, &glance.weights);
    put_floats(&mut body, &[glance.threshold]);
    put_sorted(&mut body, &glance.known_shares);
    put_count(&mut body, scope.neighbours.as_ref().map_or(0, |neighbours| neighbours.scales.len()));
    if let Some(neighbours) = &scope.neighbours {
        body.extend(neighbours.class_of.iter().flat_map(|class| class.to_le_bytes()));
        put_floats(&mut body, &neighbours.scales);
        body.extend(neighbours.numbers.iter().map(|number| number.cast_unsigned()));
    }
    put_floats(&mut body, &scope.centroids);
    for spread in scope.standardizers {
        put_floats(&mut body, &[spread.mean, spread.deviation]);
    }
    put_sorted(&mut body, &scope.reference_scores);
    add_header(&body)
}

pub(super) fn read(bytes: &[u8]) -> Result<Classifier, LoadError> {
    let mut reader = ByteReader { rest: check_header(bytes)? };
    let name_length = reader.count()?;
    let name = std::str::from_utf8(reader.take(name_length)?).map_err(|_| corrupt("model name is not text"))?;
    let dimension = reader.count()?;
    let classes = reader.count()?;
    if dimension == 0 || classes < 2 {
        return Err(corrupt("no dimension or fewer than two classes"));
    }
    let classifier = Classifier {
        model: ModelId::from(name),
        dense: DenseHead { weights: reader.table(dimension, classes)?, bias: reader.floats(classes)? },
        words: reader.sparse(NgramKind::Words, classes)?,
        chars: reader.sparse(NgramKind::Chars, classes)?,
        ensemble: Ensemble { weights: [reader.float()?, reader.float()?, reader.float()?, reader.float()?] },
        knn: KnnHead { power: reader.float()? },
        early_exit: EarlyExit {
            weights: [reader.float()?, reader.float()?],
            threshold: reader.float()?,
            known_shares: reader.sorted()?,
        },
        out_of_scope: reader.scope(dimension, classes)?,
    };
    match reader.rest {
        [] => Ok(classifier),
        _ => Err(corrupt("trailing data")),
    }
}

/// Prepends the header to a body.
fn add_header(body: &[u8]) -> Vec<u8> {
    let header = [MAGIC, &VERSION.to_le_bytes()[..], &(body.len() as u64).to_le_bytes(), &checksum(body).to_le_bytes()];
    [&header.concat(), body].concat()
}

/// Validates the header and returns the body.
fn check_header(bytes: &[u8]) -> Result<&[u8], LoadError> {
    let mut reader = ByteReader { rest: bytes.strip_prefix(MAGIC).ok_or(LoadError::InvalidMagic)? };
    let found = u32::from_le_bytes(reader.array()?);
    if found != VERSION {
        return Err(LoadError::UnsupportedVersion { found });
    }
    let length = u64::from_le_bytes(reader.array()?);
    let sum = u64::from_le_bytes(reader.array()?);
    let body = reader.rest;
    if body.len() as u64 != length {
        let header = (bytes.len() - body.len()) as u64;
        return Err(LoadError::WrongLength { found: bytes.len(), expected: length.saturating_add(header) });
    }
    if checksum(body) != sum {
        return Err(corrupt("checksum mismatch"));
    }
    Ok(body)
}

fn checksum(body: &[u8]) -> u64 {
    Fnv::new().with(body).value()
}

fn corrupt(reason: &'static str) -> LoadError {
    LoadError::Corrupt { reason }
}

fn too_short() -> LoadError {
    corrupt("unexpected end of file")
}

fn put_count(body: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).expect("a classifier with four thousand million parts does not fit in memory");
    body.extend_from_slice(&count.to_le_bytes());
}

fn put_floats<'a>(body: &mut Vec<u8>, floats: impl IntoIterator<Item = &'a f32>) {
    body.extend(floats.into_iter().flat_map(|float| float.to_le_bytes()));
}

fn put_sorted(body: &mut Vec<u8>, floats: &[f32]) {
    put_count(body, floats.len());
    put_floats(body, floats);
}

/// Cursor over the unread bytes.
struct ByteReader<'a> {
    rest: &'a [u8],
}

impl<'a> ByteReader<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], LoadError> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or_else(too_short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], LoadError> {
        Ok(self.take(BYTES)?.try_into().expect("as many as requested"))
    }

    fn count(&mut self) -> Result<usize, LoadError> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    fn float(&mut self) -> Result<f32, LoadError> {
        let float = f32::from_le_bytes(self.array()?);
        // Also false for NaN.
        if float.abs() <= MAX_VALUE { Ok(float) } else { Err(corrupt("a number is out of range")) }
    }

    fn floats(&mut self, count: usize) -> Result<Vec<f32>, LoadError> {
        let bytes = count.checked_mul(4).ok_or_else(too_short)?;
        let mut reader = ByteReader { rest: self.take(bytes)? };
        (0..count).map(|_| reader.float()).collect()
    }

    fn table(&mut self, rows: usize, columns: usize) -> Result<Array2<f32>, LoadError> {
        let count = rows.checked_mul(columns).ok_or_else(too_short)?;
        Ok(Array2::from_shape_vec((rows, columns), self.floats(count)?).expect("as many as requested"))
    }

    fn sparse(&mut self, grams: NgramKind, classes: usize) -> Result<SparseHead, LoadError> {
        let count = self.count()?;
        let bytes = self.take(count.checked_mul(2).ok_or_else(too_short)?)?;
        let buckets: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        if !buckets.is_sorted_by(|one, next| one < next) {
            return Err(corrupt("vocabulary is not sorted"));
        }
        let weights = self.table(count, classes)?.into_raw_vec_and_offset().0;
        let vocabulary = Vocabulary::from_sorted(buckets.into_iter());
        Ok(SparseHead { grams, vocabulary, weights, bias: self.floats(classes)? })
    }

    fn scope(&mut self, dimension: usize, classes: usize) -> Result<OutOfScope, LoadError> {
        let neighbours = match self.count()? {
            0 => None,
            count => {
                let class_of = self.take(count.checked_mul(4).ok_or_else(too_short)?)?;
                let (class_of, _) = class_of.as_chunks();
                let class_of: Vec<u32> = class_of.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
                if class_of.iter().any(|class| *class as usize >= classes) {
                    return Err(corrupt("an example has an unknown class"));
                }
                let scales = self.floats(count)?;
                let numbers = self.take(count.checked_mul(dimension).ok_or_else(too_short)?)?;
                let numbers = numbers.iter().map(|byte| byte.cast_signed()).collect();
                Some(Neighbours { dimension, class_of, scales, numbers })
            }
        };
        let middles = self.table(classes, dimension)?;
        let spreads = [self.standardizer()?, self.standardizer()?, self.standardizer()?];
        Ok(OutOfScope { neighbours, centroids: middles, standardizers: spreads, reference_scores: self.sorted()? })
    }

    fn sorted(&mut self) -> Result<Vec<f32>, LoadError> {
        let count = self.count()?;
        let floats = self.floats(count)?;
        match floats.is_sorted() {
            true => Ok(floats),
            false => Err(corrupt("scores are not sorted")),
        }
    }

    fn standardizer(&mut self) -> Result<Standardizer, LoadError> {
        let spread = Standardizer { mean: self.float()?, deviation: self.float()? };
        match spread.is_usable() {
            true => Ok(spread),
            false => Err(corrupt("standard deviation is too small")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Embedding;
    use crate::heads::Example;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    static SAVED: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let embed = |vector| Embedding { model: ModelId::from("m"), vector, tokens: 3, truncated: false };
        let embeddings = [embed(vec![1.0, 0.0]), embed(vec![0.0, 1.0])];
        let example = |index: usize| {
            let (class, text) = [(0, "red rose"), (1, "blue sea")][index % 2];
            Example { text, embedding: &embeddings[class], class }
        };
        let examples: Vec<Example<'_>> = (0..12).map(example).collect();
        Classifier::train(&examples, 2).unwrap().to_bytes()
    });

    const HEADER: usize = MAGIC.len() + 4 + 8 + 8;

    #[test]
    fn what_was_written_is_read() {
        assert_eq!(read(&SAVED).unwrap().to_bytes(), *SAVED);
    }

    #[test]
    fn foreign_files_and_other_versions_are_told_apart() {
        assert_eq!(read(b"PK\x03\x04").unwrap_err(), LoadError::InvalidMagic);
        assert_eq!(read(&[]).unwrap_err(), LoadError::InvalidMagic);
        let mut newer = SAVED.clone();
        newer[MAGIC.len()] = 9;
        assert_eq!(read(&newer).unwrap_err(), LoadError::UnsupportedVersion { found: 9 });
    }

    #[test]
    fn a_file_cut_short_anywhere_is_refused() {
        for end in 0..SAVED.len() {
            assert!(read(&SAVED[..end]).is_err(), "{end}");
            // A truncated body with a recomputed header must fail too.
            if let Some(body) = SAVED[..end].get(HEADER..) {
                assert!(read(&add_header(body)).is_err(), "{end}");
            }
        }
        let longer = [&SAVED[..], b"!"].concat();
        assert_eq!(
            read(&longer).unwrap_err(),
            LoadError::WrongLength { found: longer.len(), expected: SAVED.len() as u64 }
        );
    }

    #[test]
    fn one_wrong_bit_is_noticed() {
        for place in (0..SAVED.len()).step_by(7) {
            let mut wrong = SAVED.clone();
            wrong[place] ^= 1;
            assert!(read(&wrong).is_err(), "{place}");
        }
    }

    #[test]
    fn sizes_that_no_file_can_hold_are_refused_before_anything_is_set_aside() {
        let mut body = Vec::new();
        put_count(&mut body, 0);
        put_count(&mut body, u32::MAX as usize);
        put_count(&mut body, u32::MAX as usize);
        assert_eq!(read(&add_header(&body)).unwrap_err(), too_short());
    }

    proptest! {
        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(read(&bytes).is_err());
            prop_assert!(read(&add_header(&bytes)).is_err());
        }

        /// The checksum is recomputed, so the test exercises the parser itself. Accepted input must work.
        #[test]
        fn any_change_is_refused_or_harmless(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
            let mut body = SAVED[HEADER..].to_vec();
            for (place, value) in changes {
                let place = place.index(body.len());
                body[place] = value;
            }
            if let Ok(classifier) = read(&add_header(&body)) {
                let embedding = Embedding { model: classifier.model().clone(), vector: vec![0.6, 0.8], tokens: 3, truncated: false };
                let verdict = classifier.classify("red sea", &embedding).unwrap();
                prop_assert!((verdict.probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-4);
                prop_assert!(verdict.strangeness.is_finite());
            }
        }
    }
}
