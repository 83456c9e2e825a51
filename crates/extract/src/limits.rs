//! Extraction limits.

use serde::{Deserialize, Serialize};

use crate::Error;

/// Limits on everything that a file can inflate. The readers count actual output, never sizes declared in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Pages, slides and sheets.
    pub pages: u32,
    /// Total characters of text.
    pub characters: u64,
    /// Total decompressed bytes of all parts of a ZIP archive.
    pub inflated_bytes: u64,
    /// Decompressed bytes of one part.
    pub part_bytes: u64,
    /// Maximum compression ratio of the archive, enforced once its parts exceed a few megabytes.
    pub inflation: u64,
    /// Parts of a ZIP archive.
    pub entries: usize,
    /// Nesting depth of XML and HTML elements.
    pub depth: usize,
    /// Headings, paragraphs, items and tables.
    pub blocks: usize,
    /// Table cells.
    pub cells: u64,
    /// Pixels of an image or of a rendered page.
    pub pixels: u64,
    /// Embedded images passed to the sink.
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
    /// Rejects too many blocks while they are created: a block takes a hundred bytes, but only three in a file.
    pub(crate) fn check_blocks(&self, count: usize) -> Result<(), Error> {
        let most = self.blocks;
        let too_much = Error::TooMuch { what: "paragraphs and tables", most: most as u64 };
        if count > most { Err(too_much) } else { Ok(()) }
    }
}
