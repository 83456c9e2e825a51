//! The text of a document as one string, with the positions of its blocks.

use std::ops::Range;

use crate::{Block, BlockKind, Document, Format, Page};

/// The input of chunking: the same string as [`Document::text`](crate::Document::text).
#[derive(Debug)]
pub struct DocumentText<'a> {
    text: String,
    /// The blocks that go into chunks, in order; none is empty.
    pub(super) blocks: Vec<PositionedBlock<'a>>,
}

/// A block and its position.
#[derive(Debug)]
pub(super) struct PositionedBlock<'a> {
    pub(super) block: &'a Block,
    /// Byte range in the document.
    pub(super) range: Range<usize>,
    pub(super) page: u32,
    /// Byte offset of the page in the document.
    pub(super) page_start: usize,
    /// It is the first block of a slide or a sheet. No chunk extends across it.
    pub(super) starts_page: bool,
    /// Byte range of the header rows in the document, for a table with more rows than those.
    pub(super) header: Option<Range<usize>>,
}

pub(super) const BETWEEN_BLOCKS: &str = "\n\n";
const BETWEEN_PAGES: &str = "\n\u{c}\n";

impl<'a> DocumentText<'a> {
    /// The text of a document. Each slide and each sheet has chunks of its own.
    pub fn of_document(document: &'a Document) -> DocumentText<'a> {
        let is_separate = matches!(document.format, Format::Pptx | Format::Xlsx);
        DocumentText::new(&document.pages, |page| is_separate || page.name.is_some())
    }

    /// The text of these pages. A page with a name is a slide or a sheet.
    pub fn of(pages: &'a [Page]) -> DocumentText<'a> {
        DocumentText::new(pages, |page| page.name.is_some())
    }

    fn new(pages: &'a [Page], is_separate: impl Fn(&Page) -> bool) -> DocumentText<'a> {
        let mut text = String::new();
        let mut blocks = Vec::new();
        for (index, page) in pages.iter().enumerate() {
            if index > 0 {
                text += BETWEEN_PAGES;
            }
            let page_start = text.len();
            for block in page.blocks.iter().filter(|block| !block.text.is_empty()) {
                let opens = text.len() == page_start && is_separate(page);
                if text.len() > page_start {
                    text += BETWEEN_BLOCKS;
                }
                let start = text.len();
                text += &block.text;
                let header = header_bytes(block).map(|bytes| start..start + bytes);
                blocks.push(PositionedBlock {
                    block,
                    range: start..text.len(),
                    page: page.number,
                    page_start,
                    starts_page: opens,
                    header,
                });
            }
        }
        // Keep the furniture of a file that has nothing except headers and footers.
        if blocks.iter().any(|placed| !placed.is_furniture()) {
            blocks.retain(|placed| !placed.is_furniture());
        }
        DocumentText { text, blocks }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The block that contains this byte, or the last block before it.
    pub(super) fn block_at(&self, at: usize) -> &PositionedBlock<'a> {
        let after = self.blocks.partition_point(|placed| placed.range.start <= at);
        &self.blocks[after.max(1) - 1]
    }

    /// The blocks that overlap a range of the document, with the overlap.
    pub(super) fn parts(&self, range: Range<usize>) -> impl Iterator<Item = (&PositionedBlock<'a>, Range<usize>)> {
        let first = self.blocks.partition_point(|placed| placed.range.end <= range.start);
        let touched = self.blocks[first..].iter().take_while(move |placed| placed.range.start < range.end);
        touched.map(move |placed| (placed, placed.range.start.max(range.start)..placed.range.end.min(range.end)))
    }
}

impl PositionedBlock<'_> {
    pub(super) fn is_furniture(&self) -> bool {
        self.block.kind == BlockKind::Furniture
    }

    pub(super) fn is_heading(&self) -> bool {
        matches!(self.block.kind, BlockKind::Heading { .. })
    }

    pub(super) fn is_table(&self) -> bool {
        matches!(self.block.kind, BlockKind::Table(_))
    }
}

/// Length of the header rows of a table in bytes.
fn header_bytes(block: &Block) -> Option<usize> {
    let BlockKind::Table(table) = &block.kind else { return None };
    // The text omits empty rows.
    let is_written = |row: &&Vec<String>| row.iter().any(|cell| !cell.trim().is_empty());
    let rows = table.rows.iter().take(table.header_rows).filter(is_written).count();
    let (end, _) = block.text.match_indices('\n').nth(rows.checked_sub(1)?)?;
    Some(end)
}
