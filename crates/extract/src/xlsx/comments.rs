//! Cell comments, both legacy and threaded.

use super::strings::item;
use crate::ooxml::{Package, Relationships, Xml};
use crate::{Block, BlockKind, Error};

/// Placeholder text for programs that do not support threaded comments.
const THREADED_PLACEHOLDER: &str = "[Threaded comment]";

pub(super) fn read(package: &mut Package<'_>, relations: &Relationships) -> Result<Vec<Block>, Error> {
    let mut texts = Vec::new();
    for name in relations.of_kind("threadedComment") {
        package.try_part(name, |xml| collect(xml, &mut texts))?;
    }
    let is_conversation = !texts.is_empty();
    for name in relations.of_kind("comments") {
        package.try_part(name, |xml| collect(xml, &mut texts))?;
    }
    texts.retain(|(_, text)| !(is_conversation && text.starts_with(THREADED_PLACEHOLDER)));
    let mut blocks = Vec::new();
    for (cell, text) in texts {
        let text = format!("{cell}: {text}");
        package.count(&text)?;
        blocks.push(Block::new(BlockKind::Comment, text));
    }
    Ok(blocks)
}

/// Collects cell references and comment texts.
fn collect(xml: &mut Xml<'_>, texts: &mut Vec<(String, String)>) -> Result<(), Error> {
    while let Some(tag) = xml.child()? {
        if !matches!(tag.name(), "comment" | "threadedComment") {
            collect(xml, texts)?;
            continue;
        }
        let cell = tag.get("ref").unwrap_or_default().into_owned();
        let mut text = String::new();
        while let Some(inner) = xml.child()? {
            match (tag.name(), inner.name()) {
                ("comment", "text") => item(xml, &mut text)?,
                ("threadedComment", "text") => xml.append(&mut text)?,
                _ => xml.skip()?,
            }
        }
        if !text.trim().is_empty() {
            texts.push((cell, text.trim().to_owned()));
        }
    }
    Ok(())
}
