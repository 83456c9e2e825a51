//! Reading order: sorts the lines of a page and groups them into paragraphs.
//!
//! A page is cut along a gutter (a vertical strip that no line crosses) if there are text columns on both sides.
//! Headings that cross the gutter stay between the parts above and below them. Table cells are short and not text
//! columns, so a table is read row by row.

use std::ops::Range;

use super::geometry::{BoundingBox, Point};

/// Adjacent lines without a break.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ParagraphLayout {
    pub(crate) rows: Vec<LayoutRow>,
}

/// Lines at one height, from left to right.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LayoutRow {
    /// Indices of lines in the input.
    pub(crate) lines: Vec<usize>,
    /// The row ends its text: the next row starts a new paragraph, list entry or table row.
    pub(crate) ends: bool,
}

/// Space in the box before and after the letters, in heights of the box.
const MARGIN: f32 = 0.15;
/// In line heights.
const MIN_GUTTER: f32 = 0.4;
/// Minimum aspect ratio of a text line; table cells are often shorter.
const MIN_TEXT_ASPECT: f32 = 6.0;
/// Minimum fill of a column of text.
const MIN_TEXT_FILL: f32 = 0.55;
/// Minimum fill of a table that covers one side only.
const MIN_TABLE_FILL: f32 = 0.66;
/// Fewer rows on both sides are not columns.
const MIN_COLUMN_ROWS: usize = 3;
/// Letter size within a paragraph, relative to the previous row.
const SAME_SIZE: Range<f32> = 0.8..1.25;
const MAX_GUTTERS: usize = 64;
const MAX_DEPTH: usize = 8;

/// Layout attributes of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LineLayout {
    pub(crate) corners: [Point; 4],
    /// Share of the line's width taken by its first word, from 0 to 1.
    pub(crate) first_word: f32,
    /// Letter size.
    pub(crate) size: f32,
}

/// Groups lines of a page with this skew, in degrees, into paragraphs.
pub(crate) fn paragraphs(lines: &[LineLayout], skew: f32) -> Vec<ParagraphLayout> {
    let (along, down) = (Point::at_angle(skew), Point::at_angle(skew).perpendicular());
    let straighten = |corners: &[Point; 4]| {
        BoundingBox::around(&corners.map(|corner| Point::new(corner.dot(along), corner.dot(down))))
    };
    let boxes: Vec<BoundingBox> = lines.iter().map(|line| straighten(&line.corners)).collect();
    let first_words: Vec<f32> = lines.iter().zip(&boxes).map(|(line, place)| line.first_word * place.width()).collect();
    let mut parts = Vec::new();
    let all: Vec<usize> = (0..boxes.len()).collect();
    split_page(&boxes.iter().map(narrow).collect::<Vec<_>>(), all, 0, &mut parts);
    parts.into_iter().flat_map(|rows| compose(lines, &boxes, &first_words, rows)).collect()
}

/// The box without the margin around its letters: gutters can be hardly wider than that margin.
fn narrow(place: &BoundingBox) -> BoundingBox {
    let room = (MARGIN * place.height()).min(place.width() / 4.0);
    BoundingBox { left: place.left + room, right: place.right - room, ..*place }
}

/// Recursively finds the parts of the page in order, left columns before right.
fn split_page(boxes: &[BoundingBox], mut part: Vec<usize>, depth: usize, parts: &mut Vec<Vec<LayoutRow>>) {
    part.sort_by(|one, other| {
        boxes[*one].top.total_cmp(&boxes[*other].top).then(boxes[*one].left.total_cmp(&boxes[*other].left))
    });
    let best = (depth < MAX_DEPTH).then(|| best_gutter(boxes, &part)).flatten();
    let Some(bands) = best else {
        parts.push(rows(boxes, &part));
        return;
    };
    for band in bands {
        match band {
            PageBand::Columns(left, right) => {
                split_page(boxes, left, depth + 1, parts);
                split_page(boxes, right, depth + 1, parts);
            }
            PageBand::Whole(lines) => split_page(boxes, lines, depth + 1, parts),
        }
    }
}

/// A horizontal band of a page with a gutter.
#[derive(Debug)]
enum PageBand {
    Columns(Vec<usize>, Vec<usize>),
    Whole(Vec<usize>),
}

/// The cut that puts most of the text into columns; `None` without columns.
fn best_gutter(boxes: &[BoundingBox], part: &[usize]) -> Option<Vec<PageBand>> {
    if part.len() < 2 * MIN_COLUMN_ROWS {
        return None;
    }
    let height = median(part.iter().map(|index| boxes[*index].height()))?;
    let mut candidates: Vec<f32> = part.iter().map(|index| boxes[*index].right).collect();
    candidates.sort_by(f32::total_cmp);
    // Right edges of one column are almost equal; the last one leaves most of the text on the left.
    candidates =
        candidates.chunk_by(|one, other| other - one < height / 2.0).filter_map(|near| near.last().copied()).collect();
    let every = candidates.len().div_ceil(MAX_GUTTERS).max(1);
    let cut_at = |gutter: &f32| {
        let bands = bands(boxes, part, *gutter + MIN_GUTTER * height / 2.0, height);
        let columns = bands.iter().map(|band| match band {
            PageBand::Columns(left, right) => left.len().min(right.len()),
            PageBand::Whole(_) => 0,
        });
        (columns.sum::<usize>(), bands)
    };
    let cuts = candidates.iter().step_by(every).map(cut_at).filter(|(columns, _)| *columns > 0);
    // The first of the best, which is the leftmost.
    cuts.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, bands)| bands)
}

/// Cuts the part at one gutter: lines that cross it stay between the parts above and below them.
fn bands(boxes: &[BoundingBox], part: &[usize], gutter: f32, height: f32) -> Vec<PageBand> {
    let mut bands = Vec::new();
    let (mut left, mut right): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut whole: Vec<usize> = Vec::new();
    let close = |left: &mut Vec<usize>, right: &mut Vec<usize>, whole: &mut Vec<usize>, bands: &mut Vec<PageBand>| {
        if are_columns(boxes, left, right, height) {
            if !whole.is_empty() {
                bands.push(PageBand::Whole(std::mem::take(whole)));
            }
            bands.push(PageBand::Columns(std::mem::take(left), std::mem::take(right)));
        } else {
            whole.append(left);
            whole.append(right);
        }
    };
    for index in part {
        let place = &boxes[*index];
        if place.right <= gutter {
            left.push(*index);
        } else if place.left >= gutter {
            right.push(*index);
        } else {
            close(&mut left, &mut right, &mut whole, &mut bands);
            whole.push(*index);
        }
    }
    close(&mut left, &mut right, &mut whole, &mut bands);
    if !whole.is_empty() {
        bands.push(PageBand::Whole(whole));
    }
    bands
}

/// Whether both sides are text columns with a gap between them.
fn are_columns(boxes: &[BoundingBox], left: &[usize], right: &[usize], height: f32) -> bool {
    let edge = |side: &[usize]| side.iter().map(|index| boxes[*index]).reduce(BoundingBox::union);
    let (Some(one), Some(other)) = (edge(left), edge(right)) else { return false };
    let is_text = |side: &[usize], edge: BoundingBox| {
        let rows = rows(boxes, side);
        let width = |row: &LayoutRow| row.lines.iter().map(|line| boxes[*line].width()).sum::<f32>();
        let Some(usual) = median(rows.iter().map(width)) else { return false };
        // Several short cells in a row are part of a table, unless they fill their side: then there are two tables.
        let longest = |row: &LayoutRow| row.lines.iter().map(|line| boxes[*line].width()).fold(0.0, f32::max);
        let is_long = median(rows.iter().map(longest)).is_some_and(|longest| longest >= MIN_TEXT_ASPECT * height);
        let fill = if is_long { MIN_TEXT_FILL } else { MIN_TABLE_FILL };
        rows.len() >= MIN_COLUMN_ROWS && usual >= MIN_TEXT_ASPECT * height && usual >= fill * edge.width()
    };
    // They overlap for most of their heights.
    let shared = one.bottom.min(other.bottom) - one.top.max(other.top);
    other.left - one.right >= MIN_GUTTER * height
        && shared >= 0.5 * one.height().min(other.height())
        && is_text(left, one)
        && is_text(right, other)
}

/// Groups lines into rows by height, each from left to right. The input is sorted from the top.
fn rows(boxes: &[BoundingBox], part: &[usize]) -> Vec<LayoutRow> {
    let mut rows: Vec<(BoundingBox, LayoutRow)> = Vec::new();
    for index in part {
        let place = boxes[*index];
        let fits = |(extent, row): &(BoundingBox, LayoutRow)| {
            let shared = extent.bottom.min(place.bottom) - extent.top.max(place.top);
            let beside = row.lines.iter().all(|line| {
                let other = boxes[*line];
                other.right.min(place.right) - other.left.max(place.left) < 0.5 * other.width().min(place.width())
            });
            beside && shared > 0.5 * extent.height().min(place.height())
        };
        // Only the last few rows can be at this height.
        let from = rows.len().saturating_sub(4);
        match rows[from..].iter_mut().find(|row| fits(row)) {
            Some((_, row)) => row.lines.push(*index),
            None => rows.push((place, LayoutRow { lines: vec![*index], ends: false })),
        }
    }
    rows.sort_by(|one, other| (one.0.top + one.0.bottom).total_cmp(&(other.0.top + other.0.bottom)));
    for (_, row) in &mut rows {
        row.lines.sort_by(|one, other| boxes[*one].left.total_cmp(&boxes[*other].left));
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Groups closely spaced rows into paragraphs.
fn compose(
    lines: &[LineLayout],
    boxes: &[BoundingBox],
    first_words: &[f32],
    rows: Vec<LayoutRow>,
) -> Vec<ParagraphLayout> {
    let extent = |row: &LayoutRow| row.lines.iter().map(|line| boxes[*line]).reduce(BoundingBox::union);
    let extents: Vec<BoundingBox> = rows.iter().filter_map(extent).collect();
    let Some(whole) = extents.iter().copied().reduce(BoundingBox::union) else { return Vec::new() };
    let pitches = extents.windows(2).map(|pair| pair[1].top - pair[0].top).filter(|pitch| *pitch > 0.0);
    let height = median(extents.iter().map(BoundingBox::height)).unwrap_or(1.0);
    let usual_pitch = median(pitches).unwrap_or(height).min(2.0 * height);
    // Width of the next row's first word, and the start of that row.
    let first = |row: &LayoutRow| row.lines.first().map(|line| (first_words[*line], boxes[*line].left));
    let nexts: Vec<Option<(f32, f32)>> = rows.iter().skip(1).map(first).chain([None]).collect();

    let mut paragraphs: Vec<ParagraphLayout> = Vec::new();
    let mut before: Option<(BoundingBox, f32)> = None;
    for ((mut row, extent), next) in rows.into_iter().zip(&extents).zip(nexts) {
        // The longest part of a row gives the best estimate of its letter size.
        let longest = row.lines.iter().max_by(|one, other| boxes[**one].width().total_cmp(&boxes[**other].width()));
        let size = longest.map_or(0.0, |line| lines[*line].size);
        let begins = before.is_none_or(|(before, size_before)| {
            let pitch = extent.top - before.top;
            let ratio = size / size_before.max(f32::MIN_POSITIVE);
            pitch > usual_pitch + 0.5 * height.min(extent.height()) || !SAME_SIZE.contains(&ratio)
        });
        // A writer would have put the next word here: there is room for it and a space. Rows with different starts,
        // such as a right-aligned address, also have room on the left.
        let (next_word, next_left) = next.unwrap_or((0.0, extent.left));
        let room = whole.right - extent.right + (extent.left - next_left).abs();
        row.ends = has_wide_gap(boxes, &row) || room > next_word + 0.8 * extent.height();
        before = Some((*extent, size));
        match paragraphs.last_mut() {
            Some(paragraph) if !begins => paragraph.rows.push(row),
            _ => paragraphs.push(ParagraphLayout { rows: vec![row] }),
        }
    }
    let mut paragraphs: Vec<ParagraphLayout> =
        paragraphs.into_iter().flat_map(|paragraph| separate_tables(boxes, paragraph)).collect();
    for paragraph in &mut paragraphs {
        // In a table, rows without a gap are rows too.
        let wide = paragraph.rows.iter().filter(|row| has_wide_gap(boxes, row)).count();
        if wide > 0 && 2 * wide >= paragraph.rows.len() {
            paragraph.rows.iter_mut().for_each(|row| row.ends = true);
        }
    }
    paragraphs
}

/// Separates a table from the text directly above and below it. A single row without a gap may be its title or one of
/// its rows; several are text.
fn separate_tables(boxes: &[BoundingBox], mut paragraph: ParagraphLayout) -> Vec<ParagraphLayout> {
    let is_wide: Vec<bool> = paragraph.rows.iter().map(|row| has_wide_gap(boxes, row)).collect();
    let count = is_wide.iter().filter(|is_wide| **is_wide).count();
    let (first, last) = (is_wide.iter().position(|is_wide| *is_wide), is_wide.iter().rposition(|is_wide| *is_wide));
    let (Some(first), Some(last)) = (first, last) else { return vec![paragraph] };
    if count < MIN_COLUMN_ROWS || 2 * count < last + 1 - first {
        return vec![paragraph];
    }
    let is_text = |rows: usize| rows > 1;
    let below = if is_text(is_wide.len() - last - 1) { paragraph.rows.split_off(last + 1) } else { Vec::new() };
    let table = if is_text(first) { paragraph.rows.split_off(first) } else { std::mem::take(&mut paragraph.rows) };
    let parts = [paragraph.rows, table, below].into_iter();
    parts.filter(|rows| !rows.is_empty()).map(|rows| ParagraphLayout { rows }).collect()
}

/// A gap this wide separates cells, not words.
pub(crate) fn is_wide(gap: f32, height: f32) -> bool {
    gap > 1.2 * height
}

fn has_wide_gap(boxes: &[BoundingBox], row: &LayoutRow) -> bool {
    row.lines.windows(2).any(|pair| {
        let (left, right) = (boxes[pair[0]], boxes[pair[1]]);
        is_wide(right.left - left.right, left.height().min(right.height()))
    })
}

fn median(numbers: impl Iterator<Item = f32>) -> Option<f32> {
    let mut numbers: Vec<f32> = numbers.collect();
    numbers.sort_by(f32::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines 20 pixels high: left, right and top of each, and the share of its first word.
    fn order(lines: &[(f32, f32, f32, f32)]) -> Vec<Vec<Vec<usize>>> {
        let placed: Vec<LineLayout> = lines
            .iter()
            .map(|(left, right, top, first_word)| LineLayout {
                corners: [(*left, *top), (*right, *top), (*right, top + 20.0), (*left, top + 20.0)]
                    .map(|(x, y)| Point::new(x, y)),
                first_word: *first_word,
                size: 20.0,
            })
            .collect();
        let rows = |paragraph: ParagraphLayout| paragraph.rows.into_iter().map(|row| row.lines).collect();
        paragraphs(&placed, 0.0).into_iter().map(rows).collect()
    }

    #[test]
    fn the_left_column_comes_first() {
        let mut lines = vec![(100.0, 900.0, 10.0, 0.1)];
        for row in 0..5 {
            lines.push((100.0, 480.0, 100.0 + row as f32 * 24.0, 0.1));
            lines.push((520.0, 900.0, 100.0 + row as f32 * 24.0, 0.1));
        }
        let expected = vec![
            vec![vec![0]],
            vec![vec![1], vec![3], vec![5], vec![7], vec![9]],
            vec![vec![2], vec![4], vec![6], vec![8], vec![10]],
        ];
        assert_eq!(order(&lines), expected);
    }

    #[test]
    fn short_cells_are_no_columns() {
        let mut lines = Vec::new();
        for row in 0..5 {
            lines.push((100.0, 180.0, 100.0 + row as f32 * 24.0, 1.0));
            lines.push((500.0, 560.0, 100.0 + row as f32 * 24.0, 1.0));
        }
        assert_eq!(order(&lines), [[[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]]);
    }

    #[test]
    fn many_short_cells_are_no_columns() {
        let lefts = [100.0, 200.0, 300.0, 430.0, 530.0, 630.0];
        let cells = (0..5).flat_map(|row| lefts.map(|left| (left, left + 55.0, 100.0 + row as f32 * 24.0, 1.0)));
        let expected: Vec<Vec<usize>> = (0..5).map(|row| (row * 6..row * 6 + 6).collect()).collect();
        assert_eq!(order(&cells.collect::<Vec<_>>()), [expected]);
    }

    #[test]
    fn a_table_close_to_text_is_a_paragraph_of_its_own() {
        let text = |row: f32| (100.0, 900.0, 100.0 + row * 24.0, 0.1);
        let cell = |left: f32, row: f32| (left, left + 80.0, 100.0 + row * 24.0, 1.0);
        let mut lines = vec![text(0.0), text(1.0)];
        lines.extend((2..5).flat_map(|row| [cell(100.0, row as f32), cell(500.0, row as f32)]));
        lines.extend([text(5.0), text(6.0)]);
        let expected = vec![vec![vec![0], vec![1]], vec![vec![2, 3], vec![4, 5], vec![6, 7]], vec![vec![8], vec![9]]];
        assert_eq!(order(&lines), expected);
    }

    #[test]
    fn a_line_ends_where_the_next_word_would_have_fitted() {
        let corners = |right: f32, top: f32| {
            [(0.0, top), (right, top), (right, top + 20.0), (0.0, top + 20.0)].map(|(x, y)| Point::new(x, y))
        };
        let ends = |first_word: f32| {
            let lines = [
                LineLayout { corners: corners(400.0, 0.0), first_word: 0.2, size: 20.0 },
                LineLayout { corners: corners(320.0, 24.0), first_word: 0.2, size: 20.0 },
                LineLayout { corners: corners(400.0, 48.0), first_word, size: 20.0 },
            ];
            paragraphs(&lines, 0.0)[0].rows.iter().map(|row| row.ends).collect::<Vec<_>>()
        };
        assert_eq!(ends(0.05)[..2], [false, true]);
        assert_eq!(ends(0.4)[..2], [false, false]);
    }

    #[test]
    fn the_order_does_not_depend_on_the_skew() {
        let straight: Vec<LineLayout> = (0..12)
            .map(|index| {
                let (left, top) = (100.0 + (index % 2) as f32 * 420.0, 100.0 + (index / 2) as f32 * 24.0);
                let corners = [(left, top), (left + 380.0, top), (left + 380.0, top + 20.0), (left, top + 20.0)];
                LineLayout { corners: corners.map(|(x, y)| Point::new(x, y)), first_word: 0.1, size: 20.0 }
            })
            .collect();
        for degrees in [-5.0f32, -1.2, 2.0, 5.0] {
            let (along, down) = (Point::at_angle(degrees), Point::at_angle(degrees).perpendicular());
            let turn = |point: Point| along.scale(point.x).add(down.scale(point.y));
            let skewed: Vec<LineLayout> =
                straight.iter().map(|line| LineLayout { corners: line.corners.map(turn), ..*line }).collect();
            assert_eq!(paragraphs(&skewed, degrees), paragraphs(&straight, 0.0), "{degrees}");
        }
    }
}
