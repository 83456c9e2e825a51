//! TOML editing that preserves tables and comments.

use serde_json::{Map, Value};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike};

use super::EditError;

pub(super) fn value(text: &str) -> Result<Map<String, Value>, EditError> {
    parse(text)?;
    let table: toml::Table = toml::from_str(text).map_err(|_| EditError::Unsafe)?;
    match serde_json::to_value(table) {
        Ok(Value::Object(all)) => Ok(all),
        _ => Err(EditError::Unsafe),
    }
}

pub(super) fn set(text: &str, section: &str, name: &str, entry: &Map<String, Value>) -> Result<String, EditError> {
    edit_document(text, |document| {
        let is_first = document.is_empty();
        let servers = document.entry(section).or_insert_with(implicit);
        let is_inline = servers.is_inline_table();
        let servers = servers.as_table_like_mut().ok_or(EditError::Unsafe)?;
        match servers.get_mut(name).and_then(Item::as_table_like_mut) {
            Some(present) => update(present, entry),
            None => {
                let mut table = Table::new();
                if !is_first {
                    table.decor_mut().set_prefix("\n");
                }
                update(&mut table, entry);
                let table = if is_inline { table.into_inline_table().into() } else { Item::Table(table) };
                servers.insert(name, table);
            }
        }
        Ok(())
    })
}

/// Whether all servers are in one inline table, which cannot be extended by another table.
pub(super) fn is_inline(text: &str, section: &str) -> bool {
    parse(text).is_ok_and(|document| document.get(section).is_some_and(Item::is_inline_table))
}

pub(super) fn remove(text: &str, section: &str, name: &str) -> Result<String, EditError> {
    edit_document(text, |document| {
        document.get_mut(section).and_then(Item::as_table_like_mut).and_then(|servers| servers.remove(name));
        Ok(())
    })
}

/// The text after a change. Restores CRLF line endings, which the library does not preserve.
fn edit_document(
    text: &str,
    change: impl FnOnce(&mut DocumentMut) -> Result<(), EditError>,
) -> Result<String, EditError> {
    let (ends, of_windows) = (text.matches('\n').count(), text.matches("\r\n").count());
    if of_windows != 0 && of_windows != ends {
        return Err(EditError::MixedLineEnds);
    }
    let mut document = parse(&text.replace("\r\n", "\n"))?;
    change(&mut document)?;
    let text = document.to_string();
    Ok(if of_windows != 0 { text.replace('\n', "\r\n") } else { text })
}

/// Changes only the members that differ.
fn update(table: &mut dyn TableLike, entry: &Map<String, Value>) {
    let gone: Vec<String> =
        table.iter().map(|(key, _)| key.to_owned()).filter(|key| !entry.contains_key(key)).collect();
    for key in gone {
        table.remove(&key);
    }
    for (key, value) in entry {
        // Only strings and lists of strings are compared, because entries contain no other values of ours.
        let Some(value) = from_json(value) else { continue };
        match table.get_mut(key) {
            Some(present) if same(present, &value) => {}
            Some(present) => *present = Item::Value(value),
            None => {
                table.insert(key, Item::Value(value));
            }
        }
    }
}

/// Strings and lists of strings, the only values in our entries.
fn from_json(value: &Value) -> Option<toml_edit::Value> {
    match value {
        Value::String(text) => Some(text.as_str().into()),
        Value::Array(items) => {
            let items: Option<Array> = items.iter().map(|item| item.as_str()).collect();
            Some(items?.into())
        }
        _ => None,
    }
}

fn same(present: &Item, value: &toml_edit::Value) -> bool {
    let texts = |value: &toml_edit::Value| match value {
        toml_edit::Value::String(text) => Some(vec![text.value().clone()]),
        toml_edit::Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => None,
    };
    present.as_value().is_some_and(|present| present.is_str() == value.is_str() && texts(present) == texts(value))
}

/// An implicit table: it has no header, only subtables.
fn implicit() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

fn parse(text: &str) -> Result<DocumentMut, EditError> {
    text.parse::<DocumentMut>().map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        EditError::Syntax {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            why: error.message().trim().replace('\n', ", "),
        }
    })
}
