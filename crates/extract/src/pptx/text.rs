//! Paragraphs of a shape.

use crate::ooxml::{Xml, math};
use crate::{Block, BlockKind, Error};

/// A paragraph.
#[derive(Default)]
pub(super) struct SlideParagraph {
    pub(super) text: String,
    level: u8,
    /// Explicit bullet or numbering, if any.
    bullet: Option<bool>,
}

/// The non-empty paragraphs of the current element.
pub(super) fn lines(xml: &mut Xml<'_>) -> Result<Vec<SlideParagraph>, Error> {
    let mut lines = Vec::new();
    collect(xml, &mut lines)?;
    Ok(lines)
}

// === impl ===

impl SlideParagraph {
    /// Paragraphs in the body of a slide have bullets by default.
    pub(super) fn block(self, of_body: bool) -> Block {
        let listed = self.bullet.unwrap_or(of_body || self.level > 0);
        let kind = if listed { BlockKind::ListItem { depth: self.level } } else { BlockKind::Paragraph };
        Block::new(kind, self.text)
    }

    fn read_properties(&mut self, xml: &mut Xml<'_>) -> Result<(), Error> {
        while let Some(tag) = xml.child()? {
            match tag.name() {
                "buChar" | "buAutoNum" | "buBlip" => self.bullet = Some(true),
                "buNone" => self.bullet = Some(false),
                _ => {}
            }
            xml.skip()?;
        }
        Ok(())
    }
}

fn collect(xml: &mut Xml<'_>, lines: &mut Vec<SlideParagraph>) -> Result<(), Error> {
    while let Some(tag) = xml.child()? {
        if tag.name() != "p" {
            collect(xml, lines)?;
            continue;
        }
        let mut line = SlideParagraph::default();
        paragraph(xml, &mut line)?;
        line.text = line.text.trim().to_owned();
        if !line.text.is_empty() {
            lines.push(line);
        }
    }
    Ok(())
}

fn paragraph(xml: &mut Xml<'_>, line: &mut SlideParagraph) -> Result<(), Error> {
    while let Some(tag) = xml.child()? {
        match tag.name() {
            "pPr" => {
                line.level = tag.number("lvl").unwrap_or(0);
                line.read_properties(xml)?;
            }
            "t" => line.text.push_str(&xml.text()?.replace('\t', " ")),
            "oMath" => math(xml, &mut line.text)?,
            "br" => {
                line.text.push('\n');
                xml.skip()?;
            }
            "AlternateContent" => {
                let before = line.text.len();
                while xml.child()?.is_some() {
                    if line.text.len() == before {
                        paragraph(xml, line)?;
                    } else {
                        xml.skip()?;
                    }
                }
            }
            name if name.ends_with("Pr") => xml.skip()?,
            // Runs and fields.
            _ => paragraph(xml, line)?,
        }
    }
    Ok(())
}
