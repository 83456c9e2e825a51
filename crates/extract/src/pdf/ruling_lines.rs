//! Ruling lines on a page, which may form a table.

use hayro_interpret::kurbo::{Affine, BezPath, PathEl, Point, Rect};

/// A page with more lines has a drawing, not a table.
pub(super) const MAX_LINES: usize = 4_000;
/// Maximum thickness of a filled rectangle that counts as a line.
pub(super) const MAX_LINE_WIDTH: f64 = 2.5;

/// A straight line, vertical or horizontal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RulingLine {
    pub(super) x0: f32,
    pub(super) y0: f32,
    pub(super) x1: f32,
    pub(super) y1: f32,
}

fn level_or_upright(rules: &mut Vec<RulingLine>, from: Point, to: Point) {
    let (across, down) = ((to.x - from.x).abs(), (to.y - from.y).abs());
    if across.max(down) < 4.0 || across.min(down) > 1.0 || rules.len() >= MAX_LINES {
        return;
    }
    rules.push(RulingLine {
        x0: from.x.min(to.x) as f32,
        y0: from.y.min(to.y) as f32,
        x1: from.x.max(to.x) as f32,
        y1: from.y.max(to.y) as f32,
    });
}

pub(super) fn outline_of(rules: &mut Vec<RulingLine>, rect: Rect) {
    let corners = [(rect.x0, rect.y0), (rect.x1, rect.y0), (rect.x1, rect.y1), (rect.x0, rect.y1)].map(Point::from);
    for (index, corner) in corners.iter().enumerate() {
        level_or_upright(rules, *corner, corners[(index + 1) % 4]);
    }
}

/// A thin filled rectangle is a line.
pub(super) fn filled(rules: &mut Vec<RulingLine>, rect: Rect) {
    let middle = rect.center();
    if rect.height() <= MAX_LINE_WIDTH && rect.width() > rect.height() {
        level_or_upright(rules, Point::new(rect.x0, middle.y), Point::new(rect.x1, middle.y));
    } else if rect.width() <= MAX_LINE_WIDTH {
        level_or_upright(rules, Point::new(middle.x, rect.y0), Point::new(middle.x, rect.y1));
    }
}

/// Spreadsheet programs fill all lines of a grid in one path, each as a rectangle.
pub(super) fn filled_parts(rules: &mut Vec<RulingLine>, path: &BezPath, transform: Affine) {
    let mut part: Option<(Rect, usize)> = None;
    for element in path.elements().iter().chain([&PathEl::MoveTo(Point::ZERO)]) {
        part = match (*element, part) {
            (PathEl::MoveTo(point), done) => {
                if let Some((rect, 3..=5)) = done {
                    filled(rules, transform.transform_rect_bbox(rect));
                }
                Some((Rect::from_points(point, point), 1))
            }
            (PathEl::LineTo(point), Some((rect, points))) => Some((rect.union_pt(point), points + 1)),
            (PathEl::ClosePath, part) => part,
            // Curves are not lines.
            _ => None,
        };
    }
}

pub(super) fn stroked(rules: &mut Vec<RulingLine>, path: &BezPath, transform: Affine) {
    let (mut first, mut last) = (Point::ZERO, Point::ZERO);
    for element in path.elements() {
        match *element {
            PathEl::MoveTo(point) => (first, last) = (transform * point, transform * point),
            PathEl::LineTo(point) => {
                let point = transform * point;
                level_or_upright(rules, last, point);
                last = point;
            }
            PathEl::ClosePath => {
                level_or_upright(rules, last, first);
                last = first;
            }
            PathEl::QuadTo(_, point) | PathEl::CurveTo(_, _, point) => last = transform * point,
        }
    }
}
