//! Converts Google's OpenAPI-style schemas to JSON Schema.
//!
//! `parameters` and `responseSchema` follow OpenAPI 3.0: upper-case types, a separate `nullable`, lengths as strings.
//! The newer `parametersJsonSchema` and `responseJsonSchema` accept JSON Schema directly, so the reverse conversion is
//! not needed.

use serde_json::{Map, Value, json};

/// Fields with 64-bit integer values, which protobuf JSON encodes as strings.
const COUNTS: [&str; 6] = ["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"];

/// The equivalent JSON Schema.
pub(super) fn json_schema(schema: &Value) -> Value {
    let Value::Object(members) = schema else {
        return schema.clone();
    };
    let nullable = members.get("nullable").and_then(Value::as_bool).unwrap_or(false);
    let mut out = Map::new();
    for (name, value) in members {
        let value = match (name.as_str(), value) {
            ("nullable", _) => continue,
            ("type", Value::String(kind)) => match kind.to_ascii_lowercase() {
                kind if kind == "type_unspecified" => continue,
                kind if nullable => json!([kind, "null"]),
                kind => kind.into(),
            },
            ("properties" | "defs" | "$defs", Value::Object(named)) => {
                named.iter().map(|(name, schema)| (name.clone(), json_schema(schema))).collect()
            }
            ("items" | "additionalProperties", value) => json_schema(value),
            ("anyOf" | "any_of" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter().map(json_schema).collect()
            }
            (name, Value::String(count)) if COUNTS.contains(&name) => {
                count.parse::<u64>().map_or_else(|_| value.clone(), Value::from)
            }
            (_, value) => value.clone(),
        };
        out.insert(if name == "any_of" { "anyOf".to_owned() } else { name.clone() }, value);
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_nulls_and_counts_become_those_of_json_schema() {
        let google = json!({
            "type": "OBJECT",
            "properties": {
                "type": {"type": "STRING", "nullable": true, "enum": ["A", "B"]},
                "tags": {"type": "ARRAY", "items": {"type": "STRING"}, "maxItems": "3"},
                "size": {"anyOf": [{"type": "INTEGER", "format": "int32"}, {"type": "NUMBER"}]},
            },
            "required": ["type"],
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "type": {"type": ["string", "null"], "enum": ["A", "B"]},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
                "size": {"anyOf": [{"type": "integer", "format": "int32"}, {"type": "number"}]},
            },
            "required": ["type"],
        });
        assert_eq!(json_schema(&google), expected);
        assert_eq!(json_schema(&expected), expected);
    }
}
