//! PPTX reader. Each slide is a page, in presentation order, including hidden slides.
//!
//! Parses the XML itself, for the same reasons as the DOCX reader.

mod notes;
mod slide;
mod text;

use crate::ooxml::{Package, Relationships, Xml, outline};
use crate::{BlockKind, Error, ExtractionMethod, Options, Page, Sink, Summary, Warning};
use slide::Slide;

pub(crate) fn read(bytes: &[u8], options: &Options, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let mut package = Package::open(bytes, options)?;
    let main = package.main_part("ppt/presentation.xml")?;
    let relations = package.relationships(&main)?;
    let slides = slides(&mut package, &main, &relations)?;
    let most = u64::from(options.limits.pages);
    if slides.len() as u64 > most {
        return Err(Error::TooMuch { what: "slides", most });
    }
    sink.pages(slides.len() as u32);
    for (number, name) in (1..).zip(&slides) {
        let page = page(&mut package, number, name)?;
        sink.page(page);
    }
    Ok(Summary { metadata: package.metadata()?, method: ExtractionMethod::TextExtraction, warnings: package.warnings })
}

/// Part names of the slides, in order.
fn slides(package: &mut Package<'_>, main: &str, relations: &Relationships) -> Result<Vec<String>, Error> {
    let markup = package.markup(main)?.unwrap_or_default();
    let mut xml = Xml::new(&markup, main, &package.limits);
    match xml.child()? {
        Some(root) if root.name() == "presentation" => {}
        _ => return Err(Error::Corrupted("it contains no presentation".to_owned())),
    }
    let mut slides = Vec::new();
    while let Some(tag) = xml.child()? {
        if tag.name() != "sldIdLst" {
            xml.skip()?;
            continue;
        }
        while let Some(tag) = xml.child()? {
            let target = tag.relationship_id("id").and_then(|id| relations.target(&id).map(str::to_owned));
            slides.extend(target);
            xml.skip()?;
        }
    }
    Ok(slides)
}

/// Reads a slide. A corrupted slide gives a page with the readable part, and a warning.
fn page(package: &mut Package<'_>, number: u32, name: &str) -> Result<Page, Error> {
    let mut page = Page { number, ..Page::default() };
    let relations = package.relationships(name)?;
    let Some(markup) = package.markup(name)? else {
        package.warnings.push(Warning::on_page(number, "the slide is missing"));
        return Ok(page);
    };
    let limits = package.limits.clone();
    let mut xml = Xml::new(&markup, name, &limits);
    xml.child()?;
    let mut slide = Slide::new(package, &relations, &mut page);
    let outcome = slide.walk(&mut xml);
    let (titles, blocks) = (slide.titles, slide.blocks);
    match outcome {
        Err(Error::Corrupted(what)) => package.warnings.push(Warning::on_page(number, what)),
        outcome => outcome?,
    }
    page.images.iter_mut().for_each(|image| image.after += titles.len());
    page.blocks = titles;
    page.blocks.extend(blocks);
    page.blocks.extend(notes::read(package, &relations)?);
    page.name = page
        .blocks
        .iter()
        .find(|block| matches!(block.kind, BlockKind::Heading { .. }))
        .map(|title| title.text.clone());
    outline(&mut page.blocks);
    for block in &page.blocks {
        package.count(&block.text)?;
        block.path.iter().try_for_each(|heading| package.count(heading))?;
    }
    Ok(page)
}
