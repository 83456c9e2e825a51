//! OCR result of an image, as blocks of a page.

use corbie_extract::{Block, ExtractionMethod, Table, outline};
use corbie_infer::ocr::{ImageText, Paragraph, ParagraphKind};
use serde::{Deserialize, Serialize};

/// Text recognized in an image.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct OcrText {
    /// In reading order.
    pub(super) blocks: Vec<Block>,
    /// From 0 to 1.
    pub(super) confidence: f32,
    /// Whether much of the image could not be recognized.
    pub(super) doubtful: bool,
    /// Number of lines beyond the limit.
    pub(super) skipped_lines: usize,
}

/// Origin of the text of a page or document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TextSource {
    pub(super) text: bool,
    pub(super) ocr: bool,
}

/// Heading level in an image: below the headings of the document.
const HEADING_LEVEL: u8 = 2;

impl OcrText {
    pub(super) fn of(seen: &ImageText) -> OcrText {
        let mut blocks: Vec<Block> = seen.paragraphs().into_iter().map(block).collect();
        outline(&mut blocks);
        OcrText { blocks, confidence: seen.confidence(), doubtful: seen.low_confidence, skipped_lines: seen.omitted }
    }

    /// A single letter is usually a circle or a line.
    pub(super) fn has_text(&self) -> bool {
        count_letters(&self.blocks) > 1
    }

    /// Warning about an incomplete result.
    pub(super) fn warning(&self) -> Option<&'static str> {
        match self {
            OcrText { doubtful: true, .. } => Some(UNRELIABLE_WARNING),
            OcrText { skipped_lines: 1.., .. } => Some("an image has too many lines; the rest was skipped"),
            _ => None,
        }
    }

    /// The text of all blocks, one line each.
    pub(super) fn text(&self) -> String {
        let texts = self.blocks.iter().map(|block| block.text.as_str());
        texts.collect::<Vec<_>>().join("\n")
    }
}

impl TextSource {
    pub(super) fn combine(self, other: TextSource) -> TextSource {
        TextSource { text: self.text || other.text, ocr: self.ocr || other.ocr }
    }

    /// As defined by K-32.
    pub(super) fn method(self) -> ExtractionMethod {
        match self {
            TextSource { ocr: false, .. } => ExtractionMethod::TextExtraction,
            TextSource { text: false, .. } => ExtractionMethod::Ocr,
            TextSource { .. } => ExtractionMethod::Hybrid,
        }
    }
}

const UNRELIABLE_WARNING: &str = "some text was not recognized: its script is not supported or it is hardly legible; \
`ocr.engine: tesseract` supports more scripts";

fn block(Paragraph { text, kind, .. }: Paragraph) -> Block {
    match kind {
        ParagraphKind::Text => Block::paragraph(text),
        ParagraphKind::Table(rows) => Block::table(Table { rows, header_rows: 0 }),
        ParagraphKind::Heading => Block::heading(HEADING_LEVEL, text),
    }
}

/// Number of letters and digits.
pub(super) fn count_letters(blocks: &[Block]) -> usize {
    let letters = |block: &Block| block.text.chars().filter(|letter| letter.is_alphanumeric()).count();
    blocks.iter().map(letters).sum()
}
