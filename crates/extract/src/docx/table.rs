//! DOCX tables, with merged cells and nested tables.

use super::part_reader::{PartReader, join_text};
use crate::ooxml::Xml;
use crate::{Block, Error, Table};

/// A table under construction.
#[derive(Default)]
struct TableBuilder {
    table: Table,
    /// The blocks of the first cell. A table with a single cell is a frame around text.
    only: Vec<Block>,
    cells: usize,
}

#[derive(Default)]
struct TableRow {
    cells: Vec<String>,
    is_header: bool,
    is_deleted: bool,
}

/// Maximum columns, as in word processors.
const MAX_COLUMNS: usize = 63;

// === impl ===

impl PartReader<'_, '_> {
    pub(super) fn table(&mut self, xml: &mut Xml<'_>) -> Result<(), Error> {
        let mut grid = TableBuilder::default();
        let pictures = self.pictures().len();
        self.rows(xml, &mut grid)?;
        if grid.cells == 1 {
            let before = self.blocks.len();
            self.pictures()[pictures..].iter_mut().for_each(|image| image.after += before);
            self.blocks.extend(grid.only);
            return Ok(());
        }
        if grid.table.rows.iter().flatten().any(|cell| !cell.is_empty()) {
            self.blocks.push(Block::table(grid.table));
        }
        let behind = self.blocks.len();
        self.pictures()[pictures..].iter_mut().for_each(|image| image.after = behind);
        Ok(())
    }

    fn rows(&mut self, xml: &mut Xml<'_>, grid: &mut TableBuilder) -> Result<(), Error> {
        while let Some(tag) = xml.child()? {
            match tag.name() {
                "tr" => {
                    let mut row = TableRow::default();
                    self.cells(xml, grid, &mut row)?;
                    if row.is_deleted {
                        continue;
                    }
                    self.count_cells(row.cells.len())?;
                    if row.is_header && grid.table.header_rows == grid.table.rows.len() {
                        grid.table.header_rows += 1;
                    }
                    grid.table.rows.push(row.cells);
                }
                "tblPr" | "tblGrid" => xml.skip()?,
                // Content controls and similar wrappers around rows.
                _ => self.rows(xml, grid)?,
            }
        }
        Ok(())
    }

    fn cells(&mut self, xml: &mut Xml<'_>, grid: &mut TableBuilder, row: &mut TableRow) -> Result<(), Error> {
        while let Some(tag) = xml.child()? {
            match tag.name() {
                // Row properties precede the cells.
                "tc" if row.is_deleted => xml.skip()?,
                "tc" => {
                    let Some(blocks) = self.cell(xml, row)? else { continue };
                    grid.cells += 1;
                    if grid.cells == 1 {
                        grid.only = blocks;
                    }
                }
                "trPr" => row.read_properties(xml)?,
                "tblPrEx" | "sdtPr" => xml.skip()?,
                _ => self.cells(xml, grid, row)?,
            }
        }
        Ok(())
    }

    /// Reads a cell; `None` if it was deleted. Empty cells follow a cell that spans columns, so that columns stay
    /// aligned.
    fn cell(&mut self, xml: &mut Xml<'_>, row: &mut TableRow) -> Result<Option<Vec<Block>>, Error> {
        let mut columns = 1;
        let mut continues = false;
        let mut is_deleted = false;
        let around = self.enter();
        while let Some(tag) = xml.child()? {
            match tag.name() {
                "tcPr" => {
                    while let Some(tag) = xml.child()? {
                        match tag.name() {
                            "gridSpan" => columns = tag.number("val").unwrap_or(1),
                            "cellDel" => is_deleted = true,
                            "vMerge" => continues = tag.get("val").is_none_or(|kind| kind != "restart"),
                            _ => {}
                        }
                        xml.skip()?;
                    }
                }
                _ if is_deleted => xml.skip()?,
                "p" => self.paragraph(xml)?,
                "tbl" => self.table(xml)?,
                _ => self.body(xml)?,
            }
        }
        let blocks = self.leave(around);
        if is_deleted {
            return Ok(None);
        }
        row.cells.push(if continues { String::new() } else { join_text(&blocks) });
        row.leave_empty(columns.max(1) - 1);
        Ok(Some(blocks))
    }
}

impl TableRow {
    fn read_properties(&mut self, xml: &mut Xml<'_>) -> Result<(), Error> {
        while let Some(tag) = xml.child()? {
            match tag.name() {
                "tblHeader" => self.is_header = tag.is_on(),
                "del" => self.is_deleted = true,
                "gridBefore" => self.leave_empty(tag.number("val").unwrap_or(0)),
                _ => {}
            }
            xml.skip()?;
        }
        Ok(())
    }

    fn leave_empty(&mut self, columns: usize) {
        let columns = columns.min(MAX_COLUMNS.saturating_sub(self.cells.len()));
        self.cells.extend(std::iter::repeat_n(String::new(), columns));
    }
}
