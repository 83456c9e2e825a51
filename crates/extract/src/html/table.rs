//! Builds a table from HTML rows and cells.

use crate::{Error, Limits, Table};

/// Maximum columns of one cell. More are an error or an attack.
const MAX_COLUMN_SPAN: usize = 64;
/// Maximum number of empty cells that keep columns aligned around cells that span several rows or columns. A table that
/// needs more goes without.
const MAX_PADDING_CELLS: usize = 200_000;

/// A table under construction.
#[derive(Debug, Default)]
pub(super) struct HtmlTableBuilder {
    table: Table,
    row: Vec<String>,
    /// For each column, the number of further rows that a cell above spans.
    row_spans: Vec<usize>,
    padding: usize,
    cells: u64,
    /// Inside `thead`.
    pub(super) head: bool,
    /// Every cell of this row so far is a header cell.
    titles: bool,
    /// A data row was added, so later rows cannot be header rows.
    values: bool,
}

impl HtmlTableBuilder {
    pub(super) fn start_row(&mut self) {
        self.row.clear();
        self.titles = true;
    }

    /// Adds a cell. Its text is stored only in its first column and row.
    pub(super) fn cell(&mut self, text: String, title: bool, columns: usize, rows: usize) {
        self.skip_spanned();
        self.titles &= title || text.is_empty();
        for column in 0..columns.clamp(1, MAX_COLUMN_SPAN) {
            let place = self.row.len();
            if column > 0 && !self.pad() {
                break;
            }
            if rows > 1 {
                if self.row_spans.len() <= place {
                    self.row_spans.resize(place + 1, 0);
                }
                self.row_spans[place] = rows - 1;
            }
            if column == 0 {
                self.row.push(text.clone());
            }
        }
        self.cells += 1;
    }

    pub(super) fn end_row(&mut self, limits: &Limits) -> Result<(), Error> {
        self.skip_spanned();
        for rows in self.row_spans.iter_mut().skip(self.row.len()) {
            *rows = rows.saturating_sub(1);
        }
        if self.cells > limits.cells {
            return Err(Error::TooMuch { what: "cells", most: limits.cells });
        }
        while self.row.last().is_some_and(String::is_empty) {
            self.row.pop();
        }
        if self.row.is_empty() {
            return Ok(());
        }
        if !self.values && (self.head || self.titles) {
            self.table.header_rows += 1;
        } else {
            self.values = true;
        }
        self.table.rows.push(std::mem::take(&mut self.row));
        Ok(())
    }

    /// `None` if all cells are empty.
    pub(super) fn finish(mut self) -> Option<Table> {
        // Only header rows: a list formatted as a table.
        if self.table.header_rows == self.table.rows.len() && !self.values {
            self.table.header_rows = self.table.header_rows.min(1);
        }
        (!self.table.rows.is_empty()).then_some(self.table)
    }

    /// Skips the columns that cells of earlier rows span.
    fn skip_spanned(&mut self) {
        while let Some(rows) = self.row_spans.get_mut(self.row.len()).filter(|rows| **rows > 0) {
            *rows -= 1;
            if !self.pad() {
                break;
            }
        }
    }

    fn pad(&mut self) -> bool {
        self.padding += 1;
        let more = self.padding <= MAX_PADDING_CELLS;
        if more {
            self.row.push(String::new());
        }
        more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_over_several_rows_and_columns_keeps_the_others_in_their_columns() {
        let mut grid = HtmlTableBuilder::default();
        grid.start_row();
        grid.cell("name".into(), true, 1, 2);
        grid.cell("size".into(), true, 2, 1);
        grid.end_row(&Limits::default()).unwrap();
        grid.start_row();
        grid.cell("width".into(), true, 1, 1);
        grid.cell("height".into(), true, 1, 1);
        grid.end_row(&Limits::default()).unwrap();
        grid.start_row();
        for text in ["box", "3", "4"] {
            grid.cell(text.into(), false, 1, 1);
        }
        grid.end_row(&Limits::default()).unwrap();
        let table = grid.finish().unwrap();
        assert_eq!(table.header_rows, 2);
        assert_eq!(table.rows, [vec!["name", "size"], vec!["", "width", "height"], vec!["box", "3", "4"]]);
    }

    #[test]
    fn spans_meant_to_hurt_stay_small() {
        let mut grid = HtmlTableBuilder::default();
        for _ in 0..10_000 {
            grid.start_row();
            grid.cell("a".into(), false, 1_000_000, 1_000_000);
            grid.cell("b".into(), false, 1, 1);
            grid.end_row(&Limits::default()).unwrap();
        }
        let cells: usize = grid.finish().unwrap().rows.iter().map(Vec::len).sum();
        assert!(cells < 300_000, "{cells}");
    }
}
