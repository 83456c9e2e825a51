//! Cells of a sheet.
//!
//! Declared dimensions and missing cells take no memory: rows are collected into table regions while they are parsed,
//! and an empty row ends a region.

use super::Workbook;
use super::strings::{item, unescape};
use super::table_region::{SheetCell, TableRegion};
use super::{number, number_format};
use crate::ooxml::{Package, Tag, Xml};
use crate::{Block, Error};

/// Converts a sheet to blocks.
pub(super) struct Sheet<'s, 'a> {
    package: &'s mut Package<'a>,
    workbook: &'s Workbook,
    blocks: &'s mut Vec<Block>,
    region: TableRegion,
    /// Position of the last row, and of the last cell in it, from 1.
    row: u32,
    column: u32,
    /// Buffers for value and formula, reused for each cell.
    value: String,
    formula: String,
}

/// Attributes of a cell.
#[derive(Default)]
struct CellAttributes {
    column: Option<u32>,
    content: CellContent,
    style: Option<usize>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum CellContent {
    #[default]
    Number,
    SharedText,
    Text,
    Boolean,
}

/// Maximum columns of a sheet.
const MAX_COLUMNS: u32 = 16_384;

// === impl ===

impl<'s, 'a> Sheet<'s, 'a> {
    pub(super) fn new(
        package: &'s mut Package<'a>,
        workbook: &'s Workbook,
        blocks: &'s mut Vec<Block>,
    ) -> Sheet<'s, 'a> {
        let (band, value, formula) = (TableRegion::default(), String::new(), String::new());
        Sheet { package, workbook, blocks, region: band, row: 0, column: 0, value, formula }
    }

    /// Reads the content of the root element, which is open.
    pub(super) fn read(&mut self, xml: &mut Xml<'_>) -> Result<(), Error> {
        while let Some(tag) = xml.child()? {
            if tag.name() != "sheetData" {
                xml.skip()?;
                continue;
            }
            while let Some(tag) = xml.child()? {
                if tag.name() == "row" {
                    self.read_row(&tag, xml)?;
                } else {
                    xml.skip()?;
                }
            }
        }
        Ok(())
    }

    /// Converts the last region to blocks.
    pub(super) fn finish(&mut self) {
        self.blocks.extend(std::mem::take(&mut self.region).blocks());
    }

    fn read_row(&mut self, tag: &Tag<'_>, xml: &mut Xml<'_>) -> Result<(), Error> {
        self.row = tag.number("r").unwrap_or(self.row.saturating_add(1));
        self.column = 0;
        let mut cells = Vec::new();
        while let Some(tag) = xml.child()? {
            if tag.name() == "c" {
                cells.extend(self.read_cell(&tag, xml)?);
            } else {
                xml.skip()?;
            }
        }
        if cells.is_empty() {
            return Ok(());
        }
        if !self.region.continues_with(self.row, &cells) {
            self.package.count_blocks(1)?;
            self.finish();
        }
        self.region.push(self.row, cells);
        Ok(())
    }

    fn read_cell(&mut self, tag: &Tag<'_>, xml: &mut Xml<'_>) -> Result<Option<SheetCell>, Error> {
        let head = CellAttributes::of(tag);
        self.column = head.column.unwrap_or(self.column + 1).min(MAX_COLUMNS);
        self.value.clear();
        self.formula.clear();
        while let Some(tag) = xml.child()? {
            match tag.name() {
                "v" => xml.append(&mut self.value)?,
                "f" => xml.append(&mut self.formula)?,
                "is" => item(xml, &mut self.value)?,
                _ => xml.skip()?,
            }
        }
        let text = match (self.value.is_empty(), head.content) {
            (false, _) => self.shown(&head),
            // Programs without a calculation engine store no result; an empty text is a result.
            (true, CellContent::Number) if !self.formula.is_empty() => format!("={}", self.formula),
            (true, _) => return Ok(None),
        };
        if text.trim().is_empty() {
            return Ok(None);
        }
        self.package.count_cells(1)?;
        // A few long shared strings, referenced by every cell, would exceed the file size many times.
        self.package.count(&text)?;
        let is_text = matches!(head.content, CellContent::SharedText | CellContent::Text);
        Ok(Some(SheetCell { column: self.column, text, is_text }))
    }

    fn shown(&self, head: &CellAttributes) -> String {
        let value = self.value.as_str();
        match head.content {
            CellContent::SharedText => {
                let text = value.trim().parse().ok().and_then(|index| self.workbook.strings.get(index));
                unescape(text.unwrap_or_default()).into_owned()
            }
            CellContent::Text => unescape(value).into_owned(),
            CellContent::Boolean => if value.trim() == "0" { "FALSE" } else { "TRUE" }.to_owned(),
            CellContent::Number => {
                let form: &number_format::NumberFormat = self.workbook.styles.form(head.style);
                number::format_number(value, form, self.workbook.from_1904)
            }
        }
    }
}

impl CellAttributes {
    fn of(tag: &Tag<'_>) -> CellAttributes {
        let mut head = CellAttributes::default();
        tag.each(|name, value| match name {
            "r" => head.column = column(&value),
            "s" => head.style = value.parse().ok(),
            "t" => {
                head.content = match value.as_ref() {
                    "s" => CellContent::SharedText,
                    // Formula results, inline strings, errors and ISO dates.
                    "str" | "inlineStr" | "e" | "d" => CellContent::Text,
                    "b" => CellContent::Boolean,
                    _ => CellContent::Number,
                }
            }
            _ => {}
        });
        head
    }
}

/// The column of a reference such as `AB12`, from 1.
fn column(reference: &str) -> Option<u32> {
    let letters = reference.bytes().take_while(u8::is_ascii_alphabetic);
    let column =
        letters.take(4).fold(0, |column, letter| column * 26 + u32::from(letter.to_ascii_uppercase() - b'A') + 1);
    (1..=MAX_COLUMNS).contains(&column).then_some(column)
}
