//! DOCX reader. A document is one page, because page breaks are decided at print time.
//!
//! This module parses the markup itself instead of using an office document library. The library that was measured
//! takes most of a minute to build, because it also writes, converts and decrypts documents, and it opens archives with
//! its own limits.

mod notes;
mod numbering;
mod paragraph;
mod part_reader;
mod styles;
mod symbol;
mod table;

use std::collections::HashSet;

use crate::ooxml::{Package, Relationships, Xml, outline};
use crate::{Block, BlockKind, Error, ExtractionMethod, Metadata, Options, Page, Sink, Summary, Warning};
use notes::{NoteKind, References};
use numbering::Numbering;
use part_reader::PartReader;
use styles::Styles;

/// State shared by all parts of a document.
#[derive(Default)]
struct Context {
    styles: Styles,
    numbering: Numbering,
}

pub(crate) fn read(bytes: &[u8], options: &Options, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let mut package = Package::open(bytes, options)?;
    let main = package.main_part("word/document.xml")?;
    sink.pages(1);
    let (page, metadata) = page(&mut package, &main)?;
    sink.page(page);
    Ok(Summary { metadata, method: ExtractionMethod::TextExtraction, warnings: package.warnings })
}

fn page(package: &mut Package<'_>, main: &str) -> Result<(Page, Metadata), Error> {
    let relations = package.relationships(main)?;
    let mut context = Context::default();
    if let Some(name) = relations.of_kind("styles").next() {
        context.styles = package.try_part(name, Styles::read)?;
    }
    if let Some(name) = relations.of_kind("numbering").next() {
        context.numbering = package.try_part(name, Numbering::read)?;
    }
    if relations.of_kind("aFChunk").next().is_some() {
        let message = "an embedded file of another format was skipped";
        package.warnings.push(Warning::on_page(1, message));
    }
    let mut page = Page { number: 1, ..Page::default() };
    let references = body(package, &context, &relations, main, &mut page)?;
    outline(&mut page.blocks);
    let mut remarks: Vec<Block> = Vec::new();
    for remark in [NoteKind::Footnote, NoteKind::Endnote, NoteKind::Comment] {
        let kind = if remark == NoteKind::Comment { BlockKind::Comment } else { BlockKind::Note };
        for name in relations.of_kind(&format!("{}s", remark.name())) {
            let (pictures, before) = (page.images.len(), page.blocks.len() + remarks.len());
            for (id, text) in read_items(package, &context, name, remark.name(), &mut page)? {
                let about = id.and_then(|id| references.get(&(remark, id)));
                let path = about.and_then(|about| page.blocks.get(*about)).map(|block| block.path.clone());
                remarks.push(Block { path: path.unwrap_or_default(), ..Block::new(kind.clone(), text) });
            }
            page.images[pictures..].iter_mut().for_each(|image| image.after += before);
        }
    }
    page.blocks.extend(remarks);
    let mut furniture = Vec::new();
    let mut seen = HashSet::new();
    for (kind, item) in [("header", "hdr"), ("footer", "ftr")] {
        for name in relations.of_kind(kind) {
            let pictures = page.images.len();
            for (_, text) in read_items(package, &context, name, item, &mut page)? {
                // Each section has its own headers and footers, mostly with the same text.
                if seen.insert(text.clone()) {
                    furniture.push(Block::new(BlockKind::Furniture, text));
                }
            }
            let behind = page.blocks.len() + furniture.len();
            page.images[pictures..].iter_mut().for_each(|image| image.after = behind);
        }
    }
    page.blocks.extend(furniture);
    // A part that is corrupted inside a table or a text box leaves images with an unresolved position.
    page.images.iter_mut().for_each(|image| image.after = image.after.min(page.blocks.len()));
    for block in &page.blocks {
        package.count(&block.text)?;
        block.path.iter().try_for_each(|heading| package.count(heading))?;
    }
    Ok((page, package.metadata()?))
}

fn body(
    package: &mut Package<'_>,
    context: &Context,
    relations: &Relationships,
    main: &str,
    page: &mut Page,
) -> Result<References, Error> {
    let markup = package.markup(main)?.unwrap_or_default();
    let limits = package.limits.clone();
    let mut xml = Xml::new(&markup, main, &limits);
    match xml.child()? {
        Some(root) if root.name() == "document" => {}
        _ => return Err(Error::Corrupted("it contains no word processing document".to_owned())),
    }
    let mut story = PartReader::new(package, context, relations, page);
    let outcome = story.body(&mut xml);
    let (blocks, references) = (story.blocks, story.references);
    page.blocks = blocks;
    match outcome {
        // Keep the blocks before the corruption.
        Err(Error::Corrupted(what)) if !page.blocks.is_empty() => package.warnings.push(Warning::on_page(1, what)),
        outcome => outcome?,
    }
    Ok(references)
}

/// The texts of the items in a part other than the body, each with the id by which the body refers to it. Such a part
/// may be corrupted or missing.
fn read_items(
    package: &mut Package<'_>,
    context: &Context,
    name: &str,
    item: &str,
    page: &mut Page,
) -> Result<Vec<(Option<i64>, String)>, Error> {
    let relations = package.relationships(name)?;
    let Some(markup) = package.markup(name)? else { return Ok(Vec::new()) };
    let limits = package.limits.clone();
    let mut xml = Xml::new(&markup, name, &limits);
    let mut texts = Vec::new();
    let mut story = PartReader::new(package, context, &relations, page);
    let outcome = story.items(&mut xml, item, &mut texts);
    package.error_to_warning(outcome)?;
    Ok(texts)
}
