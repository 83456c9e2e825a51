//! Changes one entry in the text of a client's configuration file. Preserves the order, format and comments of
//! everything else.
//!
//! No I/O. The result is parsed and compared with the expected content before it is returned, so that a bug in this
//! module cannot corrupt a file.

mod json;
mod toml;

use serde_json::{Map, Value};

use super::OtherContent;

/// File format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientFileFormat {
    /// JSON, with comments and trailing commas.
    Json,
    Toml,
}

/// Why a text cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("line {line}, column {column}: {why}; correct the file and try again")]
    Syntax { line: usize, column: usize, why: String },
    #[error("the file contains {found} instead of an object; correct it, or specify another file with `--file`")]
    NotAnObject { found: &'static str },
    #[error("`{key}` is {found} instead of an object; correct it and try again")]
    NotASection { key: String, found: &'static str },
    #[error("duplicate key `{key}`; remove all but one")]
    DuplicateKey { key: String },
    #[error("file has mixed line endings; convert it to LF or CRLF and try again")]
    MixedLineEnds,
    #[error("the file cannot be edited safely; edit it manually")]
    Unsafe,
}

/// Members of an entry that starts a program, and of an entry with a URL. They exclude each other.
const STDIO_FIELDS: [&str; 4] = ["command", "args", "env", "cwd"];
const HTTP_FIELDS: [&str; 4] = ["url", "headers", "http_headers", "bearer_token_env_var"];
/// Byte order mark, written by some Windows editors.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The entry with this name, if it exists.
pub fn find(format: ClientFileFormat, text: &str, section: &str, name: &str) -> Result<Option<Value>, EditError> {
    let mut all = value(format, split_byte_order_mark(text).1, section, name)?;
    let section = all.get_mut(section).and_then(Value::as_object_mut);
    Ok(section.and_then(|section| section.remove(name)))
}

/// Content of the text other than the entry with this name.
pub fn other_content(
    format: ClientFileFormat,
    text: &str,
    section: &str,
    name: &str,
) -> Result<OtherContent, EditError> {
    let all = value(format, split_byte_order_mark(text).1, section, name)?;
    let servers = all.get(section).and_then(Value::as_object);
    let others = servers.map_or(0, |servers| servers.keys().filter(|key| *key != name).count());
    Ok(match others {
        0 if all.keys().all(|key| key == section) => OtherContent::Nothing,
        0 => OtherContent::Settings,
        others => OtherContent::Servers(others),
    })
}

/// Whether the section is an inline table in TOML.
pub fn is_inline(format: ClientFileFormat, text: &str, section: &str) -> bool {
    format == ClientFileFormat::Toml && toml::is_inline(split_byte_order_mark(text).1, section)
}

/// The text with this entry. Other members of an existing entry, such as `env`, are preserved.
pub fn set(
    format: ClientFileFormat,
    text: &str,
    section: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<String, EditError> {
    let (mark, body) = split_byte_order_mark(text);
    let mut expected = value(format, body, section, name)?;
    let servers = expected.entry(section).or_insert_with(|| Map::new().into());
    let Some(servers) = servers.as_object_mut() else { return Err(EditError::Unsafe) };
    let merged = merged(servers.get(name), entry);
    if servers.get(name).and_then(Value::as_object) == Some(&merged) {
        return Ok(text.to_owned());
    }
    let edited = match format {
        ClientFileFormat::Json => json::set(body, section, name, &merged),
        ClientFileFormat::Toml => toml::set(body, section, name, &merged),
    }?;
    servers.insert(name.to_owned(), merged.into());
    verify_edit(format, mark, edited, section, name, &expected)
}

/// The text without the entry. An empty section is kept.
pub fn remove(format: ClientFileFormat, text: &str, section: &str, name: &str) -> Result<String, EditError> {
    let (mark, body) = split_byte_order_mark(text);
    let mut expected = value(format, body, section, name)?;
    let servers = expected.get_mut(section).and_then(Value::as_object_mut);
    if servers.and_then(|servers| servers.remove(name)).is_none() {
        return Ok(text.to_owned());
    }
    let edited = match format {
        ClientFileFormat::Json => json::remove(body, section, name),
        ClientFileFormat::Toml => toml::remove(body, section, name),
    }?;
    verify_edit(format, mark, edited, section, name, &expected)
}

/// Parses the text and checks the types of its sections.
fn value(format: ClientFileFormat, text: &str, section: &str, name: &str) -> Result<Map<String, Value>, EditError> {
    let all = match format {
        ClientFileFormat::Json => json::value(text, section, name),
        ClientFileFormat::Toml => toml::value(text),
    }?;
    match all.get(section) {
        None | Some(Value::Object(_)) => Ok(all),
        Some(other) => Err(EditError::NotASection { key: section.to_owned(), found: json_type_name(other) }),
    }
}

fn verify_edit(
    format: ClientFileFormat,
    mark: &str,
    edited: String,
    section: &str,
    name: &str,
    expected: &Map<String, Value>,
) -> Result<String, EditError> {
    let says = value(format, &edited, section, name).map_err(|_| EditError::Unsafe)?;
    // In TOML, removing the last table of a section removes the section.
    let no_less = says == *expected || {
        let mut without = expected.clone();
        let emptied = without.remove(section);
        format == ClientFileFormat::Toml && emptied == Some(Map::new().into()) && says == without
    };
    match no_less {
        true => Ok(format!("{mark}{edited}")),
        false => Err(EditError::Unsafe),
    }
}

/// Our members, and present members that do not contradict them.
fn merged(present: Option<&Value>, ours: &Map<String, Value>) -> Map<String, Value> {
    let contradicting: &[&str] = if ours.contains_key("url") { &STDIO_FIELDS } else { &HTTP_FIELDS };
    let Some(present) = present.and_then(Value::as_object) else { return ours.clone() };
    let stays = |key: &str| match key {
        // The user may have selected tools.
        "tools" => true,
        "type" => ours.contains_key("type"),
        _ => !contradicting.contains(&key),
    };
    let mut merged: Map<_, _> = present.clone().into_iter().filter(|(key, _)| stays(key)).collect();
    for (key, value) in ours {
        if key != "tools" || !merged.contains_key(key) {
            merged.insert(key.clone(), value.clone());
        }
    }
    merged
}

fn split_byte_order_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 })
}

fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "`null`",
        Value::Bool(_) => "`true` or `false`",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
