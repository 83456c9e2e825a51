//! Number formats of cell styles.

use std::collections::HashMap;
use std::rc::Rc;

use super::number_format::{self, NumberFormat};
use crate::Error;
use crate::ooxml::Xml;

/// Number formats by style ID. Shared, because a format may be long and used by any number of styles.
#[derive(Debug, Default)]
pub(super) struct Styles(Vec<Rc<NumberFormat>>);

// === impl ===

impl Styles {
    pub(super) fn read(xml: &mut Xml<'_>) -> Result<Styles, Error> {
        let mut forms: HashMap<u32, Rc<NumberFormat>> = HashMap::new();
        let mut styles = Vec::new();
        xml.child()?;
        while let Some(tag) = xml.child()? {
            match tag.name() {
                "numFmts" => {
                    while let Some(tag) = xml.child()? {
                        if let (Some(id), Some(code)) = (tag.number("numFmtId"), tag.get("formatCode")) {
                            forms.insert(id, Rc::new(NumberFormat::parse(&code)));
                        }
                        xml.skip()?;
                    }
                }
                "cellXfs" => {
                    while let Some(tag) = xml.child()? {
                        let id = tag.number("numFmtId").unwrap_or(0);
                        let form = forms.entry(id).or_insert_with(|| Rc::new(NumberFormat::built_in(id)));
                        styles.push(Rc::clone(form));
                        xml.skip()?;
                    }
                }
                _ => xml.skip()?,
            }
        }
        Ok(Styles(styles))
    }

    pub(super) fn form(&self, style: Option<usize>) -> &NumberFormat {
        style.and_then(|style| self.0.get(style)).map_or(&number_format::PLAIN, Rc::as_ref)
    }
}
