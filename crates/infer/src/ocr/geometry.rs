//! Points, rotated rectangles, and rotations by multiples of 90°.
//!
//! Coordinates are in pixels from the top left; the center of a pixel is at 0.5.

/// A point in an image.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Point {
    pub x: f32,
    pub y: f32,
}

/// Corners of a text line in the original image, relative to the reading direction: top start, top end, bottom end,
/// bottom start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quad(pub [Point; 4]);

/// Clockwise rotation that makes the text of an image upright.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rotation {
    #[default]
    None,
    Quarter,
    Half,
    ThreeQuarters,
}

/// Rotated bounding rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RotatedRect {
    pub(crate) centre: Point,
    /// Unit vector along the width. It points right, within 45°.
    pub(crate) along: Point,
    pub(crate) width: f32,
    pub(crate) height: f32,
}

/// Axis-aligned rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BoundingBox {
    pub(crate) left: f32,
    pub(crate) top: f32,
    pub(crate) right: f32,
    pub(crate) bottom: f32,
}

impl Point {
    pub(crate) fn new(x: f32, y: f32) -> Point {
        Point { x, y }
    }

    pub(crate) fn add(self, other: Point) -> Point {
        Point::new(self.x + other.x, self.y + other.y)
    }

    pub(crate) fn sub(self, other: Point) -> Point {
        Point::new(self.x - other.x, self.y - other.y)
    }

    pub(crate) fn scale(self, factor: f32) -> Point {
        Point::new(self.x * factor, self.y * factor)
    }

    pub(crate) fn dot(self, other: Point) -> f32 {
        self.x * other.x + self.y * other.y
    }

    /// Positive if `other` is clockwise of `self` (y points down).
    pub(crate) fn cross(self, other: Point) -> f32 {
        self.x * other.y - self.y * other.x
    }

    /// Rotates by 90° clockwise.
    pub(crate) fn perpendicular(self) -> Point {
        Point::new(-self.y, self.x)
    }

    pub(crate) fn at_angle(degrees: f32) -> Point {
        let (sin, cos) = degrees.to_radians().sin_cos();
        Point::new(cos, sin)
    }
}

impl Rotation {
    /// The size of a rotated image.
    pub(crate) fn size<N>(self, width: N, height: N) -> (N, N) {
        match self {
            Rotation::None | Rotation::Half => (width, height),
            Rotation::Quarter | Rotation::ThreeQuarters => (height, width),
        }
    }

    /// Maps a point of the rotated image to the original image, whose size is given.
    pub(crate) fn unrotate(self, place: Point, width: f32, height: f32) -> Point {
        match self {
            Rotation::None => place,
            Rotation::Quarter => Point::new(place.y, height - place.x),
            Rotation::Half => Point::new(width - place.x, height - place.y),
            Rotation::ThreeQuarters => Point::new(width - place.y, place.x),
        }
    }
}

impl RotatedRect {
    /// The minimum-area rectangle around a convex hull.
    pub(crate) fn around(hull: &[Point]) -> Option<RotatedRect> {
        let edges = hull.iter().zip(hull.iter().cycle().skip(1)).map(|(from, to)| to.sub(*from));
        edges
            .filter_map(|edge| {
                let length = edge.dot(edge).sqrt();
                (length > 0.0).then(|| RotatedRect::at(hull, edge.scale(1.0 / length)))
            })
            .min_by(|one, other| (one.width * one.height).total_cmp(&(other.width * other.height)))
    }

    /// The bounding rectangle of a hull with a side in this direction.
    pub(crate) fn at(hull: &[Point], direction: Point) -> RotatedRect {
        let mut along = direction;
        while along.x < along.y.abs() || along.x <= 0.0 {
            along = along.perpendicular();
        }
        let across = along.perpendicular();
        let range = |axis: Point| {
            hull.iter().fold((f32::MAX, f32::MIN), |(least, most), point| {
                let place = point.dot(axis);
                (least.min(place), most.max(place))
            })
        };
        let ((left, right), (top, bottom)) = (range(along), range(across));
        let centre = along.scale((left + right) / 2.0).add(across.scale((top + bottom) / 2.0));
        RotatedRect { centre, along, width: right - left, height: bottom - top }
    }

    /// Top left, top right, bottom right, bottom left.
    pub(crate) fn corners(&self) -> [Point; 4] {
        let (half, tall) = (self.along.scale(self.width / 2.0), self.along.perpendicular().scale(self.height / 2.0));
        [
            self.centre.sub(half).sub(tall),
            self.centre.add(half).sub(tall),
            self.centre.add(half).add(tall),
            self.centre.sub(half).add(tall),
        ]
    }

    pub(crate) fn expand(self, distance: f32) -> RotatedRect {
        RotatedRect { width: self.width + 2.0 * distance, height: self.height + 2.0 * distance, ..self }
    }

    /// In degrees, clockwise.
    pub(crate) fn angle(&self) -> f32 {
        self.along.y.atan2(self.along.x).to_degrees()
    }

    pub(crate) fn aspect(&self) -> f32 {
        self.width / self.height.max(f32::MIN_POSITIVE)
    }
}

impl BoundingBox {
    pub(crate) fn around(points: &[Point]) -> BoundingBox {
        let nothing = BoundingBox { left: f32::MAX, top: f32::MAX, right: f32::MIN, bottom: f32::MIN };
        points.iter().fold(nothing, |box_, point| BoundingBox {
            left: box_.left.min(point.x),
            top: box_.top.min(point.y),
            right: box_.right.max(point.x),
            bottom: box_.bottom.max(point.y),
        })
    }

    pub(crate) fn height(&self) -> f32 {
        self.bottom - self.top
    }

    pub(crate) fn width(&self) -> f32 {
        self.right - self.left
    }

    pub(crate) fn union(self, other: BoundingBox) -> BoundingBox {
        BoundingBox {
            left: self.left.min(other.left),
            top: self.top.min(other.top),
            right: self.right.max(other.right),
            bottom: self.bottom.max(other.bottom),
        }
    }
}

/// Convex hull of points, in order.
pub(crate) fn convex_hull(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_unstable_by(|one, other| one.x.total_cmp(&other.x).then(one.y.total_cmp(&other.y)));
    points.dedup();
    if points.len() < 3 {
        return points;
    }
    let half = |points: &mut dyn Iterator<Item = Point>| {
        let mut chain: Vec<Point> = Vec::new();
        for point in points {
            while let [.., before, last] = chain[..]
                && last.sub(before).cross(point.sub(last)) <= 0.0
            {
                chain.pop();
            }
            chain.push(point);
        }
        chain.pop();
        chain
    };
    let mut hull = half(&mut points.iter().copied());
    hull.extend(half(&mut points.iter().rev().copied()));
    hull
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_rectangle_stands_at_the_slant_of_the_points() {
        for degrees in [-40.0f32, -5.0, -1.2, 0.0, 0.3, 12.0, 44.0] {
            let along = Point::at_angle(degrees);
            let truth = RotatedRect { centre: Point::new(70.0, 50.0), along, width: 60.0, height: 10.0 };
            let found = RotatedRect::around(&convex_hull(truth.corners().to_vec())).unwrap();
            assert!((found.angle() - degrees).abs() < 0.01, "{degrees}: {found:?}");
            assert!((found.width - 60.0).abs() < 0.01 && (found.height - 10.0).abs() < 0.01, "{degrees}: {found:?}");
        }
    }

    #[test]
    fn a_hull_leaves_out_what_is_inside() {
        let points = [(0.0, 0.0), (4.0, 0.0), (2.0, 1.0), (4.0, 3.0), (0.0, 3.0), (2.0, 0.0)];
        let hull = convex_hull(points.iter().map(|(x, y)| Point::new(*x, *y)).collect());
        assert_eq!(hull.len(), 4, "{hull:?}");
    }

    #[test]
    fn turning_back_is_the_inverse_of_turning() {
        let (width, height) = (30.0, 20.0);
        // The top left corner of the rotated image is a different corner of the original.
        let corner = |turn: Rotation| turn.unrotate(Point::default(), width, height);
        assert_eq!(corner(Rotation::Quarter), Point::new(0.0, 20.0));
        assert_eq!(corner(Rotation::Half), Point::new(30.0, 20.0));
        assert_eq!(corner(Rotation::ThreeQuarters), Point::new(30.0, 0.0));
    }
}
