//! Core properties: the metadata of a document.

use super::xml::Xml;
use crate::{Error, Metadata};

pub(super) fn read(xml: &mut Xml<'_>) -> Result<Metadata, Error> {
    let mut metadata = Metadata::default();
    xml.child()?;
    while let Some(tag) = xml.child()? {
        let place = match tag.name() {
            "title" => &mut metadata.title,
            "creator" => &mut metadata.author,
            "subject" => &mut metadata.subject,
            "language" => &mut metadata.language,
            "created" => &mut metadata.created,
            "modified" => &mut metadata.modified,
            _ => {
                xml.skip()?;
                continue;
            }
        };
        *place = Some(xml.text()?.trim().to_owned()).filter(|text| !text.is_empty());
    }
    Ok(metadata)
}
