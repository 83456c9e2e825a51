//! Content, reasoning and tool calls, shared by requests and responses.

use serde_json::{Map, Value};

use super::details::{self, Detail};
use super::part;
use crate::providers::chat::{Part, Unread};

/// All parts of an assistant message, in generation order.
pub(super) fn answer(message: &Value) -> Vec<Part> {
    let mut found = Vec::new();
    let (after, before): (Vec<_>, Vec<_>) = details::read(message).into_iter().partition(|detail| detail.after_text);
    let proven = |Detail { text, proof, .. }: Detail| Part::Reasoning { text, proof: Some(proof) };
    // Signed reasoning details repeat the plain reasoning text.
    let unproven = thinking(message).filter(|_| before.iter().chain(&after).all(|detail| detail.text.is_empty()));
    found.extend(unproven.map(|text| Part::Reasoning { text: text.into(), proof: None }));
    found.extend(before.into_iter().map(proven));
    found.extend(contents(message));
    found.extend(refusal(message).map(|text| Part::Text { text: text.into() }));
    found.extend(after.into_iter().map(proven));
    // Audio of an earlier response is referenced by ID only and is stored at the provider.
    found.extend(text(&message["audio"]["id"]).map(|_| Part::Unread { part: Unread::Type("audio".into()) }));
    found.extend(tool_calls(&message["tool_calls"]));
    found
}

/// The parts of a message's `content`, with cache breakpoints: after each part that has one, and after the message.
pub(super) fn contents(message: &Value) -> Vec<Part> {
    let mut found = match &message["content"] {
        Value::Array(items) => items.iter().flat_map(|item| part::read(item).into_iter().chain(mark(item))).collect(),
        content => parts(content),
    };
    found.extend(mark(message));
    found
}

/// The cache control object, an Anthropic extension that OpenAI does not have.
pub(super) fn cache_control(value: &Value) -> Option<&Value> {
    value.get("cache_control").filter(|control| control.is_object())
}

/// The parts of a `content`: a string, a list, or null.
pub(super) fn parts(content: &Value) -> Vec<Part> {
    match content {
        Value::String(text) if !text.is_empty() => vec![Part::Text { text: text.clone() }],
        Value::Array(items) => items.iter().filter_map(part::read).collect(),
        Value::Null | Value::String(_) => Vec::new(),
        // A single part without a list, or a value that cannot be parsed.
        one => part::read(one).into_iter().collect(),
    }
}

/// Reasoning text. OpenAI has no such field; compatible servers use either name, some both for the same text.
pub(super) fn thinking(message: &Value) -> Option<&str> {
    ["reasoning_content", "reasoning"].iter().find_map(|name| text(&message[name]))
}

/// The model's refusal message.
pub(super) fn refusal(message: &Value) -> Option<&str> {
    text(&message["refusal"])
}

/// The string of a value, if it is not empty.
pub(super) fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

/// A generated ID for a call without one, so that its result can be matched.
pub(super) fn call_id(index: usize) -> String {
    format!("call_{index}")
}

/// The signature a provider requires back with a call. OpenAI uses none; Google's compatible endpoint uses this field.
pub(super) fn proof(call: &Value) -> Option<Value> {
    call.get("extra_content").filter(|proof| !proof.is_null()).cloned()
}

/// Arguments as an object. Invalid JSON is preserved as a string.
pub(super) fn arguments(value: &Value) -> Value {
    match value {
        Value::Object(_) => value.clone(),
        Value::Null => Value::Object(Map::new()),
        // A call without arguments often has an empty string.
        Value::String(text) if text.trim().is_empty() => Value::Object(Map::new()),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(object)) => Value::Object(object),
            _ => Value::String(text.clone()),
        },
        other => Value::String(other.to_string()),
    }
}

/// Arguments as the protocol encodes them: JSON in a string.
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
