//! Annotations: form field values and comments.

use hayro_interpret::hayro_syntax::object::{Array, Dict, Name, Object, String as Bytes};
use hayro_interpret::hayro_syntax::page::Page;

use super::strings;
use crate::{Block, BlockKind};

/// Maximum nesting of form fields.
const MAX_FIELD_DEPTH: usize = 16;

/// Filled form fields and comments in file order, until they exceed `room` characters: a file can repeat one long
/// comment over many pages at almost no cost.
pub(super) fn annotations(page: &Page<'_>, room: u64) -> Vec<Block> {
    let Some(annotations) = page.raw().get::<Array<'_>>(b"Annots") else { return Vec::new() };
    let block = |annotation: Dict<'_>| match annotation.get::<Name<'_>>(b"Subtype")?.as_str() {
        "Widget" => field(&annotation, room),
        // The contents of a link repeat its target, those of a popup its comment.
        "Link" | "Popup" => None,
        _ => Some(Block::new(BlockKind::Comment, text(&annotation, b"Contents")?)),
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
    // The user-visible name, or the internal name if it looks like a word.
    let name = match inherited(widget, b"TU") {
        Some(Object::String(name)) => Some(strings::text(&name)),
        _ => text(widget, b"T").filter(|name| !name.contains(['[', '_', '#'])),
    };
    let text = match name.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
        Some(name) => format!("{name}: {value}"),
        None => value.to_owned(),
    };
    Some(Block::new(BlockKind::Field, text))
}

/// The choices of a list field, which may all refer to one long string, up to `room`.
fn list(values: &Array<'_>, room: u64) -> String {
    let mut text = String::new();
    for value in values.iter::<Bytes<'_>>() {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&strings::text(&value));
        // A character has at most four bytes.
        if text.len() as u64 / 4 > room {
            break;
        }
    }
    text
}

/// An entry of a field, or of its nearest ancestor.
fn inherited<'a>(field: &Dict<'a>, key: &[u8]) -> Option<Object<'a>> {
    let mut field = field.clone();
    for _ in 0..MAX_FIELD_DEPTH {
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
