//! Plain text: paragraphs separated by empty lines, pages by form feeds.

use crate::{Block, Error, Limits};

pub(super) fn pages(text: &str, limits: &Limits) -> Result<Vec<Vec<Block>>, Error> {
    let mut pages = Vec::new();
    let mut count = 0;
    for page in text.trim_end_matches(['\x0c', '\n', '\r']).split('\x0c') {
        let blocks = paragraphs(page, limits)?;
        count += blocks.len();
        limits.check_blocks(count)?;
        pages.push(blocks);
        if pages.len() > limits.pages as usize {
            return Err(Error::TooMuch { what: "pages", most: limits.pages.into() });
        }
    }
    Ok(pages)
}

fn paragraphs(page: &str, limits: &Limits) -> Result<Vec<Block>, Error> {
    let mut blocks = Vec::new();
    let mut paragraph = String::new();
    for line in page.lines() {
        if line.trim().is_empty() {
            blocks.extend(block(&mut paragraph));
            limits.check_blocks(blocks.len())?;
        } else {
            paragraph.push_str(line.trim_end());
            paragraph.push('\n');
        }
    }
    blocks.extend(block(&mut paragraph));
    Ok(blocks)
}

/// Line breaks are kept: the text may be a poem, an address or ASCII art.
fn block(paragraph: &mut String) -> Option<Block> {
    let text = std::mem::take(paragraph);
    let text = text.trim_end();
    (!text.is_empty()).then(|| Block::paragraph(text))
}
