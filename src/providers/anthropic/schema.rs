//! JSON Schemas as structured output takes them.
//!
//! It knows a part of JSON Schema and refuses the rest. What it does not know is told to the model in words instead.

use serde_json::{Map, Value};

/// String formats that are enforced.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// Members that stay as they are wherever they stand.
const KEPT: [&str; 7] = ["$ref", "type", "enum", "const", "title", "description", "required"];

pub(super) fn supported(schema: &Value) -> Value {
    // `true`, `false` and what is no schema at all: the API will say.
    let Value::Object(schema) = schema else { return schema.clone() };
    let mut known = Map::new();
    let mut unknown = Vec::new();
    for (member, value) in schema {
        match (member.as_str(), value) {
            ("$defs" | "definitions" | "properties", Value::Object(schemas)) => {
                let schemas: Map<String, Value> =
                    schemas.iter().map(|(name, schema)| (name.clone(), supported(schema))).collect();
                known.insert(member.clone(), schemas.into());
            }
            ("anyOf" | "allOf", Value::Array(variants)) => {
                known.insert(member.clone(), variants.iter().map(supported).collect());
            }
            // One of them or any of them is the same to something that writes one.
            ("oneOf", Value::Array(variants)) => {
                known.insert("anyOf".into(), variants.iter().map(supported).collect());
            }
            ("items", items) => {
                known.insert(member.clone(), supported(items));
            }
            ("format", Value::String(format)) if FORMATS.contains(&format.as_str()) => {
                known.insert(member.clone(), value.clone());
            }
            ("minItems", Value::Number(least)) if matches!(least.as_u64(), Some(0 | 1)) => {
                known.insert(member.clone(), value.clone());
            }
            ("additionalProperties" | "$schema" | "$id", _) => {}
            (kept, _) if KEPT.contains(&kept) => {
                known.insert(member.clone(), value.clone());
            }
            (unsupported, _) => unknown.push(format!("{unsupported}: {value}")),
        }
    }
    // A reference stands alone, but for what it may refer to.
    if known.contains_key("$ref") {
        known.retain(|member, _| ["$ref", "$defs", "definitions"].contains(&member.as_str()));
        return known.into();
    }
    if known.get("type").is_some_and(|kind| kind == "object") || known.contains_key("properties") {
        known.insert("additionalProperties".into(), false.into());
    }
    if !unknown.is_empty() {
        let before =
            known.get("description").and_then(Value::as_str).map(|text| format!("{text}\n\n")).unwrap_or_default();
        known.insert("description".into(), format!("{before}{{{}}}", unknown.join(", ")).into());
    }
    known.into()
}
