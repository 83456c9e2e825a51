//! Text of charts and diagrams, which are separate parts.
//!
//! A chart is represented by its titles. Its data is omitted: numbers and series names would outweigh the few words of
//! a slide. A diagram is represented as a list of the texts in its boxes.

use super::xml::{Xml, XmlEvent};
use crate::{Block, BlockKind, Error};

/// Maximum titles of a chart: its own, and one per axis.
const MAX_TITLES: usize = 50;

pub(crate) fn chart(xml: &mut Xml<'_>) -> Result<Vec<Block>, Error> {
    let mut titles = Vec::new();
    collect(xml, &mut titles)?;
    let caption = (!titles.is_empty()).then(|| Block::new(BlockKind::Caption, titles.join("\n")));
    Ok(caption.into_iter().collect())
}

pub(crate) fn diagram(xml: &mut Xml<'_>) -> Result<Vec<Block>, Error> {
    let mut blocks = Vec::new();
    loop {
        match xml.next()? {
            // The text of a point; all other elements describe its formatting.
            XmlEvent::Open(tag) if tag.name() == "t" => {
                let text = words(xml)?;
                if !text.is_empty() {
                    blocks.push(Block::new(BlockKind::ListItem { depth: 0 }, text));
                }
            }
            XmlEvent::End => return Ok(blocks),
            _ => {}
        }
    }
}

/// Collects the titles of a chart and its axes.
fn collect(xml: &mut Xml<'_>, titles: &mut Vec<String>) -> Result<(), Error> {
    while let Some(tag) = xml.child()? {
        match tag.name() {
            "title" => {
                let title = words(xml)?;
                if !title.is_empty() && titles.len() < MAX_TITLES && !titles.contains(&title) {
                    titles.push(title);
                }
            }
            // Data, and fallbacks for old programs.
            "ser" | "Fallback" | "externalData" | "f" => xml.skip()?,
            _ => collect(xml, titles)?,
        }
    }
    Ok(())
}

/// The text of the current element. Runs are concatenated; paragraphs and values are separated by a space.
fn words(xml: &mut Xml<'_>) -> Result<String, Error> {
    let mut text = String::new();
    gather(xml, &mut text)?;
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn gather(xml: &mut Xml<'_>, text: &mut String) -> Result<(), Error> {
    while let Some(tag) = xml.child()? {
        match tag.name() {
            "t" => text.push_str(&xml.text()?),
            "v" => {
                text.push_str(&xml.text()?);
                text.push(' ');
            }
            "f" => xml.skip()?,
            "p" | "br" => {
                text.push(' ');
                gather(xml, text)?;
            }
            _ => gather(xml, text)?,
        }
    }
    Ok(())
}
