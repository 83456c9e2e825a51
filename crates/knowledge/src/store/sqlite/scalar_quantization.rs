//! Scalar quantization of vectors.
//!
//! A window consists of one byte for the code width, a scale, and a code per number: the number is code times scale.
//! One byte per code is enough for most vectors (a quarter of the size of floats); a vector that would lose too much
//! accuracy gets two. The scale preserves the length exactly, so only the direction is rounded.

use crate::store::Error;

/// Minimum cosine similarity between a stored vector and the original.
pub const MIN_COSINE_SIMILARITY: f32 = 0.9999;

/// The encoded windows of a chunk, concatenated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EncodedVectors {
    pub(super) dimensions: u32,
    pub(super) windows: u32,
    pub(super) codes: Vec<u8>,
}

/// Size of the header: code width and scale.
const HEADER_BYTES: usize = 1 + 4;

/// All windows must have the same number of dimensions and contain only finite numbers.
pub(super) fn encode(windows: &[Vec<f32>]) -> Result<EncodedVectors, Error> {
    let dimensions = windows.first().map_or(0, Vec::len);
    let mut codes = Vec::with_capacity(windows.len() * (HEADER_BYTES + dimensions));
    for window in windows {
        if window.len() != dimensions || !window.iter().all(|number| number.is_finite()) {
            return Err(Error::Internal("vectors of a chunk differ in dimension or contain NaN".to_owned()));
        }
        let narrow = quantize(window, f32::from(i8::MAX));
        if cosine(window, &narrow) >= MIN_COSINE_SIMILARITY {
            codes.push(1);
            codes.extend(scale(window, &narrow).to_le_bytes());
            codes.extend(narrow.iter().map(|code| *code as i8 as u8));
        } else {
            let wide = quantize(window, f32::from(i16::MAX));
            codes.push(2);
            codes.extend(scale(window, &wide).to_le_bytes());
            codes.extend(wide.iter().flat_map(|code| (*code as i16).to_le_bytes()));
        }
    }
    Ok(EncodedVectors { dimensions: dimensions as u32, windows: windows.len() as u32, codes })
}

/// Returns None if the bytes are not a valid encoding.
pub(super) fn decode(dimensions: u32, windows: u32, mut codes: &[u8]) -> Option<Vec<Vec<f32>>> {
    let dimensions = dimensions as usize;
    let mut vectors = Vec::new();
    for _ in 0..windows {
        let (head, rest) = codes.split_first_chunk::<HEADER_BYTES>()?;
        let [width, scale @ ..] = *head;
        let scale = f32::from_le_bytes(scale);
        let (body, rest) = rest.split_at_checked(dimensions.checked_mul(usize::from(width))?)?;
        vectors.push(match width {
            1 => body.iter().map(|code| f32::from(*code as i8) * scale).collect(),
            2 => body.chunks_exact(2).map(|pair| f32::from(i16::from_le_bytes([pair[0], pair[1]])) * scale).collect(),
            _ => return None,
        });
        codes = rest;
    }
    codes.is_empty().then_some(vectors)
}

/// Codes from `-most` to `most`, still as floats.
fn quantize(vector: &[f32], most: f32) -> Vec<f32> {
    let largest = vector.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    let step = if largest > 0.0 { most / largest } else { 0.0 };
    vector.iter().map(|number| (number * step).round().clamp(-most, most)).collect()
}

/// The scale that gives the codes the length of the vector.
fn scale(vector: &[f32], codes: &[f32]) -> f32 {
    let (wanted, has) = (length(vector), length(codes));
    if has > 0.0 { (wanted / has) as f32 } else { 0.0 }
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let lengths = length(a) * length(b);
    if lengths > 0.0 { (dot(a, b) / lengths) as f32 } else { 1.0 }
}

fn length(vector: &[f32]) -> f64 {
    dot(vector, vector).sqrt()
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_vector_comes_back_with_its_direction_and_its_length(
            windows in (1_usize..500).prop_flat_map(|length| {
                prop::collection::vec(prop::collection::vec(-1.0_f32..1.0, length), 0..4)
            })
        ) {
            let encoded = encode(&windows).unwrap();
            let decoded = decode(encoded.dimensions, encoded.windows, &encoded.codes).unwrap();
            prop_assert_eq!(decoded.len(), windows.len());
            for (vector, kept) in windows.iter().zip(&decoded) {
                prop_assert!(cosine(vector, kept) >= MIN_COSINE_SIMILARITY - 1e-6);
                prop_assert!((length(vector) - length(kept)).abs() <= 1e-5 * length(vector));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(dimensions in 0_u32..9, windows in 0_u32..9, codes: Vec<u8>) {
            decode(dimensions, windows, &codes);
        }
    }

    #[test]
    fn one_large_number_among_small_ones_gets_wider_codes() {
        let mut vector = vec![0.01_f32; 384];
        vector[0] = 8.0;
        let encoded = encode(&[vector.clone()]).unwrap();
        assert_eq!(encoded.codes[0], 2);
        let decoded = decode(384, 1, &encoded.codes).unwrap();
        assert!(cosine(&vector, &decoded[0]) > MIN_COSINE_SIMILARITY);
    }

    #[test]
    fn nothing_at_all_stays_nothing() {
        let encoded = encode(&[vec![0.0; 4]]).unwrap();
        assert_eq!(decode(4, 1, &encoded.codes).unwrap(), [vec![0.0; 4]]);
    }

    #[test]
    fn what_is_no_vector_is_refused() {
        assert!(encode(&[vec![f32::NAN]]).is_err());
        assert!(encode(&[vec![0.5], vec![0.5, 0.5]]).is_err());
    }
}
