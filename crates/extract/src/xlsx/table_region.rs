//! Table regions: consecutive non-empty rows.
//!
//! Columns that are empty throughout a region are dropped. They do not split it: many sheets have a narrow empty column
//! between labels and numbers.

use crate::{Block, Table};

/// Rows of one table region.
#[derive(Debug, Default)]
pub(super) struct TableRegion {
    rows: Vec<Vec<SheetCell>>,
    last_row: u32,
    /// Header rows above an empty row that belong to the data below it.
    header_rows: usize,
}

/// A non-empty cell.
#[derive(Debug)]
pub(super) struct SheetCell {
    /// From 1.
    pub(super) column: u32,
    pub(super) text: String,
    pub(super) is_text: bool,
}

/// Maximum header rows.
const MAX_HEADER_ROWS: usize = 3;
/// Maximum number of empty cells per non-empty cell before rows are compacted.
const MAX_EMPTY_RATIO: usize = 8;
/// Smaller tables are never compacted.
const MIN_COMPACTED_CELLS: usize = 10_000;

// === impl ===

impl TableRegion {
    /// Whether a row belongs to the region: the next row does, and below a header also the row after an empty one.
    pub(super) fn continues_with(&self, row: u32, cells: &[SheetCell]) -> bool {
        let is_header = || {
            let is_wide = self.rows.last().is_some_and(|row| row.len() > 1) && self.rows.len() <= MAX_HEADER_ROWS;
            is_wide && self.rows.iter().flatten().all(|cell| cell.is_text) && cells.iter().any(|cell| !cell.is_text)
        };
        match row.checked_sub(self.last_row) {
            _ if self.rows.is_empty() => true,
            Some(1) => true,
            Some(2) => is_header(),
            _ => false,
        }
    }

    pub(super) fn push(&mut self, row: u32, mut cells: Vec<SheetCell>) {
        if row == self.last_row.saturating_add(2) {
            self.header_rows = self.rows.len();
        }
        if !cells.is_sorted_by_key(|cell| cell.column) {
            cells.sort_by_key(|cell| cell.column);
        }
        self.last_row = row;
        self.rows.push(cells);
    }

    /// Single texts above a table are its titles, and so are a few isolated texts. More of them form a table with one
    /// column.
    pub(super) fn blocks(mut self) -> Vec<Block> {
        let is_title = |row: &Vec<SheetCell>| matches!(row.as_slice(), [cell] if cell.is_text);
        let titles = self.rows.iter().take_while(|row| is_title(row)).count();
        let is_column = titles == self.rows.len() && titles > MAX_HEADER_ROWS;
        let titles = if is_column { 0 } else { titles };
        let rest = self.rows.split_off(titles);
        let mut blocks: Vec<Block> =
            self.rows.into_iter().flatten().map(|cell| Block::paragraph(cell.text.trim())).collect();
        if !rest.is_empty() {
            let header_rows = self.header_rows.saturating_sub(titles);
            blocks.push(Block::table(table(rest, header_rows)));
        }
        blocks
    }
}

fn table(rows: Vec<Vec<SheetCell>>, header_rows: usize) -> Table {
    let is_header = rows.len() > 1 && rows[0].len() > 1 && rows[0].iter().all(|cell| cell.is_text);
    let mut columns: Vec<u32> = rows.iter().flatten().map(|cell| cell.column).collect();
    let filled = columns.len();
    columns.sort_unstable();
    columns.dedup();
    // One cell per row, each further right, would make an almost empty square.
    let is_sparse =
        rows.len().saturating_mul(columns.len()) > filled.saturating_mul(MAX_EMPTY_RATIO).max(MIN_COMPACTED_CELLS);
    let line = |cells: Vec<SheetCell>| {
        let mut line = Vec::with_capacity(cells.len());
        for cell in cells {
            let place = if is_sparse { line.len() } else { columns.partition_point(|column| *column < cell.column) };
            // Two cells at one position are a writer's error; both are kept.
            while line.len() < place {
                line.push(String::new());
            }
            line.push(cell.text);
        }
        line
    };
    Table { rows: rows.into_iter().map(line).collect(), header_rows: header_rows.max(usize::from(is_header)) }
}
