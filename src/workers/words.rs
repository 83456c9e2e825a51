//! The words of a picture, as blocks of a page.

use corbie_extract::{Block, Table};
use corbie_infer::ocr::{Paragraph, ParagraphKind, Recognised};
use serde::{Deserialize, Serialize};

/// What was read in a picture.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Words {
    /// In reading order.
    pub(super) blocks: Vec<Block>,
    /// From 0 to 1.
    pub(super) confidence: f32,
    /// A good part of what the picture says could not be read.
    pub(super) doubtful: bool,
    /// Lines that were too many to be read.
    pub(super) left_out: usize,
}

/// How deep the headings of a picture are: below those that the document itself has.
const LEVEL: u8 = 2;
/// As much of a heading stands in a path.
pub(super) const HEADING: usize = 200;

impl Words {
    pub(super) fn of(seen: &Recognised) -> Words {
        let mut path = Vec::new();
        let blocks = seen.paragraphs().into_iter().map(|paragraph| block(paragraph, &mut path)).collect();
        Words { blocks, confidence: seen.confidence(), doubtful: seen.doubtful, left_out: seen.left_out }
    }

    /// A single letter is a circle or a stroke.
    pub(super) fn says_anything(&self) -> bool {
        letters(&self.blocks) > 1
    }

    /// What did not go as it should.
    pub(super) fn warning(&self) -> Option<&'static str> {
        match self {
            Words { doubtful: true, .. } => Some(DOUBTFUL),
            Words { left_out: 1.., .. } => Some("a picture has more lines than are read"),
            _ => None,
        }
    }

    /// All of them, a line for each paragraph.
    pub(super) fn text(&self) -> String {
        let texts = self.blocks.iter().map(|block| block.text.as_str());
        texts.collect::<Vec<_>>().join("\n")
    }
}

const DOUBTFUL: &str = "not all of the text was read: its script is not known here, or it is hardly legible; \
                        `ocr.engine: tesseract` knows more scripts";

/// Under the heading before it, if there is one.
fn block(paragraph: Paragraph, path: &mut Vec<String>) -> Block {
    let Paragraph { text, kind, .. } = paragraph;
    let block = match kind {
        ParagraphKind::Text => Block::paragraph(text),
        ParagraphKind::Table(rows) => Block::table(Table { rows, header_rows: 0 }),
        ParagraphKind::Heading => {
            *path = vec![text.chars().take(HEADING).collect()];
            return Block::heading(LEVEL, text);
        }
    };
    Block { path: path.clone(), ..block }
}

/// How many letters and digits blocks have.
pub(super) fn letters(blocks: &[Block]) -> usize {
    let letters = |block: &Block| block.text.chars().filter(|letter| letter.is_alphanumeric()).count();
    blocks.iter().map(letters).sum()
}
