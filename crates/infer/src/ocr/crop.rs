//! Crops a text line from the image, rectified and scaled to the input height of the recognizer.

use super::ImageRef;
use super::geometry::{Point, RotatedRect, Rotation};

pub(crate) const HEIGHT: usize = 48;
/// Widths are multiples of this: the recognizer has a stride of eight columns.
const WIDTH_MULTIPLE: usize = 8;
/// Maximum width in the recognizer's training data. Longer lines are compressed.
const MAX_WIDTH: usize = 3200;
const MIN_WIDTH: usize = 48;

/// Input of the recognizer for one line: planes of blue, green and red, each from -1 to 1.
#[derive(Debug)]
pub(crate) struct Crop {
    pub(crate) width: usize,
    pub(crate) numbers: Vec<f32>,
}

/// Position of a line in the image, and its reading direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CropRegion {
    /// Top start of the line.
    origin: Point,
    /// Vector to the top end.
    along: Point,
    /// Vector to the bottom start.
    down: Point,
}

impl CropRegion {
    /// Position of a box in the rotated image. `inner` is an additional rotation of the box.
    pub(crate) fn of(place: &RotatedRect, picture: &ImageRef<'_>, turn: Rotation, inner: Rotation) -> CropRegion {
        let corners = place.corners().map(|corner| turn.unrotate(corner, picture.width as f32, picture.height as f32));
        // The corner that becomes the first when the box is rotated clockwise.
        let first = match inner {
            Rotation::None => 0,
            Rotation::Quarter => 3,
            Rotation::Half => 2,
            Rotation::ThreeQuarters => 1,
        };
        let corner = |index: usize| corners[(first + index) % 4];
        CropRegion { origin: corner(0), along: corner(1).sub(corner(0)), down: corner(3).sub(corner(0)) }
    }

    pub(crate) fn corners(&self) -> [Point; 4] {
        let (origin, end) = (self.origin, self.origin.add(self.along));
        [origin, end, end.add(self.down), origin.add(self.down)]
    }

    /// Width of the crop.
    pub(crate) fn width(&self) -> usize {
        let (wide, high) = (self.along.dot(self.along).sqrt(), self.down.dot(self.down).sqrt().max(1.0));
        let width = (HEIGHT as f32 * wide / high).ceil() as usize;
        width.clamp(MIN_WIDTH, MAX_WIDTH).next_multiple_of(WIDTH_MULTIPLE)
    }

    pub(crate) fn crop(&self, picture: &ImageRef<'_>) -> Crop {
        let (wide, high) = (self.along.dot(self.along).sqrt(), self.down.dot(self.down).sqrt().max(1.0));
        let width = self.width();
        // Short texts are not stretched to the minimum width; the crop includes more of the image on both sides.
        let natural = (HEIGHT as f32 * wide / high).clamp(1.0, MAX_WIDTH as f32);
        let (step_x, step_y) = (self.along.scale(1.0 / natural), self.down.scale(1.0 / HEIGHT as f32));
        let start = self.origin.sub(step_x.scale((width as f32 - natural) / 2.0));
        // If the line is larger than the crop, several samples are averaged per pixel.
        let samples = |step: Point| (step.dot(step).sqrt().round() as usize).clamp(1, 8);
        let (samples_x, samples_y) = (samples(step_x), samples(step_y));
        let share = 1.0 / (samples_x * samples_y) as f32 / 127.5;

        let mut numbers = vec![0.0; 3 * HEIGHT * width];
        let (blue, rest) = numbers.split_at_mut(HEIGHT * width);
        let (green, red) = rest.split_at_mut(HEIGHT * width);
        for y in 0..HEIGHT {
            let pixels = blue[y * width..].iter_mut().zip(&mut green[y * width..]).zip(&mut red[y * width..]);
            for (x, ((blue, green), red)) in pixels.take(width).enumerate() {
                let mut sum = [0.0f32; 3];
                for inner_y in 0..samples_y {
                    let down = y as f32 + (inner_y as f32 + 0.5) / samples_y as f32;
                    for inner_x in 0..samples_x {
                        let along = x as f32 + (inner_x as f32 + 0.5) / samples_x as f32;
                        let place = start.add(step_x.scale(along)).add(step_y.scale(down));
                        let colour = sample(picture, place);
                        sum = [sum[0] + colour[0], sum[1] + colour[1], sum[2] + colour[2]];
                    }
                }
                *blue = sum[2] * share - 1.0;
                *green = sum[1] * share - 1.0;
                *red = sum[0] * share - 1.0;
            }
        }
        Crop { width, numbers }
    }
}

/// Bilinear interpolation. Beyond the image, the border pixels are repeated.
#[inline(always)]
fn sample(picture: &ImageRef<'_>, place: Point) -> [f32; 3] {
    let (width, height) = (picture.width as usize, picture.height as usize);
    let x = (place.x - 0.5).clamp(0.0, (width - 1) as f32);
    let y = (place.y - 0.5).clamp(0.0, (height - 1) as f32);
    let (left, top) = (x as usize, y as usize);
    let (part_x, part_y) = (x - left as f32, y - top as f32);
    // At the right and bottom border, both pixels are the same.
    let (right, below) = (if left + 1 < width { 3 } else { 0 }, if top + 1 < height { 3 * width } else { 0 });
    let start = (top * width + left) * 3;
    let above = &picture.rgb[start..start + right + 3];
    let below = &picture.rgb[start + below..start + below + right + 3];
    let mix = |row: &[u8], colour: usize| {
        let (one, other) = (f32::from(row[colour]), f32::from(row[colour + right]));
        one + (other - one) * part_x
    };
    std::array::from_fn(|colour| {
        let (above, below) = (mix(above, colour), mix(below, colour));
        above + (below - above) * part_y
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gradient: red is the column, green is the row.
    fn ramp(width: u32, height: u32) -> Vec<u8> {
        (0..height).flat_map(|y| (0..width).flat_map(move |x| [x as u8, y as u8, 7])).collect()
    }

    #[test]
    fn colours_are_mixed_between_pixels_and_go_on_beyond_the_edge() {
        let rgb = ramp(20, 10);
        let picture = ImageRef { width: 20, height: 10, rgb: &rgb };
        assert_eq!(sample(&picture, Point::new(5.5, 3.5)), [5.0, 3.0, 7.0]);
        assert_eq!(sample(&picture, Point::new(6.0, 3.75)), [5.5, 3.25, 7.0]);
        assert_eq!(sample(&picture, Point::new(-4.0, -4.0)), [0.0, 0.0, 7.0]);
        assert_eq!(sample(&picture, Point::new(99.0, 99.0)), [19.0, 9.0, 7.0]);
        let rgb = [1, 2, 3];
        assert_eq!(sample(&ImageRef { width: 1, height: 1, rgb: &rgb }, Point::new(0.9, 0.1)), [1.0, 2.0, 3.0]);
    }

    #[test]
    fn a_box_is_read_along_its_own_direction_whichever_way_the_picture_lies() {
        let rgb = ramp(200, 100);
        let picture = ImageRef { width: 200, height: 100, rgb: &rgb };
        let place =
            RotatedRect { centre: Point::new(100.0, 50.0), along: Point::new(1.0, 0.0), width: 96.0, height: 48.0 };
        let columns = |turn: Rotation, inner: Rotation| {
            let crop = CropRegion::of(&place, &picture, turn, inner).crop(&picture);
            let red = &crop.numbers[2 * HEIGHT * crop.width..][..crop.width];
            (crop.width, ((red[0] + 1.0) * 127.5).round(), ((red[crop.width - 1] + 1.0) * 127.5).round())
        };
        assert_eq!(columns(Rotation::None, Rotation::None), (96, 52.0, 147.0));
        assert_eq!(columns(Rotation::None, Rotation::Half), (96, 147.0, 52.0));
        // With a half turn of the page, the center stays and the direction flips.
        assert_eq!(columns(Rotation::Half, Rotation::None), (96, 147.0, 52.0));
        assert_eq!(columns(Rotation::Half, Rotation::Half), (96, 52.0, 147.0));
    }
}
