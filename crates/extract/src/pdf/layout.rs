//! Page layout: the parts of one page in reading order, before cross-page analysis.

use super::blocks::{self, LineGroup};
use super::columns::{self, LayoutPiece, PieceRow};
use super::glyphs::PageContent;
use super::lines;
use super::tables::{self, RuledGrid};
use super::text_runs::{self, DirectionalText, TextRun};
use crate::Table;

/// A cell with more lines is a framed part of the page.
const MAX_CELL_LINES: usize = 30;

/// A part of a page.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PagePart {
    Text(LineGroup),
    Table(Table),
}

pub(super) fn page_parts(drawing: &PageContent) -> Vec<PagePart> {
    let mut parts = Vec::new();
    for mut side in text_runs::by_direction(drawing) {
        let bars = if side.turn == 0 { tables::bars(&drawing.rules) } else { Vec::new() };
        let tables = if side.turn == 0 { take_tables(drawing, &mut side) } else { Vec::new() };
        let mut pieces: Vec<LayoutPiece> =
            side.fragments.iter().enumerate().map(|(index, fragment)| piece(&side, index, fragment)).collect();
        for (index, (grid, _)) in tables.iter().enumerate() {
            pieces.push(LayoutPiece {
                index: side.fragments.len() + index,
                x0: grid.columns[0],
                x1: grid.columns[grid.columns.len() - 1],
                top: grid.rows[0],
                bottom: grid.rows[grid.rows.len() - 1],
                alone: true,
                dots: 0,
            });
        }
        let mut tables: Vec<Option<Table>> = tables.into_iter().map(|(_, table)| Some(table)).collect();
        for region in columns::regions(pieces, &bars) {
            let mut text = Vec::new();
            for row in &region {
                let table = row.first().and_then(|piece| piece.index.checked_sub(side.fragments.len()));
                match table {
                    Some(index) => {
                        flush(&mut text, side.turn, &mut parts);
                        parts.extend(tables[index].take().map(PagePart::Table));
                    }
                    None => {
                        let row: Vec<&TextRun> = row.iter().map(|piece| &side.fragments[piece.index]).collect();
                        text.push(lines::line(&side, &row));
                    }
                }
            }
            flush(&mut text, side.turn, &mut parts);
        }
    }
    parts
}

fn flush(lines: &mut Vec<lines::TextLine>, turn: i16, parts: &mut Vec<PagePart>) {
    for group in blocks::groups(lines) {
        let group = LineGroup { upright: turn == 0, ..group };
        let group = match parts.last_mut() {
            Some(PagePart::Text(before)) => blocks::join(before, group),
            _ => Some(group),
        };
        parts.extend(group.map(PagePart::Text));
    }
    lines.clear();
}

fn piece(side: &DirectionalText<'_>, index: usize, fragment: &TextRun) -> LayoutPiece {
    let (top, bottom) = (fragment.top(), fragment.bottom());
    let letters = side.letters[fragment.first..fragment.last].iter().filter(|letter| !letter.space);
    let dots = if letters.clone().all(|letter| side.words(letter) == ".") { letters.count() } else { 0 };
    LayoutPiece { index, x0: fragment.x0, x1: fragment.x1, top, bottom, alone: false, dots }
}

/// Moves the content of ruled tables out of the fragments of a side.
fn take_tables(drawing: &PageContent, side: &mut DirectionalText<'_>) -> Vec<(RuledGrid, Table)> {
    let mut found = Vec::new();
    for grid in tables::grids(&drawing.rules) {
        split_at_columns(side, &grid);
        let mut cells: Vec<((usize, usize), Vec<usize>)> = Vec::new();
        for (index, fragment) in side.fragments.iter().enumerate() {
            let Some(cell) = cell_of(&grid, fragment) else { continue };
            match cells.iter_mut().find(|(known, _)| *known == cell) {
                Some((_, inside)) => inside.push(index),
                None => cells.push((cell, vec![index])),
            }
        }
        if let Some(table) = table(side, &grid, &cells) {
            let mut index = 0;
            side.fragments.retain(|_| {
                index += 1;
                !cells.iter().any(|(_, inside)| inside.contains(&(index - 1)))
            });
            found.push((grid, table));
        }
    }
    found
}

fn cell_of(grid: &RuledGrid, fragment: &TextRun) -> Option<(usize, usize)> {
    grid.cell((fragment.x0 + fragment.x1) / 2.0, fragment.y - 0.3 * fragment.size)
}

/// Splits fragments at column borders: text of adjacent cells can be close enough to form one fragment.
fn split_at_columns(side: &mut DirectionalText<'_>, grid: &RuledGrid) {
    let mut index = 0;
    while index < side.fragments.len() {
        let fragment = &side.fragments[index];
        index += 1;
        if cell_of(grid, fragment).is_none() {
            continue;
        }
        let middle = |letter: &text_runs::PositionedLetter| (letter.x0 + letter.x1) / 2.0;
        let cell = |letter: &text_runs::PositionedLetter| grid.cell(middle(letter), fragment.y - 0.3 * fragment.size);
        let letters = &side.letters[fragment.first..fragment.last];
        let first = letters.first().and_then(cell);
        let Some(at) = letters.iter().position(|letter| !letter.space && cell(letter) != first) else { continue };
        let mut rest = fragment.clone();
        rest.first += at;
        rest.x0 = letters[at].x0;
        let end = letters[..at].iter().filter(|letter| !letter.space).map(|letter| letter.x1).fold(f32::MIN, f32::max);
        let fragment = &mut side.fragments[index - 1];
        fragment.last = rest.first;
        fragment.x1 = end;
        side.fragments.insert(index, rest);
    }
}

/// The table of a grid, unless the grid is a frame around other content.
fn table(side: &DirectionalText<'_>, grid: &RuledGrid, cells: &[((usize, usize), Vec<usize>)]) -> Option<Table> {
    let (height, width) = (grid.rows.len() - 1, grid.columns.len() - 1);
    let mut rows = vec![vec![String::new(); width]; height];
    let mut bold = vec![true; height];
    for ((row, column), inside) in cells {
        let pieces = inside.iter().map(|index| piece(side, *index, &side.fragments[*index])).collect();
        let inner = columns::rows(pieces);
        // Rows with gaps inside a cell: the cell contains a table, and the lines are a frame around it.
        if inner.len() > MAX_CELL_LINES || inner.iter().filter(|row| has_gap(row)).count() > 1 {
            return None;
        }
        let fragments = |row: &PieceRow| row.iter().map(|piece| &side.fragments[piece.index]).collect::<Vec<_>>();
        let lines: Vec<lines::TextLine> = inner.iter().map(|row| lines::line(side, &fragments(row))).collect();
        bold[*row] &= lines.iter().all(|line| line.bold);
        let texts: Vec<String> =
            blocks::groups(&lines).into_iter().map(|group| group.text.replace('\n', " ")).collect();
        rows[*row][*column] = texts.join(" ");
    }
    let used = |column: usize| rows.iter().any(|row| !row[column].is_empty());
    let kept: Vec<usize> = (0..width).filter(|column| used(*column)).collect();
    let bold: Vec<bool> = rows
        .iter()
        .zip(bold)
        .filter(|(row, _)| row.iter().any(|cell| !cell.is_empty()))
        .map(|(_, bold)| bold)
        .collect();
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .filter(|row| row.iter().any(|cell| !cell.is_empty()))
        .map(|mut row| kept.iter().map(|column| std::mem::take(&mut row[*column])).collect())
        .collect();
    if rows.len() < 2 || kept.len() < 2 {
        return None;
    }
    // The bold rows at the top, unless all rows are bold.
    let header_rows = bold.iter().take_while(|bold| **bold).count();
    Some(Table { header_rows: if header_rows == rows.len() { 0 } else { header_rows }, rows })
}

/// Whether the distance of two pieces of a row is larger than a space between words.
fn has_gap(row: &PieceRow) -> bool {
    row.windows(2).any(|pair| pair[1].x0 - pair[0].x1 > 2.0 * (pair[0].bottom - pair[0].top))
}
