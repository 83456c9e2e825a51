//! Generates a minimal JSON value that matches a schema.

use serde_json::{Map, Value, json};

/// Maximum number of generated values. A recursive schema would otherwise never terminate.
const MAX_VALUES: usize = 256;

/// A small value that matches a schema. Supports types, required properties, minimum lengths and values, enums and
/// local references; does not support patterns and formats.
pub(super) fn minimal_value(schema: &Value) -> Value {
    value_for(schema, schema, &mut { MAX_VALUES })
}

fn value_for(schema: &Value, root: &Value, left: &mut usize) -> Value {
    if *left == 0 {
        return Value::Null;
    }
    *left -= 1;
    let first = |name: &str| schema[name].as_array().and_then(|choices| choices.first());
    if let Some(value) = schema.get("const").or_else(|| first("enum")) {
        return value.clone();
    }
    if let Some(target) = schema["$ref"].as_str().and_then(|path| root.pointer(path.strip_prefix('#')?)) {
        return value_for(target, root, left);
    }
    if let Some(choice) = first("anyOf").or_else(|| first("oneOf")).or_else(|| first("allOf")) {
        return value_for(choice, root, left);
    }
    match first("type").unwrap_or(&schema["type"]).as_str() {
        Some("string") => "x".repeat(min_length(schema, "minLength")).into(),
        Some("integer" | "number") => match &schema["minimum"] {
            Value::Number(least) => least.clone().into(),
            _ => json!(0),
        },
        Some("boolean") => json!(false),
        Some("array") => (0..min_length(schema, "minItems"))
            .map_while(|_| (*left > 0).then(|| value_for(&schema["items"], root, left)))
            .collect(),
        Some("null") => Value::Null,
        // A schema without a type also allows an object.
        _ => object(schema, root, left),
    }
}

fn object(schema: &Value, root: &Value, left: &mut usize) -> Value {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut member = |name: &Value| {
        let name = name.as_str()?;
        Some((name.to_owned(), value_for(&schema["properties"][name], root, left)))
    };
    Value::Object(required.iter().filter_map(&mut member).collect::<Map<_, _>>())
}

/// The minimum length, capped so that the value fits into a response.
fn min_length(schema: &Value, name: &str) -> usize {
    const MAX_LENGTH: u64 = 1000;
    schema[name].as_u64().unwrap_or_default().min(MAX_LENGTH) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: Value, expected: Value) {
        assert_eq!(minimal_value(&schema), expected, "{schema}");
    }

    #[test]
    fn simple_schemas_are_fitted() {
        check(json!({"type": "string"}), json!(""));
        check(json!({"type": "string", "minLength": 3}), json!("xxx"));
        check(json!({"type": ["integer", "null"], "minimum": 5}), json!(5));
        check(json!({"type": "boolean"}), json!(false));
        check(json!({"enum": ["red", "green"]}), json!("red"));
        check(json!({"const": 7}), json!(7));
        check(json!({"anyOf": [{"type": "null"}, {"type": "string"}]}), Value::Null);
        check(json!({"type": "array", "items": {"type": "number"}}), json!([]));
        check(json!({"type": "array", "items": {"type": "number"}, "minItems": 2}), json!([0, 0]));
        check(json!({}), json!({}));
        check(json!(true), json!({}));
    }

    #[test]
    fn only_required_members_are_there() {
        let place = json!({
            "type": "object",
            "properties": {"name": {"type": "string"}, "size": {"$ref": "#/$defs/size"}, "note": {"type": "string"}},
            "required": ["name", "size"],
            "$defs": {"size": {"type": "object", "properties": {"km": {"type": "integer"}}, "required": ["km"]}},
        });
        check(place, json!({"name": "", "size": {"km": 0}}));
    }

    #[test]
    fn a_schema_without_end_has_an_end() {
        let endless = json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]});
        assert!(minimal_value(&endless).to_string().contains("null"));
        let wide = json!({"type": "array", "items": {"$ref": "#"}, "minItems": u64::MAX});
        assert!(minimal_value(&wide).to_string().len() < 10_000);
    }
}
