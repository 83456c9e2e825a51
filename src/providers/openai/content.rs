//! What requests and answers write alike: contents, thinking and tool calls.

use serde_json::{Map, Value};

use super::details::{self, Detail};
use super::part;
use crate::providers::chat::{Part, Unread};

/// Everything in a message of a model, in the order a model makes it.
pub(super) fn answer(message: &Value) -> Vec<Part> {
    let mut found = Vec::new();
    let (after, before): (Vec<_>, Vec<_>) = details::read(message).into_iter().partition(|detail| detail.after_text);
    let proven = |Detail { text, proof, .. }: Detail| Part::Reasoning { text, proof: Some(proof) };
    // Thinking with a proof is the same thinking again.
    let unproven = thinking(message).filter(|_| before.iter().chain(&after).all(|detail| detail.text.is_empty()));
    found.extend(unproven.map(|text| Part::Reasoning { text: text.into(), proof: None }));
    found.extend(before.into_iter().map(proven));
    found.extend(contents(message));
    found.extend(refusal(message).map(|text| Part::Text { text: text.into() }));
    found.extend(after.into_iter().map(proven));
    // A sound the model made earlier is only named here, and is at its provider.
    found.extend(text(&message["audio"]["id"]).map(|_| Part::Unread { part: Unread::Type("audio".into()) }));
    found.extend(tool_calls(&message["tool_calls"]));
    found
}

/// The parts of a message's `content`, with the marks for a cache: after each part that has one, and of the whole.
pub(super) fn contents(message: &Value) -> Vec<Part> {
    let mut found = match &message["content"] {
        Value::Array(items) => items.iter().flat_map(|item| part::read(item).into_iter().chain(mark(item))).collect(),
        content => parts(content),
    };
    found.extend(mark(message));
    found
}

/// What the caller wants a provider to keep, where it says so. It is Anthropic's word, and OpenAI has none.
pub(super) fn cache_control(value: &Value) -> Option<&Value> {
    value.get("cache_control").filter(|control| control.is_object())
}

/// The parts of a `content`: a text, a list, or nothing.
pub(super) fn parts(content: &Value) -> Vec<Part> {
    match content {
        Value::String(text) if !text.is_empty() => vec![Part::Text { text: text.clone() }],
        Value::Array(items) => items.iter().filter_map(part::read).collect(),
        Value::Null | Value::String(_) => Vec::new(),
        // One part without its list, or something that nobody can read.
        one => part::read(one).into_iter().collect(),
    }
}

/// Thinking aloud. OpenAI has no member for it; compatible servers use either name, some both for the same text.
pub(super) fn thinking(message: &Value) -> Option<&str> {
    ["reasoning_content", "reasoning"].iter().find_map(|name| text(&message[name]))
}

/// Why the model would not answer, in its own words.
pub(super) fn refusal(message: &Value) -> Option<&str> {
    text(&message["refusal"])
}

/// The text of a value, if there is any.
pub(super) fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

/// A name for a call that came without one, so that its result can be told from others.
pub(super) fn call_id(index: usize) -> String {
    format!("call_{index}")
}

/// What a provider wants back with a call. OpenAI itself wants nothing; Google's compatible server uses this place.
pub(super) fn proof(call: &Value) -> Option<Value> {
    call.get("extra_content").filter(|proof| !proof.is_null()).cloned()
}

/// Arguments as an object. What a model wrote that is none stays the text it wrote.
pub(super) fn arguments(value: &Value) -> Value {
    match value {
        Value::Object(_) => value.clone(),
        Value::Null => Value::Object(Map::new()),
        // A call without arguments is often written as no text at all.
        Value::String(text) if text.trim().is_empty() => Value::Object(Map::new()),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(object)) => Value::Object(object),
            _ => Value::String(text.clone()),
        },
        other => Value::String(other.to_string()),
    }
}

/// Arguments as the protocol writes them: JSON as text.
pub(super) fn arguments_text(arguments: &Value) -> String {
    match arguments {
        Value::String(text) => text.clone(),
        Value::Null => "{}".to_owned(),
        other => other.to_string(),
    }
}

fn mark(value: &Value) -> Option<Part> {
    cache_control(value).map(|control| Part::CacheMark { control: control.clone() })
}

fn tool_calls(calls: &Value) -> Vec<Part> {
    let calls = calls.as_array().map(Vec::as_slice).unwrap_or_default();
    calls.iter().enumerate().filter_map(|(index, call)| tool_call(index, call)).collect()
}

fn tool_call(index: usize, call: &Value) -> Option<Part> {
    let (name, arguments) = match text(&call["custom"]["name"]) {
        // A custom tool takes free text.
        Some(name) => (name, Value::String(call["custom"]["input"].as_str().unwrap_or_default().to_owned())),
        None => (text(&call["function"]["name"])?, arguments(&call["function"]["arguments"])),
    };
    Some(Part::ToolCall {
        id: text(&call["id"]).map_or_else(|| call_id(index), str::to_owned),
        name: name.to_owned(),
        arguments,
        proof: proof(call),
    })
}
