//! Reduces JSON Schemas to the subset that Anthropic's structured output supports.
//!
//! The API rejects unsupported keywords. They are described to the model in the schema's `description` instead.

use serde_json::{Map, Value};

/// String formats that the API enforces.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// Keywords that are copied unmodified.
const COPIED_KEYWORDS: [&str; 7] = ["$ref", "type", "enum", "const", "title", "description", "required"];

pub(super) fn to_supported(schema: &Value) -> Value {
    // `true`, `false` and invalid schemas are left for the API to report.
    let Value::Object(schema) = schema else { return schema.clone() };
    let mut known = Map::new();
    let mut unknown = Vec::new();
    for (member, value) in schema {
        match (member.as_str(), value) {
            ("$defs" | "definitions" | "properties", Value::Object(schemas)) => {
                let schemas: Map<String, Value> =
                    schemas.iter().map(|(name, schema)| (name.clone(), to_supported(schema))).collect();
                known.insert(member.clone(), schemas.into());
            }
            ("anyOf" | "allOf", Value::Array(variants)) => {
                known.insert(member.clone(), variants.iter().map(to_supported).collect());
            }
            // For a generator, `oneOf` is equivalent to `anyOf`.
            ("oneOf", Value::Array(variants)) => {
                known.insert("anyOf".into(), variants.iter().map(to_supported).collect());
            }
            ("items", items) => {
                known.insert(member.clone(), to_supported(items));
            }
            ("format", Value::String(format)) if FORMATS.contains(&format.as_str()) => {
                known.insert(member.clone(), value.clone());
            }
            ("minItems", Value::Number(least)) if matches!(least.as_u64(), Some(0 | 1)) => {
                known.insert(member.clone(), value.clone());
            }
            ("additionalProperties" | "$schema" | "$id", _) => {}
            (kept, _) if COPIED_KEYWORDS.contains(&kept) => {
                known.insert(member.clone(), value.clone());
            }
            (unsupported, _) => unknown.push(format!("{unsupported}: {value}")),
        }
    }
    // A reference allows no sibling keywords except definitions.
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
