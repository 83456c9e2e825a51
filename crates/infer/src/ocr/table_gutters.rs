//! Column gutters between the cells of a table.
//!
//! A wide gap separates two cells. A narrow gap does too, if most rows have a gap at the same position and no row
//! crosses it; words of running text are never aligned like this.

use super::reading_order::is_wide;
use super::{OcrLine, Point};

/// Space in the box before and after the letters, in heights of the box.
const MARGIN: f32 = 0.15;
/// Aligned gaps in fewer rows are coincidence.
const MIN_GUTTER_ROWS: usize = 3;

/// Positions that no row covers, along the rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableGutters {
    /// Direction of the rows.
    along: Point,
    centers: Vec<f32>,
}

impl TableGutters {
    /// Gutters of one paragraph.
    pub(crate) fn between(lines: &[OcrLine]) -> TableGutters {
        let length = |line: &OcrLine| distance(line.quad.0[0], line.quad.0[1]);
        let longest = lines.iter().max_by(|one, other| length(one).total_cmp(&length(other)));
        let along = longest.map_or(Point::default(), |line| {
            line.quad.0[1].sub(line.quad.0[0]).scale(1.0 / length(line).max(f32::MIN_POSITIVE))
        });
        let mut strips = TableGutters { along, centers: Vec::new() };
        let rows: Vec<&[OcrLine]> = lines.chunk_by(|one, next| one.row == next.row).collect();
        let apart = rows.iter().filter(|row| row.len() > 1).count();
        if apart < MIN_GUTTER_ROWS || 2 * apart < rows.len() {
            return strips;
        }
        let gaps: Vec<Vec<(f32, f32)>> = rows
            .iter()
            .map(|row| row.windows(2).map(|pair| (strips.range(&pair[0]).1, strips.range(&pair[1]).0)).collect())
            .collect();
        let mut ranges: Vec<(f32, f32)> = lines.iter().map(|line| strips.range(line)).collect();
        ranges.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut reached = f32::MAX;
        for (start, end) in ranges {
            let middle = (reached + start) / 2.0;
            let with_gap = gaps.iter().filter(|row| row.iter().any(|gap| gap.0 <= middle && middle <= gap.1)).count();
            if start > reached && with_gap >= MIN_GUTTER_ROWS && 2 * with_gap >= rows.len() {
                strips.centers.push(middle);
            }
            reached = if reached == f32::MAX { end } else { reached.max(end) };
        }
        strips
    }

    /// Whether two lines of one row are separate cells.
    pub(crate) fn separates(&self, left: &OcrLine, right: &OcrLine) -> bool {
        let height = |line: &OcrLine| distance(line.quad.0[0], line.quad.0[3]);
        let (end, start) = (self.range(left).1, self.range(right).0);
        is_wide(distance(left.quad.0[1], right.quad.0[0]), height(left).min(height(right)))
            || self.centers.iter().any(|middle| (end..=start).contains(middle))
    }

    /// Horizontal extent of the letters of a line.
    fn range(&self, line: &OcrLine) -> (f32, f32) {
        let (start, end) = (line.quad.0[0].dot(self.along), line.quad.0[1].dot(self.along));
        let room = (MARGIN * distance(line.quad.0[0], line.quad.0[3])).min((end - start) / 4.0);
        (start + room, end - room)
    }
}

fn distance(one: Point, other: Point) -> f32 {
    one.sub(other).dot(one.sub(other)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ocr::Quad;

    /// Lines 20 pixels high: start, end and row of each.
    fn parts(places: &[(f32, f32, usize)], angle: f32) -> Vec<bool> {
        let (along, down) = (Point::at_angle(angle), Point::at_angle(angle).perpendicular());
        let line = |(left, right, row): &(f32, f32, usize)| {
            let top = 30.0 * *row as f32;
            let corners = [(*left, top), (*right, top), (*right, top + 20.0), (*left, top + 20.0)];
            let quad = Quad(corners.map(|(x, y)| along.scale(x).add(down.scale(y))));
            OcrLine { text: "cell".into(), confidence: 1.0, quad, paragraph: 0, row: *row, ends: true }
        };
        let lines: Vec<OcrLine> = places.iter().map(line).collect();
        let strips = TableGutters::between(&lines);
        lines
            .windows(2)
            .filter(|pair| pair[0].row == pair[1].row)
            .map(|pair| strips.separates(&pair[0], &pair[1]))
            .collect()
    }

    #[test]
    fn a_narrow_gap_parts_cells_where_it_goes_through_all_rows() {
        let mut places = vec![(60.0, 100.0, 0), (106.0, 160.0, 0), (80.0, 100.0, 1), (107.0, 190.0, 1)];
        places.extend([(70.0, 101.0, 2), (106.0, 180.0, 2), (106.0, 170.0, 3)]);
        for angle in [0.0, 3.0, -4.0] {
            assert_eq!(parts(&places, angle), [true; 3], "{angle}");
        }
        places.push((60.0, 200.0, 4));
        assert_eq!(parts(&places, 0.0), [false; 3]);
    }

    #[test]
    fn gaps_at_different_places_part_nothing() {
        let places =
            [(0.0, 100.0, 0), (106.0, 300.0, 0), (0.0, 160.0, 1), (166.0, 300.0, 1), (0.0, 50.0, 2), (56.0, 300.0, 2)];
        assert_eq!(parts(&places, 0.0), [false; 3]);
        assert_eq!(parts(&[(0.0, 100.0, 0), (140.0, 300.0, 0)], 0.0), [true]);
        assert_eq!(parts(&[(0.0, 100.0, 0), (106.0, 300.0, 0)], 0.0), [false]);
    }
}
