//! Content, reasoning and tool calls, shared by requests and responses.

use serde_json::{Map, Value};

use super::part;
use super::reasoning_details::{self, ReasoningDetail};
use crate::chat::{ContentPart, UnsupportedPart};

/// All parts of an assistant message, in generation order.
pub(super) fn answer(message: &Value) -> Vec<ContentPart> {
    let mut found = Vec::new();
    let (after, before): (Vec<_>, Vec<_>) =
        reasoning_details::read(message).into_iter().partition(|detail| detail.after_text);
    let proven =
        |ReasoningDetail { text, proof, .. }: ReasoningDetail| ContentPart::Reasoning { text, proof: Some(proof) };
    // Signed reasoning details repeat the plain reasoning text.
    let unproven = thinking(message).filter(|_| before.iter().chain(&after).all(|detail| detail.text.is_empty()));
    found.extend(unproven.map(|text| ContentPart::Reasoning { text: text.into(), proof: None }));
    found.extend(before.into_iter().map(proven));
    found.extend(contents(message));
    found.extend(refusal(message).map(|text| ContentPart::Text { text: text.into() }));
    found.extend(after.into_iter().map(proven));
    // Audio of an earlier response is referenced by ID only and is stored at the provider.
    found.extend(
        text(&message["audio"]["id"]).map(|_| ContentPart::Unread { part: UnsupportedPart::Type("audio".into()) }),
    );
    found.extend(tool_calls(&message["tool_calls"]));
    found
}

/// The parts of a message's `content`, with cache breakpoints: after each part that has one, and after the message.
pub(super) fn contents(message: &Value) -> Vec<ContentPart> {
    let mut found = match &message["content"] {
        Value::Array(items) => {
            items.iter().flat_map(|item| part::read(item).into_iter().chain(cache_breakpoint(item))).collect()
        }
        content => parts(content),
    };
    found.extend(cache_breakpoint(message));
    found
}

/// The cache control object, an Anthropic extension that OpenAI does not have.
pub(super) fn cache_control(value: &Value) -> Option<&Value> {
    value.get("cache_control").filter(|control| control.is_object())
}

/// The parts of a `content`: a string, a list, or null.
pub(super) fn parts(content: &Value) -> Vec<ContentPart> {
    match content {
        Value::String(text) if !text.is_empty() => vec![ContentPart::Text { text: text.clone() }],
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

fn cache_breakpoint(value: &Value) -> Option<ContentPart> {
    cache_control(value).map(|control| ContentPart::CacheMark { control: control.clone() })
}

fn tool_calls(calls: &Value) -> Vec<ContentPart> {
    let calls = calls.as_array().map(Vec::as_slice).unwrap_or_default();
    calls.iter().enumerate().filter_map(|(index, call)| tool_call(index, call)).collect()
}

fn tool_call(index: usize, call: &Value) -> Option<ContentPart> {
    let (name, arguments) = match text(&call["custom"]["name"]) {
        // A custom tool takes free text.
        Some(name) => (name, Value::String(call["custom"]["input"].as_str().unwrap_or_default().to_owned())),
        None => (text(&call["function"]["name"])?, arguments(&call["function"]["arguments"])),
    };
    Some(ContentPart::ToolCall {
        id: text(&call["id"]).map_or_else(|| call_id(index), str::to_owned),
        name: name.to_owned(),
        arguments,
        proof: proof(call),
    })
}
