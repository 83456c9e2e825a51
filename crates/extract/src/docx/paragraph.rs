//! DOCX paragraphs and their inline content.

use super::part_reader::{PartReader, is_invisible};
use super::styles::{Run, Style, StyleRole, numbering};
use super::symbol::symbol;
use crate::ooxml::{Tag, Xml, math};
use crate::{Block, BlockKind, Error};

/// A paragraph under construction.
#[derive(Default)]
pub(super) struct ParagraphBuilder {
    /// Text boxes, charts and diagrams anchored to it.
    pub(super) after: Vec<Block>,
    text: String,
    style: Option<String>,
    list: Option<String>,
    depth: Option<u8>,
    outline: Option<u8>,
    /// Alternative text of the current drawing.
    description: Option<String>,
    pictures: usize,
    /// The position of each image in the paragraph: `None` before its text, `Some(n)` after its text and `n` of the
    /// `after` blocks.
    places: Vec<Option<usize>>,
}

/// Maximum nesting of fields. More are fields without an end.
const MAX_FIELD_DEPTH: usize = 64;

// === impl ===

impl PartReader<'_, '_> {
    pub(super) fn paragraph(&mut self, xml: &mut Xml<'_>) -> Result<(), Error> {
        // Field instructions do not span paragraphs. A field that never marks the start of its result would hide the
        // rest.
        self.fields.fill(true);
        let mut paragraph = ParagraphBuilder::default();
        let pictures = self.pictures().len();
        self.inline(xml, &mut paragraph)?;
        self.count_block()?;
        self.finish(paragraph, pictures);
        Ok(())
    }

    fn inline(&mut self, xml: &mut Xml<'_>, paragraph: &mut ParagraphBuilder) -> Result<(), Error> {
        while let Some(tag) = xml.child()? {
            match tag.name() {
                "t" => {
                    let text = xml.text()?;
                    if self.fields.iter().all(|result| *result) {
                        paragraph.text.push_str(&text);
                    }
                }
                "oMath" => math(xml, &mut paragraph.text)?,
                "pPr" => paragraph.read_properties(xml)?,
                "rPr" => {
                    let Run { style, hidden } = Run::read(xml)?;
                    if hidden.or_else(|| self.context.styles.hides(&style?)) == Some(true) {
                        return self.skip_hidden(xml, paragraph);
                    }
                }
                "docPr" => {
                    paragraph.description = alt_text(&tag, "descr").or_else(|| alt_text(&tag, "title"));
                    xml.skip()?;
                }
                name if is_invisible(name) => xml.skip()?,
                "AlternateContent" => self.read_alternate(xml, paragraph)?,
                "txbxContent" => {
                    let pictures = self.pictures().len();
                    let inner = self.inner(xml)?;
                    let before = paragraph.after.len();
                    paragraph.places.extend(self.pictures()[pictures..].iter().map(|image| Some(before + image.after)));
                    paragraph.after.extend(inner);
                }
                _ => {
                    self.start_element(&tag, paragraph)?;
                    self.inline(xml, paragraph)?;
                }
            }
        }
        Ok(())
    }

    /// Skips the rest of a hidden run. Fields may still begin and end in it.
    fn skip_hidden(&mut self, xml: &mut Xml<'_>, paragraph: &mut ParagraphBuilder) -> Result<(), Error> {
        while let Some(tag) = xml.child()? {
            if tag.name() == "fldChar" {
                self.start_element(&tag, paragraph)?;
            }
            xml.skip()?;
        }
        Ok(())
    }

    /// Handles the element itself, before its children.
    fn start_element(&mut self, tag: &Tag<'_>, paragraph: &mut ParagraphBuilder) -> Result<(), Error> {
        match tag.name() {
            "tab" | "ptab" => paragraph.text.push(' '),
            "br" | "cr" => paragraph.text.push('\n'),
            "noBreakHyphen" => paragraph.text.push('-'),
            "sym" => paragraph.text.extend(symbol(tag)),
            "fldChar" => match tag.get("fldCharType").as_deref() {
                Some("begin") if self.fields.len() < MAX_FIELD_DEPTH => self.fields.push(false),
                Some("begin") => {}
                Some("separate") => self.fields.iter_mut().last().into_iter().for_each(|result| *result = true),
                _ => drop(self.fields.pop()),
            },
            "oMathPara" => paragraph.text.push(' '),
            // A DrawingML paragraph.
            "p" => paragraph.text.push('\n'),
            "textpath" => paragraph.text.extend(tag.get("string").as_deref()),
            "shape" => paragraph.description = alt_text(tag, "alt"),
            "blip" | "imagedata" => {
                paragraph.pictures += 1;
                if let Some(id) = tag.relationship_id("embed").or_else(|| tag.relationship_id("id")) {
                    let pictures = self.pictures().len();
                    self.picture(&id, paragraph.description.take())?;
                    let says = !paragraph.text.trim().is_empty() || !paragraph.after.is_empty();
                    let place = says.then_some(paragraph.after.len());
                    paragraph.places.extend(self.pictures()[pictures..].iter().map(|_| place));
                }
            }
            "chart" => {
                if let Some(id) = tag.relationship_id("id") {
                    paragraph.after.extend(self.chart(&id)?);
                }
            }
            "relIds" => {
                if let Some(id) = tag.relationship_id("dm") {
                    paragraph.after.extend(self.diagram(&id)?);
                }
            }
            _ => self.record_reference(tag),
        }
        Ok(())
    }

    /// Reads the first alternative that has any content.
    fn read_alternate(&mut self, xml: &mut Xml<'_>, paragraph: &mut ParagraphBuilder) -> Result<(), Error> {
        let before = paragraph.extent();
        while xml.child()?.is_some() {
            if paragraph.extent() == before {
                self.inline(xml, paragraph)?;
            } else {
                xml.skip()?;
            }
        }
        Ok(())
    }

    /// Converts a paragraph to blocks. Its images start at index `pictures`.
    fn finish(&mut self, mut paragraph: ParagraphBuilder, pictures: usize) {
        let before = self.blocks.len();
        let style = paragraph.style.as_deref().map(|id| self.context.styles.get(id)).unwrap_or_default();
        if style.hidden == Some(true) {
            paragraph.text.clear();
        }
        let kind = self.kind(&paragraph, &style);
        match (&kind, self.blocks.last_mut()) {
            (BlockKind::Code, Some(last)) if last.kind == BlockKind::Code => {
                last.text.push('\n');
                last.text.push_str(paragraph.text.trim_end());
            }
            (BlockKind::Code, _) if !paragraph.text.trim().is_empty() => {
                self.blocks.push(Block::new(kind, paragraph.text.trim_end()));
            }
            (_, _) if paragraph.text.trim().is_empty() => {}
            (BlockKind::Heading { .. }, _) => {
                let text = paragraph.text.split_whitespace().collect::<Vec<_>>().join(" ");
                self.blocks.push(Block::new(kind, text));
            }
            _ => self.blocks.push(Block::new(kind, paragraph.text.trim())),
        }
        let behind = self.blocks.len();
        for (image, place) in self.pictures()[pictures..].iter_mut().zip(paragraph.places) {
            image.after = place.map_or(before, |after| behind + after);
        }
        self.blocks.extend(paragraph.after);
    }

    fn kind(&self, paragraph: &ParagraphBuilder, style: &Style) -> BlockKind {
        let role = match paragraph.outline {
            Some(level) if level < 9 => Some(StyleRole::Heading(level + 1)),
            _ => style.role,
        };
        let list = paragraph.list.as_ref().or(style.list.as_ref()).filter(|id| *id != "0");
        match role {
            Some(StyleRole::Heading(level)) => BlockKind::Heading { level: level.clamp(1, 6) },
            Some(StyleRole::Caption) => BlockKind::Caption,
            Some(StyleRole::Code) => BlockKind::Code,
            Some(StyleRole::Body) | None if list.is_some() => {
                let by_list = || self.context.numbering.depth(paragraph.style.as_deref()?);
                let depth = paragraph.depth.or(style.depth).or_else(by_list).filter(|depth| *depth > 0);
                BlockKind::ListItem { depth: depth.or(style.depth_by_name).unwrap_or(0) }
            }
            Some(StyleRole::Body) | None => BlockKind::Paragraph,
        }
    }
}

impl ParagraphBuilder {
    fn read_properties(&mut self, xml: &mut Xml<'_>) -> Result<(), Error> {
        while let Some(tag) = xml.child()? {
            match tag.name() {
                "pStyle" => self.style = tag.get("val").map(|id| id.into_owned()),
                "outlineLvl" => self.outline = tag.number("val"),
                "numPr" => {
                    (self.list, self.depth) = numbering(xml)?;
                    continue;
                }
                _ => {}
            }
            xml.skip()?;
        }
        Ok(())
    }

    fn extent(&self) -> (usize, usize, usize) {
        (self.text.trim_end().len(), self.after.len(), self.pictures)
    }
}

fn alt_text(tag: &Tag<'_>, name: &str) -> Option<String> {
    tag.get(name).map(|text| text.into_owned()).filter(|text| !text.trim().is_empty())
}
