//! Heading paths of blocks.
//!
//! Format readers do not know the headings of earlier pages; this module sees all pages in order.

use crate::{Block, BlockKind, Page, Sink};

/// Maximum characters of a heading in a path: a heading of a megabyte would be repeated thousands of times.
const MAX_HEADING_CHARS: usize = 200;

/// The open headings, outermost first, with their levels.
#[derive(Debug, Default)]
pub(crate) struct OpenHeadings(Vec<(u8, String)>);

/// Sink adapter that sets the heading path of each block.
pub(crate) struct OutlineSink<'a> {
    sink: &'a mut dyn Sink,
    headings: OpenHeadings,
}

/// Sets the heading path of every block of a file or image.
pub fn outline(blocks: &mut [Block]) {
    let mut headings = OpenHeadings::default();
    blocks.iter_mut().for_each(|block| headings.assign_path(block));
}

impl OpenHeadings {
    /// Sets the path of a block. A heading closes headings of the same or a lower rank and opens itself.
    pub(crate) fn assign_path(&mut self, block: &mut Block) {
        if let BlockKind::Heading { level } = block.kind {
            self.0.retain(|(open, _)| *open < level);
        }
        // A path set by the format reader has priority; headers and footers have no path.
        if block.path.is_empty() && block.kind != BlockKind::Furniture {
            block.path = self.0.iter().map(|(_, text)| text.clone()).collect();
        }
        if let BlockKind::Heading { level } = block.kind {
            self.0.push((level, block.as_heading()));
        }
    }
}

impl Block {
    fn as_heading(&self) -> String {
        self.text.chars().take(MAX_HEADING_CHARS).collect()
    }

    /// The heading path for content directly after this block.
    pub fn path_after(&self) -> Vec<String> {
        let own = matches!(self.kind, BlockKind::Heading { .. }).then(|| self.as_heading());
        self.path.iter().cloned().chain(own).collect()
    }
}

impl<'a> OutlineSink<'a> {
    pub(crate) fn new(sink: &'a mut dyn Sink) -> OutlineSink<'a> {
        OutlineSink { sink, headings: OpenHeadings::default() }
    }
}

impl Sink for OutlineSink<'_> {
    fn pages(&mut self, count: u32) {
        self.sink.pages(count);
    }

    fn page(&mut self, mut page: Page) {
        page.blocks.iter_mut().for_each(|block| self.headings.assign_path(block));
        self.sink.page(page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Paths(Vec<Vec<String>>);

    impl Sink for Paths {
        fn page(&mut self, page: Page) {
            self.0.extend(page.blocks.into_iter().map(|block| block.path));
        }
    }

    #[test]
    fn a_heading_closes_those_that_are_not_above_it_on_every_page() {
        let mut paths = Paths::default();
        let mut outline = OutlineSink::new(&mut paths);
        let blocks = vec![
            Block::paragraph("before"),
            Block::heading(1, "a"),
            Block::heading(3, "b"),
            Block::paragraph("under b"),
            Block::heading(2, "c"),
        ];
        outline.page(Page { number: 1, blocks, ..Page::default() });
        let blocks = vec![Block::paragraph("under c"), Block::heading(1, "d"), Block::paragraph("under d")];
        outline.page(Page { number: 2, blocks, ..Page::default() });
        let wanted: [&[&str]; 8] = [&[], &[], &["a"], &["a", "b"], &["a"], &["a", "c"], &[], &["d"]];
        assert_eq!(paths.0, wanted);
    }

    #[test]
    fn a_long_heading_is_not_repeated_whole() {
        let mut blocks = [Block::heading(1, "é".repeat(5000)), Block::paragraph("below")];
        outline(&mut blocks);
        assert_eq!(blocks[1].path, ["é".repeat(200)]);
    }
}
