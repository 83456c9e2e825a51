//! Text detection: an image becomes a probability map, and the map becomes boxes, one per line of text.

use super::ImageRef;
use super::connected_components::{Component, connected_components};
use super::content_bounds;
use super::geometry::{Point, RotatedRect, Rotation};
use super::network::{Network, Tensor};
use super::resize::resize;

/// Published settings of the network.
const THRESHOLD: f32 = 0.2;
const MIN_SCORE: f32 = 0.4;
/// The network marks the core of a line; this ratio expands it to the full line.
const UNCLIP_RATIO: f32 = 1.4;
const MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const DEVIATION: [f32; 3] = [0.229, 0.224, 0.225];
/// The network downsamples by two five times.
const MULTIPLE: usize = 32;

/// Minimum thickness in pixels of the map. Thinner regions are specks.
const MIN_CORE: f32 = 2.0;
/// Minimum aspect ratio of a box with a reliable direction.
const MIN_RELIABLE_ASPECT: f32 = 5.0;
/// Minimum difference to the skew of the page, in degrees, for a long box to keep its own angle.
const MAX_SLANT_DEVIATION: f32 = 1.5;

/// Lines of text, in coordinates of the rotated image.
#[derive(Debug, Default)]
pub(crate) struct DetectionResult {
    pub(crate) boxes: Vec<RotatedRect>,
    /// Slope of the lines to the right, in degrees (positive is downwards).
    pub(crate) skew: f32,
    /// Number of lines beyond the limit.
    pub(crate) omitted: usize,
}

pub(crate) fn detect(
    network: &Network,
    picture: &ImageRef<'_>,
    turn: Rotation,
    longest_side: u32,
    most: usize,
) -> Result<DetectionResult, String> {
    let Some(input) = DetectionInput::new(picture, turn, longest_side as usize) else {
        return Ok(DetectionResult::default());
    };
    let (height, width) = (input.height, input.width);
    let (scale, origin) = (input.scale, input.origin);
    let output = network.run(Tensor { channels: 3, height, width, numbers: input.numbers })?;
    if (output.channels, output.height, output.width) != (1, height, width) {
        return Err(format!(
            "its output map is {} by {} for an image of {width} by {height}",
            output.width, output.height
        ));
    }
    let mut blobs = connected_components(&output.numbers, width, THRESHOLD);
    blobs.retain(|blob| blob.score >= MIN_SCORE);
    // Keeps the largest if there are too many. The sort is stable, so the result is deterministic.
    blobs.sort_by_key(|blob| std::cmp::Reverse(blob.pixels));
    let left_out = blobs.len().saturating_sub(most);
    blobs.truncate(most);
    for blob in &mut blobs {
        for point in &mut blob.hull {
            *point = Point::new((point.x + origin.x) * scale.x, (point.y + origin.y) * scale.y);
        }
    }
    let least = MIN_CORE * scale.x.max(scale.y).min(1.0);
    Ok(DetectionResult { omitted: left_out, ..fit_boxes(&blobs, least) })
}

/// Boxes around components. Boxes that are too short for a reliable direction use the skew of the page.
fn fit_boxes(blobs: &[Component], least: f32) -> DetectionResult {
    let fitted: Vec<(&Component, RotatedRect)> =
        blobs.iter().filter_map(|blob| Some((blob, RotatedRect::around(&blob.hull)?))).collect();
    let skew = page_skew(fitted.iter().map(|(_, fitted)| fitted));
    let page = Point::at_angle(skew);
    let mut boxes: Vec<RotatedRect> = Vec::with_capacity(fitted.len());
    for (blob, own) in fitted {
        let long = own.aspect().max(1.0 / own.aspect());
        // For a tall box, the long side determines the aspect ratio: it may be upright on a skewed page.
        let is_own = long >= MIN_RELIABLE_ASPECT && (own.angle() - skew).abs() > MAX_SLANT_DEVIATION;
        let core = if is_own || long >= 2.0 * MIN_RELIABLE_ASPECT { own } else { RotatedRect::at(&blob.hull, page) };
        if core.width.min(core.height) < least {
            continue;
        }
        let distance = core.width * core.height * UNCLIP_RATIO / (2.0 * (core.width + core.height));
        boxes.push(core.expand(distance));
    }
    DetectionResult { boxes, skew, omitted: 0 }
}

/// Median angle of the lines, weighted by length.
pub(crate) fn page_skew<'a>(boxes: impl Iterator<Item = &'a RotatedRect>) -> f32 {
    let mut angles: Vec<(f32, f32)> = boxes
        .map(|fitted| (fitted.aspect().max(1.0 / fitted.aspect()), fitted))
        .filter(|(long, _)| *long >= MIN_RELIABLE_ASPECT)
        .map(|(_, fitted)| (fitted.angle(), fitted.width.max(fitted.height)))
        .collect();
    angles.sort_by(|one, other| one.0.total_cmp(&other.0));
    let half = angles.iter().map(|(_, length)| length).sum::<f32>() / 2.0;
    let mut passed = 0.0;
    let median = angles.iter().find(|(_, length)| {
        passed += length;
        passed >= half
    });
    median.map_or(0.0, |(angle, _)| *angle)
}

/// Input of the network.
struct DetectionInput {
    numbers: Vec<f32>,
    width: usize,
    height: usize,
    /// Offset in the scaled image, in pixels of this input.
    origin: Point,
    /// Size of one pixel of this input, in pixels of the rotated image.
    scale: Point,
}

impl DetectionInput {
    /// `None` if the image is blank.
    fn new(picture: &ImageRef<'_>, turn: Rotation, longest_side: usize) -> Option<DetectionInput> {
        let (old_width, old_height) = (picture.width as usize, picture.height as usize);
        let factor = (longest_side as f32 / old_width.max(old_height) as f32).min(1.0);
        let new = |old: usize| ((old as f32 * factor).round() as usize).max(1);
        let (small_width, small_height) = (new(old_width), new(old_height));
        let small = resize(picture, small_width, small_height);
        let part = content_bounds::content_bounds(&small, small_width)?;

        let (turned_width, turned_height) = turn.size(part.columns.len(), part.rows.len());
        let (width, height) = (turned_width.next_multiple_of(MULTIPLE), turned_height.next_multiple_of(MULTIPLE));
        let mut numbers = vec![0.0; 3 * width * height];
        let (blue, rest) = numbers.split_at_mut(width * height);
        let (green, red) = rest.split_at_mut(width * height);
        for y in 0..height {
            // Beyond the image, the border pixels are repeated.
            let inner_y = y.min(turned_height - 1);
            for x in 0..width {
                let inner_x = x.min(turned_width - 1);
                let (from_x, from_y) = match turn {
                    Rotation::None => (part.columns.start + inner_x, part.rows.start + inner_y),
                    Rotation::Quarter => (part.columns.start + inner_y, part.rows.end - 1 - inner_x),
                    Rotation::Half => (part.columns.end - 1 - inner_x, part.rows.end - 1 - inner_y),
                    Rotation::ThreeQuarters => (part.columns.end - 1 - inner_y, part.rows.start + inner_x),
                };
                let pixel = &small[(from_y * small_width + from_x) * 3..][..3];
                // The network expects BGR.
                let place = y * width + x;
                blue[place] = (pixel[2] / 255.0 - MEAN[0]) / DEVIATION[0];
                green[place] = (pixel[1] / 255.0 - MEAN[1]) / DEVIATION[1];
                red[place] = (pixel[0] / 255.0 - MEAN[2]) / DEVIATION[2];
            }
        }
        let (left, top) = (part.columns.start, part.rows.start);
        let (right, bottom) = (small_width - part.columns.end, small_height - part.rows.end);
        let (x, y) = match turn {
            Rotation::None => (left, top),
            Rotation::Quarter => (bottom, left),
            Rotation::Half => (right, bottom),
            Rotation::ThreeQuarters => (top, right),
        };
        let (whole, small) =
            (turn.size(picture.width, picture.height), turn.size(small_width as f32, small_height as f32));
        let scale = Point::new(whole.0 as f32 / small.0, whole.1 as f32 / small.1);
        Some(DetectionInput { numbers, width, height, origin: Point::new(x as f32, y as f32), scale })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(centre: (f32, f32), degrees: f32, width: f32, height: f32) -> Component {
        let centre = Point::new(centre.0, centre.1);
        let hull = RotatedRect { centre, along: Point::at_angle(degrees), width, height }.corners().to_vec();
        Component { hull, score: 1.0, pixels: (width * height) as usize }
    }

    #[test]
    fn a_short_word_takes_the_slant_of_the_page() {
        let lines = [
            blob((200.0, 20.0), 2.0, 300.0, 10.0),
            blob((200.0, 40.0), 2.2, 300.0, 10.0),
            blob((60.0, 60.0), -9.0, 14.0, 10.0),
        ];
        let detected = fit_boxes(&lines, 1.0);
        assert!((detected.skew - 2.0).abs() < 0.21, "{detected:?}");
        assert!((detected.boxes[2].angle() - detected.skew).abs() < 0.01, "{detected:?}");
    }

    #[test]
    fn a_long_line_with_a_slant_of_its_own_keeps_it() {
        let lines = [
            blob((200.0, 20.0), 0.0, 300.0, 10.0),
            blob((200.0, 40.0), 0.0, 300.0, 10.0),
            blob((200.0, 200.0), 30.0, 200.0, 10.0),
        ];
        let detected = fit_boxes(&lines, 1.0);
        assert!((detected.boxes[2].angle() - 30.0).abs() < 0.01, "{detected:?}");
    }

    #[test]
    fn a_core_is_widened_to_its_line() {
        let detected = fit_boxes(&[blob((50.0, 50.0), 0.0, 90.0, 10.0)], 1.0);
        // 900 * 1.4 / 200
        assert!((detected.boxes[0].height - (10.0 + 2.0 * 6.3)).abs() < 0.01, "{detected:?}");
    }
}
