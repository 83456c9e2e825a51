//! Web pages.
//!
//! A page says much beside what it is about: menus, notices, links to other pages. Unless everything is wanted, its main
//! part is looked for by the rules of the browsers' reader view. Pages without one (a form, a list, a start page) would
//! lose nearly all they say, so all of it is taken where the part found is [too little](is_too_little).

mod around;
pub(crate) mod attributes;
mod grid;
mod headings;
mod main_part;
mod metadata;
mod names;
mod tree;
mod walk;

use walk::Wanted;

use crate::{Block, Error, Options, Page, Sink, Summary, encoding};

/// A longer block is no part of an article, and looking for one takes time by the square of its length.
const LONG: usize = 256 << 10;

pub(crate) fn read(bytes: &[u8], options: &Options, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let document = tree::parse(&encoding::decode_html(bytes), &options.limits)?;
    let mut blocks = walk::blocks(&document, Wanted::All, &options.limits)?;
    let title = metadata::title(&document);
    let reader = main_part::reader(document);
    let metadata = metadata::of(&reader, title.as_deref());
    if options.full {
        // What the window's frame says is a part of everything, and the root of the headings.
        blocks.splice(0..0, title.map(|title| Block::heading(1, title)));
        // It stands in no text that was counted, and may be as long as the file.
        if length(&blocks) as u64 > options.limits.characters {
            return Err(Error::TooMuch { what: "characters", most: options.limits.characters });
        }
    } else if !blocks.iter().any(|block| block.text.len() > LONG)
        && let Some((main, title)) = main_part::find(reader, &options.limits)
    {
        let mut part = walk::blocks(&main, Wanted::Article, &options.limits)?;
        if !is_too_little(&part, &blocks) {
            headings::restore(&mut part, &blocks, &title);
            blocks = part;
        }
    }
    sink.pages(1);
    sink.page(Page { number: 1, blocks, ..Page::default() });
    Ok(Summary { metadata, ..Summary::default() })
}

/// Fewer bytes than make a sentence or two, or not a fiftieth of what the page says.
fn is_too_little(part: &[Block], all: &[Block]) -> bool {
    let (part, all) = (length(part), length(all));
    part < 100 || part * 50 < all
}

fn length(blocks: &[Block]) -> usize {
    blocks.iter().map(|block| block.text.len()).sum()
}

#[cfg(test)]
mod tests;
