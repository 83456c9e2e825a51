//! JSON as used by clients: with comments and trailing commas, which are preserved.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};
use serde_json::{Map, Value};

use super::{EditError, json_type_name};

/// The syntax that VS Code accepts. Accepting more would hide errors.
const PARSE_OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// An empty file is parsed as an empty object, because some programs create such files.
pub(super) fn value(text: &str, section: &str, name: &str) -> Result<Map<String, Value>, EditError> {
    let root = parse(text)?;
    match root.to_serde_value() {
        None => Ok(Map::new()),
        Some(Value::Object(all)) => {
            let object = root.object_value().ok_or(EditError::Unsafe)?;
            check_unique(&object, section)?;
            object.object_value(section).map_or(Ok(()), |servers| check_unique(&servers, name))?;
            Ok(all)
        }
        Some(other) => Err(EditError::NotAnObject { found: json_type_name(&other) }),
    }
}

pub(super) fn set(text: &str, section: &str, name: &str, entry: &Map<String, Value>) -> Result<String, EditError> {
    let root = parse(text)?;
    let servers = root.object_value_or_set().object_value_or_set(section);
    match servers.get(name) {
        None => {
            servers.append(name, to_cst(&entry.clone().into()));
        }
        Some(present) => match present.object_value() {
            None => present.set_value(to_cst(&entry.clone().into())),
            Some(object) => update(&object, entry),
        },
    }
    Ok(root.to_string())
}

pub(super) fn remove(text: &str, section: &str, name: &str) -> Result<String, EditError> {
    let root = parse(text)?;
    let servers = root.object_value().and_then(|all| all.object_value(section));
    if let Some(entry) = servers.and_then(|servers| servers.get(name)) {
        entry.remove();
    }
    Ok(root.to_string())
}

/// Changes only the members that differ.
fn update(object: &CstObject, entry: &Map<String, Value>) {
    let gone = |member: &CstObjectProp| member.decoded_name().is_some_and(|name| !entry.contains_key(&name));
    object.properties().into_iter().filter(gone).for_each(CstObjectProp::remove);
    for (key, value) in entry {
        match object.get(key) {
            Some(member) if member.to_serde_value().as_ref() == Some(value) => {}
            Some(member) => member.set_value(to_cst(value)),
            None => {
                object.append(key, to_cst(value));
            }
        }
    }
}

fn parse(text: &str) -> Result<CstRootNode, EditError> {
    CstRootNode::parse(text, &PARSE_OPTIONS).map_err(|error| EditError::Syntax {
        line: error.line_display(),
        column: error.column_display(),
        why: lowercase_first(&error.kind().to_string()),
    })
}

fn check_unique(object: &CstObject, key: &str) -> Result<(), EditError> {
    let of_that_name = |member: &CstObjectProp| member.decoded_name().as_deref() == Some(key);
    match object.properties().into_iter().filter(of_that_name).count() {
        0 | 1 => Ok(()),
        _ => Err(EditError::DuplicateKey { key: key.to_owned() }),
    }
}

fn to_cst(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(to_cst).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(key, value)| (key.clone(), to_cst(value))).collect())
        }
    }
}

fn lowercase_first(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}
