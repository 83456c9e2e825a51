//! The document model: pages, blocks, images and metadata.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Format;

/// The extraction result of one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    pub format: Format,
    pub pages: Vec<Page>,
    pub metadata: Metadata,
    pub method: ExtractionMethod,
    pub warnings: Vec<Warning>,
}

/// A page, a slide or a sheet. A file of any other kind is one page.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// Starts at 1.
    pub number: u32,
    /// The sheet name or the slide title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// In reading order.
    pub blocks: Vec<Block>,
    /// Images on the page that may contain text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// The page has content that is not extractable as text and needs OCR.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scanned: bool,
    /// OCR confidence from 0 to 1; `None` if the page was read as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f32>,
}

/// A structural unit of a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Block {
    #[serde(flatten)]
    pub kind: BlockKind,
    /// Table rows are separated by newlines, cells by tabs.
    pub text: String,
    /// The headings above it, outermost first, each truncated to 200 characters. A heading does not include itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
}

/// The kind of a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BlockKind {
    /// Level 1 is the outermost, 6 the innermost.
    Heading {
        level: u8,
    },
    Paragraph,
    ListItem {
        /// 0 is the outermost.
        depth: u8,
    },
    Table(Table),
    Code,
    /// The caption of an image or a table.
    Caption,
    /// Running headers and footers.
    Furniture,
    /// Footnotes, endnotes, speaker notes.
    Note,
    /// Comments and other annotations.
    Comment,
    /// The value of a form field.
    Field,
    /// Text recognized in an image on the page.
    Image,
}

/// Cells by row. Rows may differ in length.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    pub rows: Vec<Vec<String>>,
    /// Number of leading header rows.
    pub header_rows: usize,
}

/// An image inside a file, as stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Such as `image/jpeg`. Most PDF images have no media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Empty unless requested, and always empty for PDF pages, where [`PdfPages::pictures`](crate::PdfPages) decodes
    /// the pixels.
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// Identifies an image within a PDF file.
    #[serde(skip)]
    pub key: u128,
    /// Number of blocks on the page before the image: text recognized in it belongs there.
    #[serde(skip)]
    pub after: usize,
    /// Zero if unknown.
    pub width: u32,
    pub height: u32,
    /// The alternative text from the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A decoded RGB image: three bytes per pixel, row by row.
#[derive(Clone, PartialEq, Eq)]
pub struct Raster {
    pub width: u32,
    pub height: u32,
    pub rgb: Vec<u8>,
}

/// Metadata of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// RFC 3339 if the date is parseable, else unchanged from the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
    /// The image size in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// Camera maker and model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Where the photo was taken, in degrees north and east, such as `48.8584, 2.2945`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Keywords from the file's metadata.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copyright: Option<String>,
}

/// How the text was extracted (K-32).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtractionMethod {
    #[default]
    TextExtraction,
    Ocr,
    Hybrid,
    ImageAnalysis,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.page {
            Some(page) => write!(f, "page {page}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl ExtractionMethod {
    /// The wire name (K-32).
    pub fn as_str(self) -> &'static str {
        match self {
            ExtractionMethod::TextExtraction => "text_extraction",
            ExtractionMethod::Ocr => "ocr",
            ExtractionMethod::Hybrid => "hybrid",
            ExtractionMethod::ImageAnalysis => "image_analysis",
        }
    }
}

/// A problem that did not stop extraction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The page; `None` if it concerns the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    pub message: String,
}

// === impl ===

impl Document {
    /// All text, with pages separated by a form feed.
    pub fn text(&self) -> String {
        self.pages.iter().map(Page::text).collect::<Vec<_>>().join("\n\u{c}\n")
    }

    /// Whether the document contains any text.
    pub fn has_text(&self) -> bool {
        self.pages.iter().any(Page::has_text)
    }

    /// The text without cell comments: plain text has no cells to attach them to.
    pub fn plain_text(mut self) -> String {
        if self.format == Format::Xlsx {
            self.pages.iter_mut().for_each(|page| page.blocks.retain(|block| block.kind != BlockKind::Comment));
        }
        self.text()
    }
}

impl Page {
    pub fn has_text(&self) -> bool {
        self.blocks.iter().any(Block::has_text)
    }

    /// The text of its blocks, separated by empty lines.
    pub fn text(&self) -> String {
        let texts = self.blocks.iter().map(|block| block.text.as_str());
        texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
    }
}

impl Block {
    pub fn new(kind: BlockKind, text: impl Into<String>) -> Block {
        Block { kind, text: text.into(), path: Vec::new() }
    }

    pub fn has_text(&self) -> bool {
        !self.text.trim().is_empty()
    }

    pub fn paragraph(text: impl Into<String>) -> Block {
        Block::new(BlockKind::Paragraph, text)
    }

    pub fn heading(level: u8, text: impl Into<String>) -> Block {
        Block::new(BlockKind::Heading { level: level.clamp(1, 6) }, text)
    }

    pub fn table(table: Table) -> Block {
        let text = table.text();
        Block::new(BlockKind::Table(table), text)
    }
}

impl Table {
    /// Rows separated by newlines, cells by tabs. Whitespace inside a cell becomes a single space.
    ///
    /// Writes into one string: a temporary string for every cell and row is too slow and too large for a million cells.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let start = text.len();
            for (at, cell) in row.iter().enumerate() {
                if at > 0 {
                    text.push('\t');
                }
                if cell.bytes().all(|byte| byte.is_ascii_graphic()) {
                    text.push_str(cell);
                    continue;
                }
                for (at, word) in cell.split_whitespace().enumerate() {
                    if at > 0 {
                        text.push(' ');
                    }
                    text.push_str(word);
                }
            }
            let end = start + text[start..].trim_end().len();
            text.truncate(end);
            if end > start {
                text.push('\n');
            }
        }
        text.truncate(text.trim_end_matches('\n').len());
        text
    }
}

impl Warning {
    pub fn new(message: impl Into<String>) -> Warning {
        Warning { page: None, message: message.into() }
    }

    pub fn on_page(page: u32, message: impl Into<String>) -> Warning {
        Warning { page: Some(page), message: message.into() }
    }
}

impl fmt::Debug for Raster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Raster").field("width", &self.width).field("height", &self.height).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_table_has_a_line_for_every_row_that_says_something() {
        let rows = [vec!["a", " b\tc ", ""], vec![], vec!["", "\u{a0}"], vec!["", "d", " ü\nü"]];
        let rows = rows.map(|row| row.into_iter().map(str::to_owned).collect()).to_vec();
        assert_eq!(Table { rows, header_rows: 0 }.text(), "a\tb c\n\td\tü ü");
    }
}
