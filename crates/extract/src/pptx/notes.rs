//! Speaker notes and comments.

use super::slide::Placeholder;
use super::text;
use crate::ooxml::{Package, Relationships, Xml};
use crate::{Block, BlockKind, Error};

pub(super) fn read(package: &mut Package<'_>, relations: &Relationships) -> Result<Vec<Block>, Error> {
    let mut blocks = Vec::new();
    for name in relations.of_kind("notesSlide") {
        let mut texts = Vec::new();
        package.try_part(name, |xml| notes(xml, &mut texts))?;
        blocks.extend(texts.into_iter().map(|text| Block::new(BlockKind::Note, text)));
    }
    for name in relations.of_kind("comments") {
        let mut texts = Vec::new();
        package.try_part(name, |xml| comments(xml, &mut texts))?;
        blocks.extend(texts.into_iter().map(|text| Block::new(BlockKind::Comment, text)));
    }
    Ok(blocks)
}

/// The text of all shapes of a notes page, except the slide number, the date and similar fields.
fn notes(xml: &mut Xml<'_>, texts: &mut Vec<String>) -> Result<(), Error> {
    while let Some(tag) = xml.child()? {
        if tag.name() != "sp" {
            notes(xml, texts)?;
            continue;
        }
        let mut furniture = false;
        let mut lines = Vec::new();
        while let Some(tag) = xml.child()? {
            match tag.name() {
                "nvSpPr" => furniture = is_furniture(xml)?,
                "txBody" => lines.extend(text::lines(xml)?.into_iter().map(|line| line.text)),
                _ => xml.skip()?,
            }
        }
        if !furniture && !lines.is_empty() {
            texts.push(lines.join("\n"));
        }
    }
    Ok(())
}

fn is_furniture(xml: &mut Xml<'_>) -> Result<bool, Error> {
    let mut furniture = false;
    while let Some(tag) = xml.child()? {
        furniture |= tag.name() == "ph" && Placeholder::of(&tag) == Placeholder::Furniture;
        furniture |= is_furniture(xml)?;
    }
    Ok(furniture)
}

/// Comments of both kinds: legacy comments have `text`, modern ones have paragraphs and replies.
fn comments(xml: &mut Xml<'_>, texts: &mut Vec<String>) -> Result<(), Error> {
    while let Some(tag) = xml.child()? {
        let text = match tag.name() {
            "text" => xml.text()?,
            "txBody" => text::lines(xml)?.into_iter().map(|line| line.text).collect::<Vec<_>>().join("\n"),
            _ => {
                comments(xml, texts)?;
                continue;
            }
        };
        if !text.trim().is_empty() {
            texts.push(text.trim().to_owned());
        }
    }
    Ok(())
}
