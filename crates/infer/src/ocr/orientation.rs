//! Page orientation detection.
//!
//! Boxes taller than wide indicate a rotation by 90°. The recognizer decides between the two directions, and whether a
//! page with wide boxes is upside down: inverted letters have lower confidence.

use super::ctc_decoder::RecognizedText;
use super::geometry::{RotatedRect, Rotation};

/// Minimum ratio of height to width of a vertical line.
const MIN_TALL_ASPECT: f32 = 1.5;
/// Number of sampled lines. They are the longest, so they have many letters.
pub(crate) const MAX_SAMPLES: usize = 5;
/// Text with this confidence is upright.
const MIN_UPRIGHT_CONFIDENCE: f32 = 0.9;
/// Additional confidence required to treat a page as upside down. Few pages are, and a page that is illegible in both
/// directions stays as it is.
const FLIP_CONFIDENCE_MARGIN: f32 = 0.05;

/// Whether most of the text is vertical.
pub(crate) fn is_sideways(boxes: &[RotatedRect]) -> bool {
    // A single letter is weak evidence: it can be taller than wide and still be upright.
    let (mut tall, mut wide) = (0.0, 0.0);
    for place in boxes {
        if place.height >= MIN_TALL_ASPECT * place.width {
            tall += place.height - place.width;
        } else if place.width >= MIN_TALL_ASPECT * place.height {
            wide += place.width - place.height;
        }
    }
    tall > wide
}

/// The longest boxes, as samples.
pub(crate) fn samples(boxes: &[RotatedRect]) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..boxes.len()).collect();
    let longest = |index: &usize| boxes[*index].width.max(boxes[*index].height);
    indices.sort_by(|one, other| longest(other).total_cmp(&longest(one)));
    indices.truncate(MAX_SAMPLES);
    indices
}

/// Finds the rotation with legible text. `read` returns the readings of the samples under a rotation.
pub(crate) fn find_rotation<E>(
    on_its_side: bool,
    mut read: impl FnMut(Rotation) -> Result<Vec<RecognizedText>, E>,
) -> Result<Rotation, E> {
    let (first, second) =
        if on_its_side { (Rotation::Quarter, Rotation::ThreeQuarters) } else { (Rotation::None, Rotation::Half) };
    let first_score = score(&read(first)?);
    if first_score >= MIN_UPRIGHT_CONFIDENCE {
        return Ok(first);
    }
    let least = if on_its_side { first_score } else { first_score + FLIP_CONFIDENCE_MARGIN };
    Ok(if score(&read(second)?) > least { second } else { first })
}

/// Mean confidence of the samples, weighted by letters.
fn score(readings: &[RecognizedText]) -> f32 {
    let letters = |reading: &RecognizedText| reading.text.chars().count() as f32;
    let all: f32 = readings.iter().map(letters).sum();
    if all == 0.0 {
        return 0.0;
    }
    readings.iter().map(|reading| reading.confidence * letters(reading)).sum::<f32>() / all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ocr::geometry::Point;

    fn boxes(sizes: &[(f32, f32)]) -> Vec<RotatedRect> {
        let place = |(width, height): &(f32, f32)| RotatedRect {
            centre: Point::default(),
            along: Point::new(1.0, 0.0),
            width: *width,
            height: *height,
        };
        sizes.iter().map(place).collect()
    }

    fn reading(text: &str, confidence: f32) -> Result<Vec<RecognizedText>, ()> {
        Ok(vec![RecognizedText { text: text.into(), confidence }])
    }

    #[test]
    fn a_column_of_digits_does_not_turn_the_page() {
        let mut sizes = vec![(10.0, 20.0); 12];
        sizes.extend([(200.0, 20.0), (180.0, 20.0)]);
        assert!(!is_sideways(&boxes(&sizes)));
        assert!(is_sideways(&boxes(&[(20.0, 300.0), (20.0, 250.0), (40.0, 20.0)])));
        assert!(!is_sideways(&[]));
    }

    #[test]
    fn what_reads_well_is_not_read_again() {
        let mut asked = Vec::new();
        let turn = find_rotation(false, |turn| {
            asked.push(turn);
            reading("upright", 0.97)
        });
        assert_eq!((turn, asked), (Ok(Rotation::None), vec![Rotation::None]));
    }

    #[test]
    fn what_reads_better_upside_down_is_turned() {
        let read = |turn| if turn == Rotation::Half { reading("text", 0.95) } else { reading("7x37", 0.6) };
        assert_eq!(find_rotation(false, read), Ok(Rotation::Half));
        let read = |turn| if turn == Rotation::Half { reading("7x37", 0.62) } else { reading("4x73", 0.6) };
        assert_eq!(find_rotation(false, read), Ok(Rotation::None));
        let read = |turn| if turn == Rotation::ThreeQuarters { reading("text", 0.95) } else { reading("", 0.0) };
        assert_eq!(find_rotation(true, read), Ok(Rotation::ThreeQuarters));
    }
}
