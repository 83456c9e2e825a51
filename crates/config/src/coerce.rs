//! Coerces strings to the types of the schema.
//!
//! Values of variables, flags and `${VAR}` are strings; whether `5` is a number depends on the key.

use std::path::Path;

use serde_json::{Number, Value};

use super::diagnostic::Origin;
use super::spanned_value::{SpannedValue, ValueData, to_integer_if_exact};
use super::{read, schema};

/// A string that does not fit stays a string, so that validation can report the expected type.
pub(super) fn coerce(text: &str, schema: Option<&Value>, origin: Origin) -> SpannedValue {
    let Some(schema) = schema else {
        return SpannedValue::string(text, origin);
    };
    let trimmed = text.trim();
    let data = if schema::allows(schema, "array") {
        list(trimmed, schema, &origin)
    } else if schema::allows(schema, "object") {
        map(trimmed, &origin)
    } else if schema::allows(schema, "boolean") {
        trimmed.parse().ok().map(ValueData::Bool)
    } else if schema::allows(schema, "integer") || schema::allows(schema, "number") {
        number(trimmed).map(ValueData::Number)
    } else {
        None
    };
    SpannedValue { data: data.unwrap_or_else(|| ValueData::text(text)), origin }
}

/// `["a", "b"]`, or `a, b`.
fn list(text: &str, schema: &Value, origin: &Origin) -> Option<ValueData> {
    // `[::1]:8090` also begins with a bracket but is not JSON.
    if let Some(list @ ValueData::List(_)) = json(text, origin) {
        return Some(list);
    }
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    Some(ValueData::List(items.map(|item| coerce(item, schema.get("items"), origin.clone())).collect()))
}

/// `{"key": 1}`, or `{key: 1}` as in YAML.
fn map(text: &str, origin: &Origin) -> Option<ValueData> {
    json(text, origin).or_else(|| {
        // The path only fills the locations, which are those of the variable.
        let read = text.starts_with('{').then(|| read::yaml(text, Path::new("")).ok())??;
        Some(SpannedValue::from_json(read.to_json(), origin.clone()).data)
    })
}

fn json(text: &str, origin: &Origin) -> Option<ValueData> {
    let value = serde_json::from_str(text).ok()?;
    Some(SpannedValue::from_json(value, origin.clone()).data)
}

fn number(text: &str) -> Option<Number> {
    let integer = text.parse::<i64>().ok().map(Number::from);
    integer.or_else(|| {
        // Rust also parses `inf` and `nan`, which are not numbers in a configuration.
        let float = text.parse::<f64>().ok().filter(|float| float.is_finite())?;
        Number::from_f64(float).map(to_integer_if_exact)
    })
}
