//! Splits images much longer than a page into page-sized tiles.
//!
//! Detection runs on a downscaled image, in which the letters of a long scrolling screenshot would vanish. A tall image
//! is therefore processed in tiles. A wide image is downscaled less, because a cut would split its lines.

use std::ops::Range;

use super::ImageRef;

/// Aspect ratio of a page.
const PAGE_ASPECT: f32 = 1.414;
/// Images with a larger aspect ratio are not pages.
const MAX_PAGE_ASPECT: f32 = 2.6;
/// Maximum length of a wide image for detection, relative to a page: time and memory grow with it.
const MAX_WIDE_FACTOR: f32 = 3.0;
/// An image that needs more tiles is a strip too narrow for text; its tiles become longer.
const MAX_TILES: usize = 128;
/// Maximum offset of a cut, as a fraction of a tile.
const CUT_TOLERANCE_DIVISOR: usize = 6;
/// Overlap of neighbouring tiles, as a fraction of a tile: slanted lines cross any cut.
const OVERLAP_DIVISOR: usize = 16;
/// Rows above and below a cut that should also be empty.
const CUT_MARGIN_ROWS: usize = 6;

/// A tile: rows of an image that are processed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tile {
    /// The processed rows, including the overlap.
    pub(crate) rows: Range<usize>,
    /// Lines with their center in these rows belong to this tile; each row belongs to one tile.
    pub(crate) own: Range<usize>,
}

/// The tiles of an image from the top; a single tile if it is about as long as a page.
pub(crate) fn tiles(picture: &ImageRef<'_>, longest_side: u32) -> Vec<Tile> {
    let (width, height) = (picture.width as usize, picture.height as usize);
    // An image that needs no downscaling needs no cut.
    let wished = ((PAGE_ASPECT * width as f32) as usize).max(longest_side as usize).max(height.div_ceil(MAX_TILES));
    if height as f32 <= MAX_PAGE_ASPECT * width as f32 || height <= wished {
        return vec![Tile { rows: 0..height, own: 0..height }];
    }
    let count = height.div_ceil(wished);
    let length = height / count;
    let cut = |index: usize| {
        if index == count { height } else { emptiest_row(picture, index * length, length / CUT_TOLERANCE_DIVISOR) }
    };
    let mut start = 0;
    let band = |index: usize| {
        let own = start..cut(index);
        start = own.end;
        let rows = own.start.saturating_sub(length / OVERLAP_DIVISOR)..(own.end + length / OVERLAP_DIVISOR).min(height);
        Tile { rows, own }
    };
    (1..=count).map(band).collect()
}

/// Side length of an image for detection: a wide image keeps the height of a page.
pub(crate) fn longest_side(picture: &ImageRef<'_>, of_a_page: u32) -> u32 {
    let (long, short) = (picture.width.max(picture.height) as f32, picture.width.min(picture.height).max(1) as f32);
    if long <= MAX_PAGE_ASPECT * short {
        return of_a_page;
    }
    (of_a_page as f32 * (long / short / PAGE_ASPECT).min(MAX_WIDE_FACTOR)) as u32
}

/// The row near the target with the least content; the nearest of several.
fn emptiest_row(picture: &ImageRef<'_>, wished: usize, near: usize) -> usize {
    let (width, height) = (picture.width as usize, picture.height as usize);
    let (first, last) = (wished.saturating_sub(near + CUT_MARGIN_ROWS), (wished + near + CUT_MARGIN_ROWS).min(height));
    let change = |row: usize| -> u64 {
        let greens = picture.rgb[row * width * 3..(row + 1) * width * 3].iter().skip(1).step_by(3);
        greens.clone().zip(greens.skip(1)).map(|(one, next)| u64::from(one.abs_diff(*next))).sum()
    };
    let changes: Vec<u64> = (first..last).map(change).collect();
    let sums = changes.windows(2 * CUT_MARGIN_ROWS + 1).map(|around| around.iter().sum::<u64>());
    let rows = sums.enumerate().map(|(index, sum)| (sum, first + CUT_MARGIN_ROWS + index));
    rows.min_by_key(|(sum, row)| (*sum, row.abs_diff(wished))).map_or(wished, |(_, row)| row)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Black stripes, `ink` rows high, every `pitch` rows.
    fn striped(width: usize, height: usize, ink: usize, pitch: usize) -> Vec<u8> {
        let pixel = |place: usize| if place / width % pitch < ink && place.is_multiple_of(3) { 0 } else { 255 };
        (0..width * height).flat_map(|place| [pixel(place); 3]).collect()
    }

    fn cut(width: u32, height: u32, rgb: &[u8]) -> Vec<Tile> {
        tiles(&ImageRef { width, height, rgb }, 100)
    }

    #[test]
    fn pages_are_not_cut() {
        for (width, height) in [(100, 250), (40, 100), (1, 90), (300, 20)] {
            let found = cut(width, height, &striped(width as usize, height as usize, 8, 30));
            assert_eq!(found, [Tile { rows: 0..height as usize, own: 0..height as usize }], "{width} by {height}");
        }
    }

    #[test]
    fn a_long_picture_is_cut_where_nothing_stands_and_every_row_belongs_to_one_band() {
        let found = cut(100, 1300, &striped(100, 1300, 14, 31));
        assert!((9..=10).contains(&found.len()), "{found:?}");
        let mut end = 0;
        for band in &found {
            assert_eq!(band.own.start, end);
            assert!(band.rows.start <= band.own.start && band.own.end <= band.rows.end, "{band:?}");
            assert!(band.own.end == 1300 || band.own.end % 31 >= 14, "{band:?}");
            assert!((90..190).contains(&band.rows.len()), "{band:?}");
            end = band.own.end;
        }
        assert_eq!(end, 1300);
    }

    #[test]
    fn a_strip_has_not_many_bands() {
        let found = cut(1, 64_000, &[255; 3 * 64_000]);
        assert!(found.len() <= MAX_TILES, "{}", found.len());
        assert_eq!(found.last().map(|band| band.own.end), Some(64_000));
    }

    #[test]
    fn wide_pictures_are_looked_at_longer_up_to_a_limit() {
        let side = |width, height| longest_side(&ImageRef { width, height, rgb: &[] }, 1000);
        assert_eq!(side(1414, 1000), 1000);
        assert_eq!(side(2600, 1000), 1000);
        assert!((2100..2200).contains(&side(3000, 1000)));
        assert_eq!(side(90_000, 1000), 3000);
        assert_eq!(side(9, 0), 3000);
    }
}
