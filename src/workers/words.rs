//! OCR result of an image, as blocks of a page.

use corbie_extract::{Block, Method, Table, outline};
use corbie_infer::ocr::{Paragraph, ParagraphKind, Recognised};
use serde::{Deserialize, Serialize};

/// Text recognized in an image.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Words {
    /// In reading order.
    pub(super) blocks: Vec<Block>,
    /// From 0 to 1.
    pub(super) confidence: f32,
    /// Whether much of the image could not be recognized.
    pub(super) doubtful: bool,
    /// Number of lines beyond the limit.
    pub(super) left_out: usize,
}

/// Origin of the text of a page or document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Origin {
    pub(super) text: bool,
    pub(super) sight: bool,
}

/// Heading level in an image: below the headings of the document.
const LEVEL: u8 = 2;

impl Words {
    pub(super) fn of(seen: &Recognised) -> Words {
        let mut blocks: Vec<Block> = seen.paragraphs().into_iter().map(block).collect();
        outline(&mut blocks);
        Words { blocks, confidence: seen.confidence(), doubtful: seen.doubtful, left_out: seen.left_out }
    }

    /// A single letter is usually a circle or a line.
    pub(super) fn says_anything(&self) -> bool {
        letters(&self.blocks) > 1
    }

    /// Warning about an incomplete result.
    pub(super) fn warning(&self) -> Option<&'static str> {
        match self {
            Words { doubtful: true, .. } => Some(DOUBTFUL),
            Words { left_out: 1.., .. } => Some("a picture has more lines than are read"),
            _ => None,
        }
    }

    /// The text of all blocks, one line each.
    pub(super) fn text(&self) -> String {
        let texts = self.blocks.iter().map(|block| block.text.as_str());
        texts.collect::<Vec<_>>().join("\n")
    }
}

impl Origin {
    pub(super) fn and(self, other: Origin) -> Origin {
        Origin { text: self.text || other.text, sight: self.sight || other.sight }
    }

    /// As defined by K-32.
    pub(super) fn method(self) -> Method {
        match self {
            Origin { sight: false, .. } => Method::TextExtraction,
            Origin { text: false, .. } => Method::Ocr,
            Origin { .. } => Method::Hybrid,
        }
    }
}

const DOUBTFUL: &str = "not all of the text was read: its script is not known here, or it is hardly legible; \
                        `ocr.engine: tesseract` knows more scripts";

fn block(Paragraph { text, kind, .. }: Paragraph) -> Block {
    match kind {
        ParagraphKind::Text => Block::paragraph(text),
        ParagraphKind::Table(rows) => Block::table(Table { rows, header_rows: 0 }),
        ParagraphKind::Heading => Block::heading(LEVEL, text),
    }
}

/// Number of letters and digits.
pub(super) fn letters(blocks: &[Block]) -> usize {
    let letters = |block: &Block| block.text.chars().filter(|letter| letter.is_alphanumeric()).count();
    blocks.iter().map(letters).sum()
}
