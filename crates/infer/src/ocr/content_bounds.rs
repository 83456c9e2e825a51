//! Content bounds: crops blank margins, so that detection skips them.

use std::ops::Range;

/// Neighbouring pixels that differ by less have the same colour. Pale print differs by more.
const MAX_EQUAL_DIFFERENCE: f32 = 5.0;
/// Margin in pixels that is kept around the content: the network needs context around letters.
const MARGIN_PIXELS: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContentBounds {
    pub(crate) columns: Range<usize>,
    pub(crate) rows: Range<usize>,
}

/// Content bounds of an image with `width` columns and three numbers per pixel; `None` if it is blank.
pub(crate) fn content_bounds(picture: &[f32], width: usize) -> Option<ContentBounds> {
    let height = picture.len() / 3 / width;
    let mut marked = vec![false; width];
    let (mut first, mut last) = (None, 0);
    let mut above = &picture[..width * 3];
    for (y, row) in picture.chunks_exact(width * 3).enumerate() {
        let mut any = false;
        for (x, mark) in marked.iter_mut().enumerate() {
            let place = x * 3;
            let left = place.saturating_sub(3);
            let differs = |other: &[f32]| {
                row[place..place + 3].iter().zip(other).any(|(one, other)| (one - other).abs() > MAX_EQUAL_DIFFERENCE)
            };
            if differs(&row[left..left + 3]) || differs(&above[place..place + 3]) {
                *mark = true;
                any = true;
            }
        }
        if any {
            first = first.or(Some(y));
            last = y + 1;
        }
        above = row;
    }
    let columns = marked.iter().position(|mark| *mark)?..marked.iter().rposition(|mark| *mark)? + 1;
    let with_margin = |range: Range<usize>, most: usize| {
        range.start.saturating_sub(MARGIN_PIXELS)..(range.end + MARGIN_PIXELS).min(most)
    };
    Some(ContentBounds { columns: with_margin(columns, width), rows: with_margin(first?..last, height) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_blank_is_kept_with_some_margin() {
        let (width, height) = (300, 200);
        let mut picture = vec![250.0f32; width * height * 3];
        assert_eq!(content_bounds(&picture, width), None);
        for (x, y) in [(100, 60), (180, 61)] {
            picture[(y * width + x) * 3 + 1] = 200.0;
        }
        // The pixel after a mark also differs from its neighbour.
        assert_eq!(content_bounds(&picture, width), Some(ContentBounds { columns: 68..214, rows: 28..95 }));
        picture[0] = 0.0;
        assert_eq!(content_bounds(&picture, width), Some(ContentBounds { columns: 0..214, rows: 0..95 }));
    }

    #[test]
    fn paper_that_grows_darker_is_blank() {
        let picture: Vec<f32> = (0..100 * 50).flat_map(|pixel| [200.0 + (pixel % 100) as f32 / 4.0; 3]).collect();
        assert_eq!(content_bounds(&picture, 100), None);
        assert_eq!(content_bounds(&[7.0; 3], 1), None);
    }
}
