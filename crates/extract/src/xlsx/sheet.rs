//! Cells of a sheet.
//!
//! Declared dimensions and missing cells take no memory: rows are collected into table regions while they are parsed,
//! and an empty row ends a region.

use super::Workbook;
use super::band::{Band, Cell};
use super::strings::{item, unescape};
use super::{form, number};
use crate::ooxml::{Package, Tag, Xml};
use crate::{Block, Error};

/// Converts a sheet to blocks.
pub(super) struct Sheet<'s, 'a> {
    package: &'s mut Package<'a>,
    workbook: &'s Workbook,
    blocks: &'s mut Vec<Block>,
    band: Band,
    /// Position of the last row, and of the last cell in it, from 1.
    row: u32,
    column: u32,
    /// Buffers for value and formula, reused for each cell.
    value: String,
    formula: String,
}

/// Attributes of a cell.
#[derive(Default)]
struct Head {
    column: Option<u32>,
    content: Content,
    style: Option<usize>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Content {
    #[default]
    Number,
    SharedText,
    Text,
    Boolean,
}

/// Maximum columns of a sheet.
const MOST_COLUMNS: u32 = 16_384;

// === impl ===

impl<'s, 'a> Sheet<'s, 'a> {
    pub(super) fn new(
        package: &'s mut Package<'a>,
        workbook: &'s Workbook,
        blocks: &'s mut Vec<Block>,
    ) -> Sheet<'s, 'a> {
        let (band, value, formula) = (Band::default(), String::new(), String::new());
        Sheet { package, workbook, blocks, band, row: 0, column: 0, value, formula }
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
        self.blocks.extend(std::mem::take(&mut self.band).blocks());
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
        if !self.band.goes_on_with(self.row, &cells) {
            self.package.count_blocks(1)?;
            self.finish();
        }
        self.band.push(self.row, cells);
        Ok(())
    }

    fn read_cell(&mut self, tag: &Tag<'_>, xml: &mut Xml<'_>) -> Result<Option<Cell>, Error> {
        let head = Head::of(tag);
        self.column = head.column.unwrap_or(self.column + 1).min(MOST_COLUMNS);
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
            (true, Content::Number) if !self.formula.is_empty() => format!("={}", self.formula),
            (true, _) => return Ok(None),
        };
        if text.trim().is_empty() {
            return Ok(None);
        }
        self.package.count_cells(1)?;
        // A few long shared strings, referenced by every cell, would exceed the file size many times.
        self.package.count(&text)?;
        let is_text = matches!(head.content, Content::SharedText | Content::Text);
        Ok(Some(Cell { column: self.column, text, is_text }))
    }

    fn shown(&self, head: &Head) -> String {
        let value = self.value.as_str();
        match head.content {
            Content::SharedText => {
                let text = value.trim().parse().ok().and_then(|index| self.workbook.strings.get(index));
                unescape(text.unwrap_or_default()).into_owned()
            }
            Content::Text => unescape(value).into_owned(),
            Content::Boolean => if value.trim() == "0" { "FALSE" } else { "TRUE" }.to_owned(),
            Content::Number => {
                let form: &form::Form = self.workbook.styles.form(head.style);
                number::shown(value, form, self.workbook.from_1904)
            }
        }
    }
}

impl Head {
    fn of(tag: &Tag<'_>) -> Head {
        let mut head = Head::default();
        tag.each(|name, value| match name {
            "r" => head.column = column(&value),
            "s" => head.style = value.parse().ok(),
            "t" => {
                head.content = match value.as_ref() {
                    "s" => Content::SharedText,
                    // Formula results, inline strings, errors and ISO dates.
                    "str" | "inlineStr" | "e" | "d" => Content::Text,
                    "b" => Content::Boolean,
                    _ => Content::Number,
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
    (1..=MOST_COLUMNS).contains(&column).then_some(column)
}
