//! Reading order of a page: rows, and columns.
//!
//! A column gap is a vertical strip that no piece crosses over several rows, with text on both sides; a horizontal line
//! ends it. A page is cut at the longest strip: first the part above it, then its left side, its right side and the
//! part below. Each part is cut recursively. A part without a strip is read row by row.

use super::tables::Stroke;

/// A positioned item: a piece of a line, or a whole table.
#[derive(Debug, Clone, Copy)]
pub(super) struct LayoutPiece {
    /// Caller-defined index.
    pub(super) index: usize,
    pub(super) x0: f32,
    pub(super) x1: f32,
    pub(super) top: f32,
    pub(super) bottom: f32,
    /// A table is alone in its row.
    pub(super) alone: bool,
    /// Number of dots, if it consists only of dots.
    pub(super) dots: usize,
}

/// Pieces next to each other, from left to right.
pub(super) type PieceRow = Vec<LayoutPiece>;

/// Consecutive rows.
pub(super) type Region = Vec<PieceRow>;

/// Maximum recursion depth.
const MAX_DEPTH: usize = 8;
/// Minimum rows with text on both sides of a column gap.
const MIN_COLUMN_ROWS: usize = 4;
/// Minimum lines on each side of independent texts.
const MIN_COLUMN_LINES: usize = 3;
/// Minimum width of a column gap, relative to the text size.
const MIN_COLUMN_GAP: f32 = 0.9;
/// Minimum length of most lines in a column, in line heights; table cells are shorter.
const MIN_COLUMN_LINE_LENGTH: f32 = 8.0;
/// Maximum line distance within a text, in line heights; rows of forms and tables have a larger distance.
const MAX_LEADING: f32 = 2.5;
/// Maximum distance of a heading above a column, in line heights.
const MAX_DISTANCE_ABOVE: f32 = 3.0;
/// Tolerance for lines on a common baseline, in line heights.
const MAX_BASELINE_OFFSET: f32 = 0.15;

/// A vertical strip that no piece crosses over a range of rows.
#[derive(Debug, Clone, Copy)]
struct Gutter {
    x0: f32,
    x1: f32,
    from: usize,
    to: usize,
}

/// The regions of a page in reading order. `bars` are its horizontal lines, from top to bottom.
pub(super) fn regions(pieces: Vec<LayoutPiece>, bars: &[Stroke]) -> Vec<Region> {
    let mut regions = Vec::new();
    split_columns(pieces, bars, 0, &mut regions);
    regions
}

fn split_columns(pieces: Vec<LayoutPiece>, bars: &[Stroke], depth: usize, regions: &mut Vec<Region>) {
    if pieces.is_empty() {
        return;
    }
    let mut rows = rows(pieces);
    let strip = if depth < MAX_DEPTH { widest_gutter(&rows, bars) } else { None };
    let Some(strip) = strip else {
        regions.push(rows);
        return;
    };
    let below = rows.split_off(strip.to);
    let beside = rows.split_off(strip.from);
    let middle = (strip.x0 + strip.x1) / 2.0;
    let (left, right) = beside.into_iter().flatten().partition(|piece| (piece.x0 + piece.x1) / 2.0 < middle);
    for part in [rows.into_iter().flatten().collect(), left, right, below.into_iter().flatten().collect()] {
        split_columns(part, bars, depth + 1, regions);
    }
}

/// Groups pieces at the same height into rows.
pub(super) fn rows(mut pieces: Vec<LayoutPiece>) -> Vec<PieceRow> {
    pieces.sort_by(|a, b| a.bottom.total_cmp(&b.bottom).then(a.x0.total_cmp(&b.x0)));
    let mut rows: Vec<(LayoutPiece, PieceRow)> = Vec::new();
    for piece in pieces {
        // Small raised or lowered pieces belong to the row of a larger one, even if the row started with the small one.
        let row = rows.iter_mut().rev().take(3).find(|(tallest, _)| is_beside(tallest, &piece));
        match row {
            Some((tallest, row)) => {
                if piece.bottom - piece.top > tallest.bottom - tallest.top {
                    *tallest = piece;
                }
                row.push(piece);
            }
            None => rows.push((piece, vec![piece])),
        }
    }
    rows.sort_by(|(a, _), (b, _)| a.bottom.total_cmp(&b.bottom));
    let sorted = rows.into_iter().map(|(_, mut row)| {
        row.sort_by(|a, b| a.x0.total_cmp(&b.x0));
        row
    });
    sorted.collect()
}

fn is_beside(tallest: &LayoutPiece, piece: &LayoutPiece) -> bool {
    if tallest.alone || piece.alone {
        return false;
    }
    let (height, other) = (piece.bottom - piece.top, tallest.bottom - tallest.top);
    let overlap = piece.bottom.min(tallest.bottom) - piece.top.max(tallest.top);
    let smaller = height.min(other);
    if height.max(other) > 2.2 * smaller {
        return (piece.bottom - tallest.bottom).abs() < 0.3 * smaller;
    }
    overlap > 0.55 * smaller
}

/// The strip over the most rows with text columns on both sides.
fn widest_gutter(rows: &[PieceRow], bars: &[Stroke]) -> Option<Gutter> {
    let pieces = || rows.iter().flatten();
    let left = pieces().map(|piece| piece.x0).fold(f32::INFINITY, f32::min);
    let right = pieces().map(|piece| piece.x1).fold(f32::NEG_INFINITY, f32::max);
    if rows.len() < MIN_COLUMN_ROWS || pieces().count() < 2 * MIN_COLUMN_ROWS {
        return None;
    }
    let mut heights: Vec<f32> = pieces().filter(|piece| !piece.alone).map(|piece| piece.bottom - piece.top).collect();
    let middle = heights.len() / 2;
    let height = if heights.is_empty() { 10.0 } else { *heights.select_nth_unstable_by(middle, f32::total_cmp).1 };
    let bars: Vec<&Stroke> = bars.iter().filter(|bar| bar.to - bar.from > 0.5 * (right - left)).collect();
    let mut done: Vec<Gutter> = Vec::new();
    let mut open: Vec<Gutter> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let free = empty_ranges(row, left, right, MIN_COLUMN_GAP * height);
        let above = index.checked_sub(1).map_or(f32::NEG_INFINITY, |above| middle_of(&rows[above]));
        let passed = |height: f32| bars.partition_point(|bar| bar.at <= height);
        let between = bars.get(passed(above)..passed(middle_of(row))).unwrap_or_default();
        if !between.is_empty() {
            let crosses = |bar: &Stroke, strip: &Gutter| bar.from < strip.x0 && bar.to > strip.x1;
            let is_crossed = |strip: &mut Gutter| between.iter().any(|bar| crosses(bar, strip));
            done.extend(open.extract_if(.., is_crossed));
        }
        let mut next: Vec<Gutter> = Vec::new();
        for strip in &open {
            let mut went_on = false;
            for (x0, x1) in &free {
                let narrowed = Gutter { x0: strip.x0.max(*x0), x1: strip.x1.min(*x1), ..*strip };
                if narrowed.x1 - narrowed.x0 >= MIN_COLUMN_GAP * height {
                    went_on = narrowed.x0 == strip.x0 && narrowed.x1 == strip.x1;
                    keep_longer(&mut next, Gutter { to: index + 1, ..narrowed });
                }
            }
            if !went_on {
                done.push(*strip);
            }
        }
        for (x0, x1) in free {
            keep_longer(&mut next, Gutter { x0, x1, from: index, to: index + 1 });
        }
        // A page with more open strips consists of scattered words without columns.
        next.truncate(48);
        open = next;
    }
    done.extend(open);
    done.retain(|strip| strip.to - strip.from >= MIN_COLUMN_ROWS);
    done.sort_by(|a, b| (b.to - b.from).cmp(&(a.to - a.from)).then((b.x1 - b.x0).total_cmp(&(a.x1 - a.x0))));
    let strips: Vec<Gutter> = done.into_iter().take(32).filter_map(|strip| trim_gutter(strip, rows, height)).collect();
    let parts = strips.iter().find(|strip| separates_columns(strip, rows, height));
    parts.or_else(|| strips.iter().find(|strip| separates_texts(strip, rows, height))).copied()
}

/// Of two strips at the same position, keeps the longer.
fn keep_longer(strips: &mut Vec<Gutter>, strip: Gutter) {
    match strips.iter_mut().find(|other| (other.x0 - strip.x0).abs() < 0.1 && (other.x1 - strip.x1).abs() < 0.1) {
        Some(other) => other.from = other.from.min(strip.from),
        None => strips.push(strip),
    }
}

/// The empty ranges of a row, within its region.
fn empty_ranges(row: &PieceRow, left: f32, right: f32, narrowest: f32) -> Vec<(f32, f32)> {
    let mut free = Vec::new();
    let mut at = left;
    for (index, piece) in row.iter().enumerate() {
        let before = index.checked_sub(1);
        if piece.x0 - at >= narrowest && !before.is_some_and(|before| is_leader(row, before)) && !is_leader(row, index)
        {
            free.push((at, piece.x0));
        }
        at = at.max(piece.x1);
    }
    if right - at >= narrowest {
        free.push((at, right));
    }
    free
}

/// Whether a piece belongs to leader dots, which bridge a gap. A full stop does not.
fn is_leader(row: &PieceRow, index: usize) -> bool {
    let around = &row[index.saturating_sub(1)..row.len().min(index + 2)];
    row[index].dots > 0 && around.iter().map(|piece| piece.dots).sum::<usize>() > 1
}

/// Trims a strip to rows with text on both sides, or alternating between them.
fn trim_gutter(strip: Gutter, rows: &[PieceRow], height: f32) -> Option<Gutter> {
    let is_left = |row: &PieceRow| row.iter().any(|piece| strip.is_right_of(piece));
    let is_right = |row: &PieceRow| row.iter().any(|piece| strip.is_left_of(piece));
    let rows = &rows[strip.from..strip.to];
    let first = rows.iter().position(is_left)?.max(rows.iter().position(is_right)?);
    // One column may start a row above the other; a heading above the left column belongs to it.
    let begins = first.saturating_sub(1);
    let far = middle_of(&rows[first]) - middle_of(&rows[begins]) > MAX_DISTANCE_ABOVE * height;
    let begins = if far { first } else { begins };
    let both = |row: &&PieceRow| is_left(row) || is_right(row);
    let ends = rows.len() - rows.iter().rev().position(|row| both(&row))?;
    (ends > begins).then_some(Gutter { from: strip.from + begins, to: strip.from + ends, ..strip })
}

/// Whether both sides have lines of text rather than table cells.
fn separates_columns(strip: &Gutter, rows: &[PieceRow], height: f32) -> bool {
    let rows = &rows[strip.from..strip.to];
    let side = |is_in: &dyn Fn(&LayoutPiece) -> bool| {
        let lengths = rows.iter().filter_map(|row| longest(row.iter().filter(|piece| is_in(piece)), 1.5 * height));
        let (lines, long) = lengths.fold((0, 0), |(lines, long), length| {
            (lines + 1, long + usize::from(length >= MIN_COLUMN_LINE_LENGTH * height))
        });
        lines >= MIN_COLUMN_ROWS && 2 * long >= lines
    };
    side(&|piece| strip.is_right_of(piece)) && side(&|piece| strip.is_left_of(piece))
}

/// Whether both sides are independent texts: their lines are closely spaced and rarely on a common baseline. This
/// applies to margin notes and to adjacent text boxes.
fn separates_texts(strip: &Gutter, rows: &[PieceRow], height: f32) -> bool {
    let rows = &rows[strip.from..strip.to];
    let bottom = |pieces: &mut dyn Iterator<Item = &LayoutPiece>| pieces.map(|piece| piece.bottom).reduce(f32::max);
    let left = |row: &PieceRow| bottom(&mut row.iter().filter(|piece| strip.is_right_of(piece)));
    let right = |row: &PieceRow| bottom(&mut row.iter().filter(|piece| strip.is_left_of(piece)));
    let runs_on = |lines: &[f32]| {
        let close = lines.windows(2).filter(|pair| pair[1] - pair[0] <= MAX_LEADING * height).count();
        lines.len() >= MIN_COLUMN_LINES && 3 * close >= lines.len()
    };
    let lines: (Vec<f32>, Vec<f32>) = (rows.iter().filter_map(left).collect(), rows.iter().filter_map(right).collect());
    let beside: Vec<f32> = rows.iter().filter_map(|row| Some((left(row)? - right(row)?).abs())).collect();
    let level = beside.iter().filter(|step| **step <= MAX_BASELINE_OFFSET * height).count();
    runs_on(&lines.0) && runs_on(&lines.1) && 2 * level <= beside.len() && 3 * level <= lines.0.len().min(lines.1.len())
}

impl Gutter {
    fn is_right_of(&self, piece: &LayoutPiece) -> bool {
        piece.x1 <= self.x0 + 0.1
    }

    fn is_left_of(&self, piece: &LayoutPiece) -> bool {
        piece.x0 >= self.x1 - 0.1
    }
}

fn middle_of(row: &PieceRow) -> f32 {
    let ends = row.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(top, bottom), piece| {
        (top.min(piece.top), bottom.max(piece.bottom))
    });
    (ends.0 + ends.1) / 2.0
}

/// The longest stretch of a row without a wider gap.
fn longest<'a>(row: impl Iterator<Item = &'a LayoutPiece>, gap: f32) -> Option<f32> {
    let mut stretch: Option<(f32, f32)> = None;
    let mut longest: Option<f32> = None;
    for piece in row {
        stretch = match stretch {
            Some((x0, x1)) if piece.x0 - x1 <= gap => Some((x0, x1.max(piece.x1))),
            _ => Some((piece.x0, piece.x1)),
        };
        let length = stretch.map_or(0.0, |(x0, x1)| x1 - x0);
        longest = Some(longest.map_or(length, |longest| longest.max(length)));
    }
    longest
}
