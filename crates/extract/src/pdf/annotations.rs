//! What is laid over a page: the values of form fields, and comments.

use hayro_interpret::hayro_syntax::object::{Array, Dict, Name, Object, String as Bytes};
use hayro_interpret::hayro_syntax::page::Page;

use super::strings;
use crate::{Block, Kind};

/// A form may nest its fields no deeper than this.
const DEEPEST: usize = 16;

/// Fields that are filled in and comments, in the order of the file, up to the first that has more characters than there is
/// room for: a file can lay one long comment over its pages again and again, at hardly any cost.
pub(super) fn annotations(page: &Page<'_>, room: u64) -> Vec<Block> {
    let Some(annotations) = page.raw().get::<Array<'_>>(b"Annots") else { return Vec::new() };
    let block = |annotation: Dict<'_>| match annotation.get::<Name<'_>>(b"Subtype")?.as_str() {
        "Widget" => field(&annotation, room),
        // A link's contents repeat where it leads, a popup's those of its comment.
        "Link" | "Popup" => None,
        _ => Some(Block::new(Kind::Comment, text(&annotation, b"Contents")?)),
    };
    let mut said = 0;
    let is_wanted = |block: &Block| {
        let fitted = said <= room;
        said += block.text.chars().count() as u64;
        fitted
    };
    annotations.iter::<Dict<'_>>().filter_map(block).take_while(is_wanted).collect()
}

fn field(widget: &Dict<'_>, room: u64) -> Option<Block> {
    let value = match inherited(widget, b"V")? {
        Object::String(value) => strings::text(&value),
        Object::Name(value) if value.as_str() != "Off" => value.as_str().to_owned(),
        Object::Array(values) => list(&values, room),
        _ => return None,
    };
    let value = value.trim();
    if value.is_empty() {
        return None;
    }
    // The name that people see, or the one that programs use where it looks like a word.
    let name = match inherited(widget, b"TU") {
        Some(Object::String(name)) => Some(strings::text(&name)),
        _ => text(widget, b"T").filter(|name| !name.contains(['[', '_', '#'])),
    };
    let text = match name.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
        Some(name) => format!("{name}: {value}"),
        None => value.to_owned(),
    };
    Some(Block::new(Kind::Field, text))
}

/// The choices of a list, which may all be one long string, until there is more than room for.
fn list(values: &Array<'_>, room: u64) -> String {
    let mut text = String::new();
    for value in values.iter::<Bytes<'_>>() {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&strings::text(&value));
        // A character has four bytes at most.
        if text.len() as u64 / 4 > room {
            break;
        }
    }
    text
}

/// An entry of a field, or of the nearest field it is a part of.
fn inherited<'a>(field: &Dict<'a>, key: &[u8]) -> Option<Object<'a>> {
    let mut field = field.clone();
    for _ in 0..DEEPEST {
        if let Some(object) = field.get::<Object<'a>>(key) {
            return Some(object);
        }
        field = field.get::<Dict<'a>>(b"Parent")?;
    }
    None
}

fn text(dict: &Dict<'_>, key: &[u8]) -> Option<String> {
    let text = strings::text(&dict.get::<Bytes<'_>>(key)?);
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
