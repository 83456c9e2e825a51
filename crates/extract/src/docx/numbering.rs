//! List depth of paragraph styles, for styles that leave the depth to the numbering definition.

use std::collections::HashMap;

use crate::Error;
use crate::ooxml::Xml;

/// List depth by style id.
#[derive(Debug, Default)]
pub(super) struct Numbering(HashMap<String, u8>);

// === impl ===

impl Numbering {
    pub(super) fn read(xml: &mut Xml<'_>) -> Result<Numbering, Error> {
        let mut depths = HashMap::new();
        walk(xml, 0, &mut depths)?;
        Ok(Numbering(depths))
    }

    pub(super) fn depth(&self, style: &str) -> Option<u8> {
        self.0.get(style).copied()
    }
}

fn walk(xml: &mut Xml<'_>, level: u8, depths: &mut HashMap<String, u8>) -> Result<(), Error> {
    while let Some(tag) = xml.child()? {
        match tag.name() {
            "lvl" => {
                let level = tag.number("ilvl").unwrap_or(0);
                walk(xml, level, depths)?;
            }
            "pStyle" => {
                if let Some(style) = tag.get("val") {
                    depths.insert(style.into_owned(), level);
                }
                xml.skip()?;
            }
            "rPr" | "pPr" => xml.skip()?,
            _ => walk(xml, level, depths)?,
        }
    }
    Ok(())
}
