//! Images on a sheet. Shapes and charts are skipped: charts repeat the cells.

use crate::ooxml::{Package, Relationships, Xml};
use crate::{Error, Page};

pub(super) fn read(package: &mut Package<'_>, relations: &Relationships, page: &mut Page) -> Result<(), Error> {
    for drawing in relations.of_kind("drawing") {
        let mut found = Vec::new();
        package.try_part(drawing, |xml| collect(xml, &mut None, &mut found))?;
        let targets = package.relationships(drawing)?;
        for (id, description) in found {
            if let Some(name) = targets.target(&id) {
                let behind_all_cells = page.blocks.len();
                package.picture(page, behind_all_cells, name, description)?;
            }
        }
    }
    Ok(())
}

/// Relationship IDs of images, each with the preceding description.
fn collect(
    xml: &mut Xml<'_>,
    description: &mut Option<String>,
    found: &mut Vec<(String, Option<String>)>,
) -> Result<(), Error> {
    while let Some(tag) = xml.child()? {
        match tag.name() {
            "cNvPr" => *description = tag.get("descr").map(|text| text.into_owned()),
            "blip" => found.extend(tag.relationship_id("embed").map(|id| (id.into_owned(), description.take()))),
            _ => {}
        }
        collect(xml, description, found)?;
    }
    Ok(())
}
