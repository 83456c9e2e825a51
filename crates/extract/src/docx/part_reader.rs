//! Reader for one part of a DOCX file: the body, a header, or the notes.

use super::Context;
use super::notes::{NoteKind, References};
use crate::ooxml::{Package, Relationships, Tag, Xml};
use crate::{Block, Error, Image, Page};

/// Traverses a part and collects its blocks.
pub(super) struct PartReader<'s, 'a> {
    pub(super) blocks: Vec<Block>,
    pub(super) context: &'s Context,
    /// For every open field, whether its result has begun. The instructions of the field come before that.
    pub(super) fields: Vec<bool>,
    pub(super) references: References,
    /// For every open table or text box, outermost first, the number of blocks before it.
    enclosing: Vec<usize>,
    package: &'s mut Package<'a>,
    relations: &'s Relationships,
    page: &'s mut Page,
}

// === impl ===

impl<'s, 'a> PartReader<'s, 'a> {
    pub(super) fn new(
        package: &'s mut Package<'a>,
        context: &'s Context,
        relations: &'s Relationships,
        page: &'s mut Page,
    ) -> PartReader<'s, 'a> {
        let (blocks, fields, references) = (Vec::new(), Vec::new(), References::new());
        PartReader { blocks, context, fields, references, enclosing: Vec::new(), package, relations, page }
    }

    /// Reads the blocks of the current element.
    pub(super) fn body(&mut self, xml: &mut Xml<'_>) -> Result<(), Error> {
        while let Some(tag) = xml.child()? {
            match tag.name() {
                "p" => self.paragraph(xml)?,
                "tbl" => self.table(xml)?,
                name if is_invisible(name) => xml.skip()?,
                "AlternateContent" => {
                    let before = self.blocks.len();
                    while let Some(tag) = xml.child()? {
                        if tag.name() == "Fallback" && self.blocks.len() > before {
                            xml.skip()?;
                        } else {
                            self.body(xml)?;
                        }
                    }
                }
                _ => self.body(xml)?,
            }
        }
        Ok(())
    }

    /// Reads the blocks of the current element into a separate list.
    pub(super) fn inner(&mut self, xml: &mut Xml<'_>) -> Result<Vec<Block>, Error> {
        let around = self.enter();
        let outcome = self.body(xml);
        let inner = self.leave(around);
        outcome.map(|()| inner)
    }

    /// Starts a separate block list and returns the outer one.
    pub(super) fn enter(&mut self) -> Vec<Block> {
        self.enclosing.push(self.blocks.len());
        std::mem::take(&mut self.blocks)
    }

    /// Restores the outer block list and returns the inner one.
    pub(super) fn leave(&mut self, around: Vec<Block>) -> Vec<Block> {
        self.enclosing.pop();
        std::mem::replace(&mut self.blocks, around)
    }

    /// Records a reference from the next block to a footnote, endnote or comment.
    pub(super) fn record_reference(&mut self, tag: &Tag<'_>) {
        if let Some(remark) = NoteKind::from_reference(tag) {
            self.references.insert(remark, self.enclosing.first().copied().unwrap_or(self.blocks.len()));
        }
    }

    /// Reads the id and text of every item in a part, such as a note. Skips separator items, which have a `type`.
    pub(super) fn items(
        &mut self,
        xml: &mut Xml<'_>,
        item: &str,
        texts: &mut Vec<(Option<i64>, String)>,
    ) -> Result<(), Error> {
        while let Some(tag) = xml.child()? {
            if tag.name() != item {
                self.items(xml, item, texts)?;
                continue;
            }
            if tag.get("type").is_some_and(|kind| kind != "normal") {
                xml.skip()?;
                continue;
            }
            let id = tag.number("id");
            let pictures = self.pictures().len();
            let text = join_text(&self.inner(xml)?);
            if !text.is_empty() {
                texts.push((id, text));
            }
            self.pictures()[pictures..].iter_mut().for_each(|image| image.after = texts.len());
        }
        Ok(())
    }

    pub(super) fn count_block(&mut self) -> Result<(), Error> {
        self.package.count_blocks(1)
    }

    pub(super) fn count_cells(&mut self, more: usize) -> Result<(), Error> {
        self.package.count_cells(more)
    }

    /// The images so far. Until a table or text box ends, `after` of its images counts blocks inside it.
    pub(super) fn pictures(&mut self) -> &mut [Image] {
        &mut self.page.images
    }

    pub(super) fn picture(&mut self, id: &str, description: Option<String>) -> Result<(), Error> {
        match self.relations.target(id) {
            Some(name) => self.package.picture(self.page, self.blocks.len(), name, description),
            None => Ok(()),
        }
    }

    /// The text of a chart in a paragraph.
    pub(super) fn chart(&mut self, id: &str) -> Result<Vec<Block>, Error> {
        self.relations.target(id).map_or(Ok(Vec::new()), |name| self.package.chart(name))
    }

    /// The text of a diagram in a paragraph.
    pub(super) fn diagram(&mut self, id: &str) -> Result<Vec<Block>, Error> {
        self.relations.target(id).map_or(Ok(Vec::new()), |name| self.package.diagram(name))
    }
}

/// The block texts, one per line.
pub(super) fn join_text(blocks: &[Block]) -> String {
    blocks.iter().map(|block| block.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// Whether an element never contains visible text: properties, deleted text and field instructions.
pub(super) fn is_invisible(name: &str) -> bool {
    name.ends_with("Pr") || matches!(name, "del" | "moveFrom" | "instrText" | "delText" | "delInstrText" | "rt")
}
