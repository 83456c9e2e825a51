//! A line of text cut out of the picture, straightened and brought to the height that the reader expects.

use super::Picture;
use super::geometry::{Point, Slanted, Turn};

pub(crate) const HEIGHT: usize = 48;
/// Widths are multiples of this: the reader looks at every eighth column.
const STEP: usize = 8;
/// What the reader was taught with at most. Longer lines are squeezed.
const MOST_WIDTH: usize = 3200;
const LEAST_WIDTH: usize = 48;

/// A line as the reader takes it: blue, then green, then red, each from -1 to 1.
#[derive(Debug)]
pub(crate) struct Crop {
    pub(crate) width: usize,
    pub(crate) numbers: Vec<f32>,
}

/// Where a line is in the picture, and which way it is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Where the line begins, above.
    origin: Point,
    /// To where it ends, above.
    along: Point,
    /// To where it begins, below.
    down: Point,
}

impl Place {
    /// Of a box in the turned picture. Its text is read as if the box were turned once more, by `inner`.
    pub(crate) fn of(place: &Slanted, picture: &Picture<'_>, turn: Turn, inner: Turn) -> Place {
        let corners = place.corners().map(|corner| turn.undo(corner, picture.width as f32, picture.height as f32));
        // Which corner comes first when the box is turned clockwise.
        let first = match inner {
            Turn::None => 0,
            Turn::Quarter => 3,
            Turn::Half => 2,
            Turn::ThreeQuarters => 1,
        };
        let corner = |index: usize| corners[(first + index) % 4];
        Place { origin: corner(0), along: corner(1).minus(corner(0)), down: corner(3).minus(corner(0)) }
    }

    pub(crate) fn corners(&self) -> [Point; 4] {
        let (origin, end) = (self.origin, self.origin.plus(self.along));
        [origin, end, end.plus(self.down), origin.plus(self.down)]
    }

    /// How wide the crop will be.
    pub(crate) fn width(&self) -> usize {
        let (wide, high) = (self.along.dot(self.along).sqrt(), self.down.dot(self.down).sqrt().max(1.0));
        let width = (HEIGHT as f32 * wide / high).ceil() as usize;
        width.clamp(LEAST_WIDTH, MOST_WIDTH).next_multiple_of(STEP)
    }

    pub(crate) fn cut(&self, picture: &Picture<'_>) -> Crop {
        let (wide, high) = (self.along.dot(self.along).sqrt(), self.down.dot(self.down).sqrt().max(1.0));
        let width = self.width();
        // Short texts are not stretched to the least width: the picture goes on beside them.
        let natural = (HEIGHT as f32 * wide / high).clamp(1.0, MOST_WIDTH as f32);
        let (step_x, step_y) = (self.along.times(1.0 / natural), self.down.times(1.0 / HEIGHT as f32));
        let start = self.origin.minus(step_x.times((width as f32 - natural) / 2.0));
        // Where the line is larger than the crop, several places make one pixel.
        let samples = |step: Point| (step.dot(step).sqrt().round() as usize).clamp(1, 8);
        let (samples_x, samples_y) = (samples(step_x), samples(step_y));
        let share = 1.0 / (samples_x * samples_y) as f32 / 127.5;

        let mut numbers = vec![0.0; 3 * HEIGHT * width];
        let (blue, rest) = numbers.split_at_mut(HEIGHT * width);
        let (green, red) = rest.split_at_mut(HEIGHT * width);
        for y in 0..HEIGHT {
            for x in 0..width {
                let mut sum = [0.0f32; 3];
                for inner_y in 0..samples_y {
                    let down = y as f32 + (inner_y as f32 + 0.5) / samples_y as f32;
                    for inner_x in 0..samples_x {
                        let along = x as f32 + (inner_x as f32 + 0.5) / samples_x as f32;
                        let place = start.plus(step_x.times(along)).plus(step_y.times(down));
                        let colour = sample(picture, place);
                        sum = [sum[0] + colour[0], sum[1] + colour[1], sum[2] + colour[2]];
                    }
                }
                let index = y * width + x;
                blue[index] = sum[2] * share - 1.0;
                green[index] = sum[1] * share - 1.0;
                red[index] = sum[0] * share - 1.0;
            }
        }
        Crop { width, numbers }
    }
}

/// The colour between four pixels. Beyond the picture its last pixels go on.
#[inline]
fn sample(picture: &Picture<'_>, place: Point) -> [f32; 3] {
    let (width, height) = (picture.width as usize, picture.height as usize);
    let x = (place.x - 0.5).clamp(0.0, (width - 1) as f32);
    let y = (place.y - 0.5).clamp(0.0, (height - 1) as f32);
    let (left, top) = (x as usize, y as usize);
    let (right, bottom) = ((left + 1).min(width - 1), (top + 1).min(height - 1));
    let (part_x, part_y) = (x - left as f32, y - top as f32);
    let pixel = |x: usize, y: usize| &picture.rgb[(y * width + x) * 3..][..3];
    let (a, b, c, d) = (pixel(left, top), pixel(right, top), pixel(left, bottom), pixel(right, bottom));
    std::array::from_fn(|colour| {
        let above = f32::from(a[colour]) * (1.0 - part_x) + f32::from(b[colour]) * part_x;
        let below = f32::from(c[colour]) * (1.0 - part_x) + f32::from(d[colour]) * part_x;
        above * (1.0 - part_y) + below * part_y
    })
}
