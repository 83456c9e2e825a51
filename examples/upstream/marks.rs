//! What a request carries that no echo shows: signatures of thinking, and marks for the cache.

use serde_json::Value;

/// What both who sign their thinking sign it with.
pub(crate) const SIGNATURE: &str = "ZWNobyBzaWduYXR1cmU=";

/// The model whose answers count them.
pub(crate) const MODEL: &str = "marks";

pub(crate) fn counted(body: &Value) -> String {
    let signatures = count(body, &|_, value| value == SIGNATURE);
    let marks = count(body, &|name, value| name == "cache_control" && value["type"] == "ephemeral");
    format!("{signatures} signatures, {marks} cache marks")
}

fn count(value: &Value, is_one: &dyn Fn(&str, &Value) -> bool) -> usize {
    match value {
        Value::Object(members) => {
            members.iter().map(|(name, value)| usize::from(is_one(name, value)) + count(value, is_one)).sum()
        }
        Value::Array(values) => values.iter().map(|value| count(value, is_one)).sum(),
        _ => 0,
    }
}
