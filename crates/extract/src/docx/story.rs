//! The text of one part: the body, a header, the notes.

use super::Context;
use super::remark::{References, Remark};
use crate::ooxml::{Package, Relations, Tag, Xml};
use crate::{Block, Error, Image, Page};

/// Walks a part and collects its blocks.
pub(super) struct Story<'s, 'a> {
    pub(super) blocks: Vec<Block>,
    pub(super) context: &'s Context,
    /// For every field that is open, whether its result has begun. Before that come its instructions.
    pub(super) fields: Vec<bool>,
    pub(super) references: References,
    /// How many blocks there are around each table or box that is being read, outermost first.
    around: Vec<usize>,
    package: &'s mut Package<'a>,
    relations: &'s Relations,
    page: &'s mut Page,
}

// === impl ===

impl<'s, 'a> Story<'s, 'a> {
    pub(super) fn new(
        package: &'s mut Package<'a>,
        context: &'s Context,
        relations: &'s Relations,
        page: &'s mut Page,
    ) -> Story<'s, 'a> {
        let (blocks, fields, references) = (Vec::new(), Vec::new(), References::new());
        Story { blocks, context, fields, references, around: Vec::new(), package, relations, page }
    }

    /// What stands in the element that was opened last, paragraph by paragraph.
    pub(super) fn body(&mut self, xml: &mut Xml<'_>) -> Result<(), Error> {
        while let Some(tag) = xml.child()? {
            match tag.name() {
                "p" => self.paragraph(xml)?,
                "tbl" => self.table(xml)?,
                name if is_no_text(name) => xml.skip()?,
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

    /// The blocks of the element that was opened last, kept apart from those around it.
    pub(super) fn inner(&mut self, xml: &mut Xml<'_>) -> Result<Vec<Block>, Error> {
        let around = self.enter();
        let outcome = self.body(xml);
        let inner = self.leave(around);
        outcome.map(|()| inner)
    }

    /// Begins to keep blocks apart from those so far.
    pub(super) fn enter(&mut self) -> Vec<Block> {
        self.around.push(self.blocks.len());
        std::mem::take(&mut self.blocks)
    }

    /// Goes on with the blocks around those that were kept apart.
    pub(super) fn leave(&mut self, around: Vec<Block>) -> Vec<Block> {
        self.around.pop();
        std::mem::replace(&mut self.blocks, around)
    }

    /// Takes note of a footnote or the like that the block to come refers to.
    pub(super) fn refer(&mut self, tag: &Tag<'_>) {
        if let Some(remark) = Remark::referred(tag) {
            self.references.insert(remark, self.around.first().copied().unwrap_or(self.blocks.len()));
        }
    }

    /// The number and the text of every item of a part, such as a note. Those that only draw a line say what they are.
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
            let text = plain(&self.inner(xml)?);
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

    /// The pictures so far. Those inside a table or a box say how many blocks of that are before them, until it is done.
    pub(super) fn pictures(&mut self) -> &mut [Image] {
        &mut self.page.images
    }

    pub(super) fn picture(&mut self, id: &str, description: Option<String>) -> Result<(), Error> {
        match self.relations.target(id) {
            Some(name) => self.package.picture(self.page, self.blocks.len(), name, description),
            None => Ok(()),
        }
    }

    /// The words of a chart that a paragraph shows.
    pub(super) fn chart(&mut self, id: &str) -> Result<Vec<Block>, Error> {
        self.relations.target(id).map_or(Ok(Vec::new()), |name| self.package.chart(name))
    }

    /// The words of a diagram that a paragraph shows.
    pub(super) fn diagram(&mut self, id: &str) -> Result<Vec<Block>, Error> {
        self.relations.target(id).map_or(Ok(Vec::new()), |name| self.package.diagram(name))
    }
}

/// The texts of blocks, by line.
pub(super) fn plain(blocks: &[Block]) -> String {
    blocks.iter().map(|block| block.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// Properties, deleted text and instructions: names that never lead to text that is shown.
pub(super) fn is_no_text(name: &str) -> bool {
    name.ends_with("Pr") || matches!(name, "del" | "moveFrom" | "instrText" | "delText" | "delInstrText" | "rt")
}
