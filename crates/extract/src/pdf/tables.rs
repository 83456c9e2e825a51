//! Ruled tables: crossing lines form a grid of cells.

use super::ruling_lines::RulingLine;

/// Tolerance: closer lines are one line, and lines that miss each other by less meet.
const MAX_LINE_DISTANCE: f32 = 3.0;
/// Minimum width of rows and columns; narrower ones are double lines.
const MIN_CELL_WIDTH: f32 = 5.0;
/// Pages with more lines have a drawing.
const MAX_LINES: usize = 600;
/// Maximum number of table cells.
const MAX_CELLS: usize = 5_000;

/// A grid of crossing lines.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RuledGrid {
    /// Positions of the vertical lines, from left to right.
    pub(super) columns: Vec<f32>,
    /// Positions of the horizontal lines, from top to bottom.
    pub(super) rows: Vec<f32>,
    /// For each cell by row and column: the merged cell it belongs to, where no line separates them.
    owners: Vec<(usize, usize)>,
}

/// A line along one axis: its position on the other axis, its start and its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stroke {
    pub(super) at: f32,
    pub(super) from: f32,
    pub(super) to: f32,
}

impl RuledGrid {
    /// The cell that contains a point.
    pub(super) fn cell(&self, x: f32, y: f32) -> Option<(usize, usize)> {
        let column = self.columns.windows(2).position(|edges| edges[0] <= x && x < edges[1])?;
        let row = self.rows.windows(2).position(|edges| edges[0] <= y && y < edges[1])?;
        Some(self.owners[row * (self.columns.len() - 1) + column])
    }
}

/// The grids of a page, from top to bottom.
pub(super) fn grids(rules: &[RulingLine]) -> Vec<RuledGrid> {
    let level = bars(rules);
    let upright = rules.iter().filter(|rule| rule.x1 - rule.x0 < rule.y1 - rule.y0);
    let upright = merge_strokes(
        upright.map(|rule| Stroke { at: (rule.x0 + rule.x1) / 2.0, from: rule.y0, to: rule.y1 }).collect(),
    );
    if level.len() < 2 || upright.is_empty() || level.len() + upright.len() > MAX_LINES {
        return Vec::new();
    }
    let mut grids: Vec<RuledGrid> =
        crossing(&level, &upright).into_iter().filter_map(|(rows, columns)| grid(&rows, &columns)).collect();
    grids.sort_by(|a, b| a.rows[0].total_cmp(&b.rows[0]));
    grids
}

/// The horizontal lines of a page.
pub(super) fn bars(rules: &[RulingLine]) -> Vec<Stroke> {
    let level = rules.iter().filter(|rule| rule.x1 - rule.x0 >= rule.y1 - rule.y0);
    merge_strokes(level.map(|rule| Stroke { at: (rule.y0 + rule.y1) / 2.0, from: rule.x0, to: rule.x1 }).collect())
}

/// Joins touching strokes on one line.
fn merge_strokes(mut strokes: Vec<Stroke>) -> Vec<Stroke> {
    strokes.sort_by(|a, b| a.at.total_cmp(&b.at).then(a.from.total_cmp(&b.from)));
    let mut joined: Vec<Stroke> = Vec::new();
    for stroke in strokes {
        let same = joined.iter_mut().rev().take_while(|other| stroke.at - other.at <= 1.0);
        let mut same = same
            .filter(|other| stroke.from <= other.to + MAX_LINE_DISTANCE && stroke.to >= other.from - MAX_LINE_DISTANCE);
        match same.next() {
            Some(other) => {
                other.from = other.from.min(stroke.from);
                other.to = other.to.max(stroke.to);
            }
            None => joined.push(stroke),
        }
    }
    joined
}

/// Groups strokes into connected components by crossings.
fn crossing(level: &[Stroke], upright: &[Stroke]) -> Vec<(Vec<Stroke>, Vec<Stroke>)> {
    let mut groups: Vec<usize> = (0..level.len() + upright.len()).collect();
    fn root(groups: &mut [usize], mut index: usize) -> usize {
        while groups[index] != index {
            groups[index] = groups[groups[index]];
            index = groups[index];
        }
        index
    }
    for (index, row) in level.iter().enumerate() {
        for (other, column) in upright.iter().enumerate() {
            let meets = column.at >= row.from - MAX_LINE_DISTANCE
                && column.at <= row.to + MAX_LINE_DISTANCE
                && row.at >= column.from - MAX_LINE_DISTANCE
                && row.at <= column.to + MAX_LINE_DISTANCE;
            if meets {
                let (a, b) = (root(&mut groups, index), root(&mut groups, level.len() + other));
                groups[a] = b;
            }
        }
    }
    let mut found: Vec<(usize, Vec<Stroke>, Vec<Stroke>)> = Vec::new();
    for index in 0..groups.len() {
        let group = root(&mut groups, index);
        let place = found.iter().position(|(known, ..)| *known == group).unwrap_or_else(|| {
            found.push((group, Vec::new(), Vec::new()));
            found.len() - 1
        });
        match index.checked_sub(level.len()) {
            None => found[place].1.push(level[index]),
            Some(other) => found[place].2.push(upright[other]),
        }
    }
    found.into_iter().map(|(_, level, upright)| (level, upright)).collect()
}

fn grid(level: &[Stroke], upright: &[Stroke]) -> Option<RuledGrid> {
    if level.len() < 2 || upright.is_empty() {
        return None;
    }
    // Tables often have no side borders: the ends of the lines close them.
    let ends = |strokes: &[Stroke]| {
        let from = strokes.iter().map(|stroke| stroke.from).fold(f32::INFINITY, f32::min);
        let to = strokes.iter().map(|stroke| stroke.to).fold(f32::NEG_INFINITY, f32::max);
        [from, to]
    };
    let columns = edges(upright.iter().map(|stroke| stroke.at).chain(ends(level)).collect());
    let rows = edges(level.iter().map(|stroke| stroke.at).chain(ends(upright)).collect());
    let cells = (columns.len() - 1) * (rows.len() - 1);
    if columns.len() < 3 || rows.len() < 3 || cells > MAX_CELLS {
        return None;
    }
    let covers = |strokes: &[Stroke], at: f32, place: f32| {
        strokes
            .iter()
            .any(|stroke| (stroke.at - at).abs() <= MIN_CELL_WIDTH && stroke.from <= place && place <= stroke.to)
    };
    let mut owners: Vec<(usize, usize)> = Vec::with_capacity(cells);
    let width = columns.len() - 1;
    for (row, heights) in rows.windows(2).enumerate() {
        for (column, widths) in columns.windows(2).enumerate() {
            let middle = ((widths[0] + widths[1]) / 2.0, (heights[0] + heights[1]) / 2.0);
            let owner = if column > 0 && !covers(upright, widths[0], middle.1) {
                owners[row * width + column - 1]
            } else if row > 0 && !covers(level, heights[0], middle.0) {
                owners[(row - 1) * width + column]
            } else {
                (row, column)
            };
            owners.push(owner);
        }
    }
    Some(RuledGrid { columns, rows, owners })
}

/// Sorted positions, with double lines merged.
fn edges(mut places: Vec<f32>) -> Vec<f32> {
    places.sort_by(f32::total_cmp);
    places.dedup_by(|next, before| *next - *before < MIN_CELL_WIDTH);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(y: f32, x0: f32, x1: f32) -> RulingLine {
        RulingLine { x0, y0: y, x1, y1: y }
    }

    fn upright(x: f32, y0: f32, y1: f32) -> RulingLine {
        RulingLine { x0: x, y0, x1: x, y1 }
    }

    #[test]
    fn a_cell_without_a_line_beside_it_belongs_to_its_neighbour() {
        let mut rules = vec![level(0.0, 0.0, 200.0), level(20.0, 0.0, 200.0), level(40.0, 0.0, 200.0)];
        rules.extend([upright(0.0, 0.0, 40.0), upright(100.0, 20.0, 40.0), upright(200.0, 0.0, 40.0)]);
        let grids = grids(&rules);
        assert_eq!(grids.len(), 1);
        assert_eq!(grids[0].cell(150.0, 10.0), Some((0, 0)));
        assert_eq!(grids[0].cell(150.0, 30.0), Some((1, 1)));
        assert_eq!(grids[0].cell(50.0, 30.0), Some((1, 0)));
        assert_eq!(grids[0].cell(50.0, 50.0), None);
    }

    #[test]
    fn a_frame_is_no_table() {
        let frame = [level(0.0, 0.0, 90.0), level(50.0, 0.0, 90.0), upright(0.0, 0.0, 50.0), upright(90.0, 0.0, 50.0)];
        assert_eq!(grids(&frame), Vec::new());
    }
}
