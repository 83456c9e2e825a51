//! Accessors for fields of Google's JSON objects.
//!
//! Requests may spell a field in camel case (`systemInstruction`) or snake case (`system_instruction`), and may pass a
//! single object instead of a list. All forms are accepted, and updates preserve the spelling.

use serde_json::{Map, Value};

pub(super) type Object = Map<String, Value>;

/// A field, by its documented name.
pub(super) fn field<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    object.get(name).or_else(|| object.get(&to_snake_case(name))).filter(|value| !value.is_null())
}

pub(super) fn text<'a>(object: &'a Object, name: &str) -> Option<&'a str> {
    field(object, name)?.as_str()
}

pub(super) fn object<'a>(object: &'a Object, name: &str) -> Option<&'a Object> {
    field(object, name)?.as_object()
}

/// The objects of a list, or a single object as a one-element list.
pub(super) fn objects<'a>(object: &'a Object, name: &str) -> Vec<&'a Object> {
    match field(object, name) {
        Some(Value::Array(values)) => values.iter().filter_map(Value::as_object).collect(),
        Some(Value::Object(one)) => vec![one],
        _ => Vec::new(),
    }
}

/// Sets a field, preserving its existing spelling.
pub(super) fn set(object: &mut Object, name: &str, value: impl Into<Value>) {
    let other = to_snake_case(name);
    let name = if object.contains_key(&other) { other } else { name.to_owned() };
    object.insert(name, value.into());
}

/// Removes a field in either spelling.
pub(super) fn remove(object: &mut Object, name: &str) -> Option<Value> {
    let other = object.shift_remove(&to_snake_case(name));
    object.shift_remove(name).or(other)
}

fn to_snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_spellings_are_read_and_the_callers_is_kept() {
        let mut body = json!({"system_instruction": {"parts": {"text": "Be brief."}}, "contents": null});
        let body = body.as_object_mut().unwrap();
        assert_eq!(objects(object(body, "systemInstruction").unwrap(), "parts").len(), 1);
        assert_eq!(field(body, "contents"), None);
        set(body, "systemInstruction", "new");
        assert_eq!(body["system_instruction"], "new");
        assert_eq!(remove(body, "systemInstruction"), Some("new".into()));
        assert!(!body.contains_key("system_instruction"));
    }
}
