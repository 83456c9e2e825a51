//! Determines which schemas OpenAI accepts in strict mode.
//!
//! With `strict` the output is guaranteed to match. However, OpenAI accepts only closed schemas and rejects any other
//! schema instead of following it on a best-effort basis.

use serde_json::{Map, Value};

/// Keywords that make a schema unsupported at any level.
const UNSUPPORTED_KEYWORDS: [&str; 11] = [
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "prefixItems",
    "propertyNames",
];

/// Whether the schema is supported in strict mode.
pub(super) fn is_supported(schema: &Value) -> bool {
    schema["type"] == "object" && is_supported_subschema(schema)
}

fn is_supported_subschema(schema: &Value) -> bool {
    let Value::Object(schema) = schema else { return false };
    let typed = ["type", "$ref", "anyOf"].iter().any(|name| schema.contains_key(*name));
    if !typed || UNSUPPORTED_KEYWORDS.iter().any(|name| schema.contains_key(*name)) {
        return false;
    }
    if is_object(schema) && !is_closed(schema) {
        return false;
    }
    let named = ["properties", "$defs", "definitions"].iter().filter_map(|name| schema.get(*name)?.as_object());
    let listed = schema.get("anyOf").and_then(Value::as_array);
    named
        .flat_map(Map::values)
        .chain(listed.into_iter().flatten())
        .chain(schema.get("items"))
        .all(is_supported_subschema)
}

fn is_object(schema: &Map<String, Value>) -> bool {
    let is_object = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|name| name == "object"),
        Some(name) => name == "object",
        None => false,
    };
    is_object || schema.contains_key("properties")
}

/// Whether additional properties are disallowed and every property is required.
fn is_closed(schema: &Map<String, Value>) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &String| required.is_some_and(|required| required.iter().any(|other| other == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    schema.get("additionalProperties") == Some(&Value::Bool(false))
        && properties.is_none_or(|properties| properties.keys().all(is_required))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_schemas_without_open_ends_are_strict() {
        let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
            "additionalProperties": false});
        let list_of = |schema: &Value| {
            json!({"type": "object", "properties": {"list": {"type": "array", "items": schema}},
                "required": ["list"], "additionalProperties": false})
        };
        assert!(is_supported(&closed));
        assert!(is_supported(&list_of(&closed)));
        let with = |name: &str, value: Value| {
            let mut schema = closed.clone();
            schema[name] = value;
            schema
        };
        let open = [
            json!(true),
            json!({"type": "array", "items": closed}),
            json!({"anyOf": [closed]}),
            with("additionalProperties", json!(true)),
            with("required", json!([])),
            with("not", json!({"type": "string"})),
            with("properties", json!({"a": {}})),
        ];
        for schema in open {
            assert!(!is_supported(&schema), "{schema}");
            assert!(!is_supported(&list_of(&json!({"anyOf": [{"type": "null"}, with("required", json!([]))]}))));
        }
    }
}
