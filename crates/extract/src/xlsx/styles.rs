//! In which form the styles of cells show numbers.

use std::collections::HashMap;
use std::rc::Rc;

use super::form::{self, Form};
use crate::Error;
use crate::ooxml::Xml;

/// Forms by the number of a style. A form may be long, and as many styles as like may have it.
#[derive(Debug, Default)]
pub(super) struct Styles(Vec<Rc<Form>>);

// === impl ===

impl Styles {
    pub(super) fn read(xml: &mut Xml<'_>) -> Result<Styles, Error> {
        let mut forms: HashMap<u32, Rc<Form>> = HashMap::new();
        let mut styles = Vec::new();
        xml.child()?;
        while let Some(tag) = xml.child()? {
            match tag.name() {
                "numFmts" => {
                    while let Some(tag) = xml.child()? {
                        if let (Some(id), Some(code)) = (tag.number("numFmtId"), tag.get("formatCode")) {
                            forms.insert(id, Rc::new(Form::parse(&code)));
                        }
                        xml.skip()?;
                    }
                }
                "cellXfs" => {
                    while let Some(tag) = xml.child()? {
                        let id = tag.number("numFmtId").unwrap_or(0);
                        let form = forms.entry(id).or_insert_with(|| Rc::new(Form::built_in(id)));
                        styles.push(Rc::clone(form));
                        xml.skip()?;
                    }
                }
                _ => xml.skip()?,
            }
        }
        Ok(Styles(styles))
    }

    pub(super) fn form(&self, style: Option<usize>) -> &Form {
        style.and_then(|style| self.0.get(style)).map_or(&form::PLAIN, Rc::as_ref)
    }
}
