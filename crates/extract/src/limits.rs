//! How much a file may make of itself.

use serde::{Deserialize, Serialize};

use crate::Error;

/// Bounds on everything a file can make grow. They count what really comes out, never what a file says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Pages, slides and sheets.
    pub pages: u32,
    /// Characters of text in all.
    pub characters: u64,
    /// Bytes that all parts of a zip archive inflate to.
    pub inflated_bytes: u64,
    /// Bytes that one part of it inflates to.
    pub part_bytes: u64,
    /// How many times larger than the archive all its parts may be, once they are more than a few megabytes.
    pub inflation: u64,
    /// Parts of a zip archive.
    pub entries: usize,
    /// How deep elements of XML and HTML may be nested.
    pub depth: usize,
    /// Headings, paragraphs, items, tables: all that text is parted into.
    pub blocks: usize,
    /// Cells of a workbook.
    pub cells: u64,
    /// Dots of a picture, or of a page drawn as one.
    pub pixels: u64,
    /// Pictures inside a file that are handed over.
    pub images: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            pages: 10_000,
            characters: 50_000_000,
            inflated_bytes: 1 << 30,
            part_bytes: 256 << 20,
            inflation: 200,
            entries: 10_000,
            depth: 256,
            blocks: 500_000,
            cells: 2_000_000,
            pixels: 50_000_000,
            images: 500,
        }
    }
}

impl Limits {
    /// Refuses more blocks than allowed, while they are made: one takes a hundred bytes, and a file three.
    pub(crate) fn check_blocks(&self, count: usize) -> Result<(), Error> {
        let most = self.blocks;
        let too_much = Error::TooMuch { what: "paragraphs and tables", most: most as u64 };
        if count > most { Err(too_much) } else { Ok(()) }
    }
}
