//! What a file says, and how it is built.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Format;

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    pub format: Format,
    pub pages: Vec<Page>,
    pub metadata: Metadata,
    pub method: Method,
    pub warnings: Vec<Warning>,
}

/// A page, a slide, a sheet; a file without any of them is one page.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// Counted from 1.
    pub number: u32,
    /// The name of a sheet or the title of a slide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// In reading order.
    pub blocks: Vec<Block>,
    /// Pictures on it that may hold text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// It shows what cannot be read as text, and may be read as a picture.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scanned: bool,
    /// How sure those are who read it as a picture, from 0 to 1; none where it was read as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f32>,
}

/// A piece of a page that stands by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Block {
    #[serde(flatten)]
    pub kind: Kind,
    /// Its text; the rows of a table by line, cells by tab.
    pub text: String,
    /// The headings it stands under, outermost first, the first 200 characters of each; a heading is not among its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
}

/// What a block is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Kind {
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
    /// Words about a picture or a table.
    Caption,
    /// What is repeated at the top or the bottom of every page.
    Furniture,
    /// Footnotes, endnotes, speaker notes.
    Note,
    /// Comments and other annotations.
    Comment,
    /// The value of a form field.
    Field,
    /// Words in a picture that stands on the page.
    Picture,
}

/// Cells by row. Rows may differ in length.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    pub rows: Vec<Vec<String>>,
    /// How many rows at the beginning say what the columns are.
    pub header_rows: usize,
}

/// A picture inside a file, as it is stored there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Such as `image/jpeg`. Most pictures on pages of PDF are of no kind that has a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Empty where nobody asked for them, and on pages of PDF, where [`PdfPages::pictures`](crate::PdfPages) has their dots.
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// Which picture of a PDF file it is.
    #[serde(skip)]
    pub key: u128,
    /// How many blocks of its page stand before it: words that are read in it belong there.
    #[serde(skip)]
    pub after: usize,
    /// Zero where it is not known.
    pub width: u32,
    pub height: u32,
    /// What the file says about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A picture of dots: three bytes each, red, green and blue, row by row.
#[derive(Clone, PartialEq, Eq)]
pub struct Raster {
    pub width: u32,
    pub height: u32,
    pub rgb: Vec<u8>,
}

/// What a file says about itself.
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
    /// As RFC 3339 where the file's own way of writing it can be read, else as it stands there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
    /// The size of a picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// What a picture was taken with: maker and model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Where it was taken, in degrees north and east, such as `48.8584, 2.2945`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What somebody found it to be about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copyright: Option<String>,
}

/// How the text was found (K-32).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
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

impl Method {
    /// The word for it on the wire (K-32).
    pub fn as_str(self) -> &'static str {
        match self {
            Method::TextExtraction => "text_extraction",
            Method::Ocr => "ocr",
            Method::Hybrid => "hybrid",
            Method::ImageAnalysis => "image_analysis",
        }
    }
}

/// Something that did not go as it should, and did not end the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Where; none where it concerns the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    pub message: String,
}

// === impl ===

impl Document {
    /// All text, pages parted by a form feed.
    pub fn text(&self) -> String {
        self.pages.iter().map(Page::text).collect::<Vec<_>>().join("\n\u{c}\n")
    }

    /// Whether there is any text.
    pub fn says_something(&self) -> bool {
        self.pages.iter().any(Page::says_something)
    }

    /// The same as it is printed: without comments in cells, since a text has no cells that they could stand at.
    pub fn printed(mut self) -> String {
        if self.format == Format::Xlsx {
            self.pages.iter_mut().for_each(|page| page.blocks.retain(|block| block.kind != Kind::Comment));
        }
        self.text()
    }
}

impl Page {
    pub fn says_something(&self) -> bool {
        self.blocks.iter().any(Block::says_something)
    }

    /// The texts of its blocks, parted by an empty line.
    pub fn text(&self) -> String {
        let texts = self.blocks.iter().map(|block| block.text.as_str());
        texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
    }
}

impl Block {
    pub fn new(kind: Kind, text: impl Into<String>) -> Block {
        Block { kind, text: text.into(), path: Vec::new() }
    }

    pub fn says_something(&self) -> bool {
        !self.text.trim().is_empty()
    }

    pub fn paragraph(text: impl Into<String>) -> Block {
        Block::new(Kind::Paragraph, text)
    }

    pub fn heading(level: u8, text: impl Into<String>) -> Block {
        Block::new(Kind::Heading { level: level.clamp(1, 6) }, text)
    }

    pub fn table(table: Table) -> Block {
        let text = table.text();
        Block::new(Kind::Table(table), text)
    }
}

impl Table {
    /// Rows by line, cells by tab. What would break a row or a cell apart becomes a space.
    ///
    /// Written into one text: one for every cell and every row first is too slow and too much for a million cells.
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

    pub fn on(page: u32, message: impl Into<String>) -> Warning {
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
