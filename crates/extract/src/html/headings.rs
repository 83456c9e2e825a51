//! Restores the original headings of the main content.
//!
//! A reader view shows the title above the article. It therefore removes the first heading that repeats the title, and
//! turns every `h1` into an `h2`. Both improve main content detection, so this module reverts them afterwards.

use std::collections::HashSet;

use crate::{Block, BlockKind};

pub(super) fn restore(part: &mut Vec<Block>, page: &[Block], title: &str) {
    let outermost: HashSet<&str> =
        page.iter().filter(|block| level(block) == Some(1)).map(|block| block.text.as_str()).collect();
    for block in part.iter_mut().filter(|block| outermost.contains(block.text.as_str())) {
        if let BlockKind::Heading { level } = &mut block.kind {
            *level = 1;
        }
    }
    let title = title.to_lowercase();
    let said: HashSet<&str> = words(&title).collect();
    let mut above = page.iter().filter(|block| level(block).is_some_and(|level| level <= 2));
    if let Some(headline) = above.find(|block| repeats(&said, &block.text))
        && !part.iter().any(|block| level(block).is_some() && block.text == headline.text)
    {
        part.insert(0, headline.clone());
    }
}

fn level(block: &Block) -> Option<u8> {
    match block.kind {
        BlockKind::Heading { level } => Some(level),
        _ => None,
    }
}

/// Whether more than three quarters of the heading are words of the title, as in reader views.
fn repeats(title: &HashSet<&str>, heading: &str) -> bool {
    let heading = heading.to_lowercase();
    let length = |words: &mut dyn Iterator<Item = &str>| words.map(str::len).sum::<usize>();
    let all = length(&mut words(&heading));
    all > 0 && length(&mut words(&heading).filter(|word| title.contains(word))) * 4 > all * 3
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
}
