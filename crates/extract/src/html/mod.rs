//! HTML reader.
//!
//! Pages contain menus, notices and links in addition to their main content. Unless `full` is set, the reader extracts
//! only the main content, with the rules of the browsers' reader view. Pages without main content (a form, a list, a
//! start page) would lose nearly all their text, so the reader keeps the whole page if the main content is [too
//! short](is_incomplete).

mod ancestors;
pub(crate) mod attributes;
mod dom_to_blocks;
mod element_kind;
mod headings;
mod main_content;
mod metadata;
mod table;
mod tree;

use dom_to_blocks::ContentScope;

use crate::{Block, Error, Options, Page, Sink, Summary, encoding};

/// Maximum bytes of a block for main content detection. Longer blocks are not part of an article, and detection is
/// quadratic in their length.
const MAX_BLOCK_BYTES: usize = 256 << 10;

pub(crate) fn read(bytes: &[u8], options: &Options, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let document = tree::parse(&encoding::decode_html(bytes), &options.limits)?;
    let mut blocks = dom_to_blocks::blocks(&document, ContentScope::All, &options.limits)?;
    let title = metadata::title(&document);
    let reader = main_content::reader(document);
    let metadata = metadata::of(&reader, title.as_deref());
    if options.full {
        // The window title is part of the full text and the root of the headings.
        blocks.splice(0..0, title.map(|title| Block::heading(1, title)));
        // The title was not counted yet and may be as long as the file.
        if length(&blocks) as u64 > options.limits.characters {
            return Err(Error::TooMuch { what: "characters", most: options.limits.characters });
        }
    } else if !blocks.iter().any(|block| block.text.len() > MAX_BLOCK_BYTES)
        && let Some((main, title)) = main_content::find(reader, &options.limits)
    {
        let mut part = dom_to_blocks::blocks(&main, ContentScope::Article, &options.limits)?;
        if !is_incomplete(&part, &blocks) {
            headings::restore(&mut part, &blocks, &title);
            blocks = part;
        }
    }
    sink.pages(1);
    sink.page(Page { number: 1, blocks, ..Page::default() });
    Ok(Summary { metadata, ..Summary::default() })
}

/// Less than 100 bytes (a sentence or two), or less than a fiftieth of the page.
fn is_incomplete(part: &[Block], all: &[Block]) -> bool {
    let (part, all) = (length(part), length(all));
    part < 100 || part * 50 < all
}

fn length(blocks: &[Block]) -> usize {
    blocks.iter().map(|block| block.text.len()).sum()
}

#[cfg(test)]
mod tests;
