//! Content of a slide: text shapes, groups, tables, charts, diagrams and images.
//!
//! Shapes are in file order, which screen readers use too; only the title comes first.

use super::text::{self, SlideParagraph};
use crate::ooxml::{Package, Relationships, Tag, Xml};
use crate::{Block, BlockKind, Error, Page, Table};

/// Traverses a slide and collects its blocks.
pub(super) struct Slide<'s, 'a> {
    pub(super) titles: Vec<Block>,
    pub(super) blocks: Vec<Block>,
    package: &'s mut Package<'a>,
    relations: &'s Relationships,
    page: &'s mut Page,
    pictures: usize,
    /// Alternative text of the current shape.
    description: Option<String>,
}

/// Placeholder type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Placeholder {
    Title,
    /// Its paragraphs have bullets by default.
    Body,
    /// Date, number, header and footer.
    Furniture,
    /// A subtitle, or no placeholder.
    Free,
}

// === impl ===

impl<'s, 'a> Slide<'s, 'a> {
    pub(super) fn new(package: &'s mut Package<'a>, relations: &'s Relationships, page: &'s mut Page) -> Slide<'s, 'a> {
        let (titles, blocks) = (Vec::new(), Vec::new());
        Slide { titles, blocks, package, relations, page, pictures: 0, description: None }
    }

    pub(super) fn walk(&mut self, xml: &mut Xml<'_>) -> Result<(), Error> {
        while let Some(tag) = xml.child()? {
            match tag.name() {
                "sp" | "cxnSp" => self.shape(xml)?,
                "tbl" => {
                    let table = table(xml)?;
                    self.package.count_cells(table.rows.iter().map(Vec::len).sum())?;
                    if table.rows.iter().flatten().any(|cell| !cell.is_empty()) {
                        self.blocks.push(Block::table(table));
                    }
                }
                "AlternateContent" => {
                    let before = self.extent();
                    while xml.child()?.is_some() {
                        if self.extent() == before {
                            self.walk(xml)?;
                        } else {
                            xml.skip()?;
                        }
                    }
                }
                "cNvPr" => {
                    self.describe(&tag);
                    xml.skip()?;
                }
                "timing" | "transition" | "extLst" => xml.skip()?,
                _ => {
                    self.mark(&tag)?;
                    self.walk(xml)?;
                }
            }
        }
        Ok(())
    }

    fn shape(&mut self, xml: &mut Xml<'_>) -> Result<(), Error> {
        let mut place = Placeholder::Free;
        while let Some(tag) = xml.child()? {
            match tag.name() {
                "nvSpPr" => place = self.place(xml)?,
                "txBody" => {
                    let lines = text::lines(xml)?;
                    self.package.count_blocks(lines.len())?;
                    self.put(place, lines);
                }
                // A shape can have an image fill.
                _ => self.walk(xml)?,
            }
        }
        Ok(())
    }

    fn place(&mut self, xml: &mut Xml<'_>) -> Result<Placeholder, Error> {
        let mut place = Placeholder::Free;
        while let Some(tag) = xml.child()? {
            match tag.name() {
                "ph" => {
                    place = Placeholder::of(&tag);
                    xml.skip()?;
                }
                "cNvPr" => {
                    self.describe(&tag);
                    xml.skip()?;
                }
                _ => {
                    let inner = self.place(xml)?;
                    if inner != Placeholder::Free {
                        place = inner;
                    }
                }
            }
        }
        Ok(place)
    }

    fn put(&mut self, place: Placeholder, lines: Vec<SlideParagraph>) {
        match place {
            Placeholder::Title => {
                let words = lines.iter().flat_map(|line| line.text.split_whitespace());
                let title = words.collect::<Vec<_>>().join(" ");
                if !title.is_empty() {
                    self.titles.push(Block::heading(1, title));
                }
            }
            Placeholder::Furniture => {
                let text = lines.into_iter().map(|line| line.text).collect::<Vec<_>>().join("\n");
                if !text.is_empty() {
                    self.blocks.push(Block::new(BlockKind::Furniture, text));
                }
            }
            Placeholder::Body | Placeholder::Free => {
                let of_body = place == Placeholder::Body;
                self.blocks.extend(lines.into_iter().map(|line| line.block(of_body)));
            }
        }
    }

    fn mark(&mut self, tag: &Tag<'_>) -> Result<(), Error> {
        match tag.name() {
            "blip" => {
                self.pictures += 1;
                if let Some(name) = tag.relationship_id("embed").and_then(|id| self.relations.target(&id)) {
                    self.package.picture(self.page, self.blocks.len(), name, self.description.take())?;
                }
            }
            "chart" => {
                if let Some(name) = tag.relationship_id("id").and_then(|id| self.relations.target(&id)) {
                    self.blocks.extend(self.package.chart(name)?);
                }
            }
            "relIds" => {
                if let Some(name) = tag.relationship_id("dm").and_then(|id| self.relations.target(&id)) {
                    self.blocks.extend(self.package.diagram(name)?);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn describe(&mut self, tag: &Tag<'_>) {
        let said = tag.get("descr").filter(|text| !text.is_empty()).or_else(|| tag.get("title"));
        self.description = said.map(|text| text.into_owned());
    }

    fn extent(&self) -> (usize, usize, usize) {
        (self.titles.len(), self.blocks.len(), self.pictures)
    }
}

impl Placeholder {
    pub(super) fn of(tag: &Tag<'_>) -> Placeholder {
        match tag.get("type").as_deref() {
            Some("title" | "ctrTitle") => Placeholder::Title,
            Some("dt" | "sldNum" | "ftr" | "hdr") => Placeholder::Furniture,
            Some("subTitle") => Placeholder::Free,
            _ => Placeholder::Body,
        }
    }
}

/// Cells covered by a merged cell are present and empty.
fn table(xml: &mut Xml<'_>) -> Result<Table, Error> {
    let mut table = Table::default();
    while let Some(tag) = xml.child()? {
        match tag.name() {
            "tblPr" => {
                table.header_rows = usize::from(tag.get("firstRow").is_some_and(|on| on == "1" || on == "true"));
                xml.skip()?;
            }
            "tr" => {
                let mut row = Vec::new();
                while let Some(tag) = xml.child()? {
                    if tag.name() == "tc" {
                        row.push(cell_text(xml)?);
                    } else {
                        xml.skip()?;
                    }
                }
                table.rows.push(row);
            }
            _ => xml.skip()?,
        }
    }
    table.header_rows = table.header_rows.min(table.rows.len());
    Ok(table)
}

fn cell_text(xml: &mut Xml<'_>) -> Result<String, Error> {
    let mut texts = Vec::new();
    while let Some(tag) = xml.child()? {
        if tag.name() == "txBody" {
            texts.extend(text::lines(xml)?.into_iter().map(|line| line.text));
        } else {
            xml.skip()?;
        }
    }
    Ok(texts.join("\n"))
}
