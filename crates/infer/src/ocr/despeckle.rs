//! Despeckle filter: removes isolated pixels and pairs, dark on paper or pale in ink. The recognizer takes them for
//! strokes and loses the spaces between words. Even thin strokes of letters are kept, because their pixels have similar
//! neighbours.

use super::ImageRef;

/// Pixels whose green differs by less are similar. Sensor noise differs by less, and smoothing it would blur letters.
const MAX_EQUAL_DIFFERENCE: u8 = 100;
/// Below one speck in this number of pixels, specks are kept: they do no harm, and one may be a full stop.
const MIN_PIXELS_PER_SPECK: usize = 600;
/// Row interval of the sampling that checks for specks.
const SAMPLE_ROW_STEP: usize = 8;

/// The image without specks; `None` if there are few.
pub(crate) fn despeckle(picture: &ImageRef<'_>) -> Option<Vec<u8>> {
    let (width, height) = (picture.width as usize, picture.height as usize);
    if width < 3 || height < 3 {
        return None;
    }
    let inside = 1..width - 1;
    let specks = |y: usize| inside.clone().map(move |x| (y * width + x) * 3).filter(|place| is_speck(picture, *place));
    let rows = (1..height - 1).step_by(SAMPLE_ROW_STEP);
    let looked_at = rows.len() * width;
    if rows.map(|y| specks(y).count()).sum::<usize>() * MIN_PIXELS_PER_SPECK < looked_at {
        return None;
    }
    let mut cleaned = picture.rgb.to_vec();
    for y in 1..height - 1 {
        for place in specks(y) {
            let mut around = neighbours(width, place);
            around.sort_by_key(|place| picture.rgb[place + 1]);
            let middle = around[around.len() / 2];
            cleaned[place..place + 3].copy_from_slice(&picture.rgb[middle..middle + 3]);
        }
    }
    Some(cleaned)
}

/// Whether a pixel has no similar neighbour, or a single one without further similar neighbours. The last pixel of a
/// thin stroke has a similar neighbour that continues the stroke.
#[inline(always)]
fn is_speck(picture: &ImageRef<'_>, place: usize) -> bool {
    let mut found = similar_neighbours(picture, place);
    match (found.next(), found.next()) {
        (None, _) => true,
        (Some(other), None) => {
            let (width, height) = (picture.width as usize, picture.height as usize);
            let (x, y) = (other / 3 % width, other / 3 / width);
            let is_inside = (1..width - 1).contains(&x) && (1..height - 1).contains(&y);
            is_inside && similar_neighbours(picture, other).nth(1).is_none()
        }
        _ => false,
    }
}

/// Neighbours of about the same colour.
#[inline(always)]
fn similar_neighbours(picture: &ImageRef<'_>, place: usize) -> impl Iterator<Item = usize> {
    let green = picture.rgb[place + 1];
    let around = neighbours(picture.width as usize, place).into_iter();
    around.filter(move |other| picture.rgb[other + 1].abs_diff(green) < MAX_EQUAL_DIFFERENCE)
}

/// Offsets of the eight neighbours of a pixel that is not at the border.
#[inline(always)]
fn neighbours(width: usize, place: usize) -> [usize; 8] {
    let (above, below) = (place - 3 * width, place + 3 * width);
    [place - 3, place + 3, above, below, above - 3, above + 3, below - 3, below + 3]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specks_go_and_strokes_stay() {
        let (width, height) = (120, 96);
        let mut rgb = vec![240u8; width * height * 3];
        let mut draw = |x: usize, y: usize, colour: u8| rgb[(y * width + x) * 3..][..3].fill(colour);
        // A thin stroke, and a thick one with a hole of one pixel.
        (10..60).for_each(|x| draw(x, 20, 10));
        (30..50).for_each(|y| (10..14).for_each(|x| draw(x, y, 10)));
        draw(12, 40, 255);
        let clean = |rgb: &[u8]| despeckle(&ImageRef { width: width as u32, height: height as u32, rgb });
        assert_eq!(clean(&rgb), None);
        let mut dusty = rgb.clone();
        for y in (1..height - 1).step_by(8) {
            (70..110).step_by(7).for_each(|x| dusty[(y * width + x) * 3..][..3].fill(0));
            dusty[(y * width + 71) * 3..][..3].fill(20);
        }
        let mut expected = rgb.clone();
        expected[(40 * width + 12) * 3..][..3].fill(10);
        assert_eq!(clean(&dusty), Some(expected));
    }
}
