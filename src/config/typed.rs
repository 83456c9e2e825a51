//! Gives text the type that the schema asks for.
//!
//! Variables, flags and `${VAR}` are text; whether `5` is a number or a word depends on the key.

use serde_json::{Number, Value};

use super::problem::Origin;
use super::schema;
use super::tree::{Data, Node, whole};

/// Text that does not fit stays text, so that the check against the schema can say what was expected.
pub(super) fn typed(text: &str, schema: Option<&Value>, origin: Origin) -> Node {
    let Some(schema) = schema else {
        return Node::string(text, origin);
    };
    let trimmed = text.trim();
    let data = if schema::allows(schema, "array") {
        list(trimmed, schema, &origin)
    } else if schema::allows(schema, "object") {
        json(trimmed, &origin)
    } else if schema::allows(schema, "boolean") {
        trimmed.parse().ok().map(Data::Bool)
    } else if schema::allows(schema, "integer") || schema::allows(schema, "number") {
        number(trimmed).map(Data::Number)
    } else {
        None
    };
    Node { data: data.unwrap_or_else(|| Data::text(text)), origin }
}

/// `["a", "b"]`, or `a, b`.
fn list(text: &str, schema: &Value, origin: &Origin) -> Option<Data> {
    // `[::1]:8090` begins with a bracket too, and is no JSON.
    if let Some(list @ Data::List(_)) = json(text, origin) {
        return Some(list);
    }
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    Some(Data::List(items.map(|item| typed(item, schema.get("items"), origin.clone())).collect()))
}

fn json(text: &str, origin: &Origin) -> Option<Data> {
    let value = serde_json::from_str(text).ok()?;
    Some(Node::from_json(value, origin.clone()).data)
}

fn number(text: &str) -> Option<Number> {
    let integer = text.parse::<i64>().ok().map(Number::from);
    integer.or_else(|| {
        // Rust also reads `inf` and `nan`, which are no numbers in a configuration.
        let float = text.parse::<f64>().ok().filter(|float| float.is_finite())?;
        Number::from_f64(float).map(whole)
    })
}
