//! Human-readable description of the type that the schema expects.

use serde_json::Value;

use super::schema::{FORMATS, allows, choices};
use super::spanned_value::ValueData;

/// `must be a whole number from 1 to 1000, not a list`.
pub(super) fn mismatch_message(schema: &Value, found: &ValueData) -> String {
    let expected = expected(schema);
    let (kind, word) = type_names(found);
    let kind_fits = allows(schema, kind) || (kind == "integer" && allows(schema, "number"));
    if kind_fits || schema.get("type").is_none() {
        return format!("must be {expected}");
    }
    let quotes = match found {
        ValueData::Bool(_) | ValueData::Number(_) if allows(schema, "string") => "; put it in quotes",
        _ => "",
    };
    format!("must be {expected}, not {word}{quotes}")
}

fn expected(schema: &Value) -> String {
    let format = schema.get("format").and_then(Value::as_str);
    if let Some(format) = FORMATS.iter().find(|known| Some(known.name) == format) {
        return format.expected.into();
    }
    let choices = choices(schema);
    if !choices.is_empty() {
        return one_of(&choices);
    }
    if allows(schema, "array") {
        return match schema.get("items").filter(|items| items.get("format").is_some()) {
            Some(items) => format!("a list of {}", expected(items).trim_start_matches("a ").trim_start_matches("an ")),
            None => "a list".into(),
        };
    }
    if allows(schema, "object") {
        return "a section (mapping)".into();
    }
    if allows(schema, "boolean") {
        return "`true` or `false`".into();
    }
    if allows(schema, "integer") {
        return format!("an integer{}", range(schema));
    }
    if allows(schema, "number") {
        return format!("a number{}", range(schema));
    }
    match (limit(schema, "minLength"), limit(schema, "maxLength")) {
        (Some(least), Some(most)) => format!("a string of {least} to {most} characters"),
        _ => "text".into(),
    }
}

fn range(schema: &Value) -> String {
    match (limit(schema, "minimum"), limit(schema, "maximum")) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(" of at least {least}"),
        (None, Some(most)) => format!(" of at most {most}"),
        (None, None) => String::new(),
    }
}

fn limit(schema: &Value, key: &str) -> Option<String> {
    schema.get(key).map(Value::to_string)
}

fn one_of(choices: &[&str]) -> String {
    let quoted: Vec<String> = choices.iter().map(|choice| format!("`{choice}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

fn type_names(data: &ValueData) -> (&'static str, &'static str) {
    match data {
        ValueData::Null => ("null", "empty"),
        ValueData::Bool(_) => ("boolean", "a boolean"),
        ValueData::Number(number) if number.as_f64().is_some_and(|float| float.fract() != 0.0) => {
            ("number", "a decimal number")
        }
        ValueData::Number(_) => ("integer", "a number"),
        ValueData::String(_) => ("string", "text"),
        ValueData::List(_) => ("array", "a list"),
        ValueData::Map(_) => ("object", "a section"),
    }
}
