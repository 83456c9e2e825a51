//! Serializes messages as Google's `contents` and `systemInstruction`.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::fields::Object;
use super::parts::{OF_PART_BEFORE, PROOF, PROVIDER, SIGNATURE, media_type_of};
use crate::chat::{ChatRole, ContentPart, Image, Message};

/// Placeholder signature for calls that Google's models did not make. Without one, Gemini 3 and later reject a history
/// that another model started; Google documents this value.
const PLACEHOLDER_SIGNATURE: &str = "skip_thought_signature_validator";

/// Function names by call ID: a result must carry its function's name.
pub(super) struct FunctionNames<'a>(HashMap<&'a str, &'a str>);

impl<'a> FunctionNames<'a> {
    pub(super) fn of(messages: &'a [Message]) -> FunctionNames<'a> {
        let parts = messages.iter().flat_map(|message| &message.parts);
        let names = parts.filter_map(|part| match part {
            ContentPart::ToolCall { id, name, .. } => Some((id.as_str(), name.as_str())),
            _ => None,
        });
        FunctionNames(names.collect())
    }
}

/// User and model messages. Adjacent messages of one role are merged, because all results of parallel calls must be in
/// one message.
pub(super) fn contents(messages: &[&Message], names: &FunctionNames<'_>, model: &str) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let role = if message.role == ChatRole::Assistant { "model" } else { "user" };
        let mut parts = Vec::new();
        for part in &message.parts {
            write(part, names, &mut parts);
        }
        match turns.last_mut() {
            _ if parts.is_empty() => {}
            Some((last, before)) if *last == role => before.append(&mut parts),
            _ => turns.push((role, parts)),
        }
    }
    for (_, parts) in turns.iter_mut().filter(|(role, _)| *role == "model" && wants_signatures(model)) {
        sign_first_call(parts);
    }
    turns.into_iter().map(|(role, parts)| json!({"role": role, "parts": parts})).collect()
}

/// The parts of the system instruction: their text, in order.
pub(super) fn instructions(messages: &[&Message]) -> Vec<Value> {
    let parts = messages.iter().flat_map(|message| &message.parts);
    let texts = parts.filter_map(|part| match part {
        ContentPart::Text { text } if !text.is_empty() => Some(json!({"text": text})),
        _ => None,
    });
    texts.collect()
}

fn write(part: &ContentPart, names: &FunctionNames<'_>, out: &mut Vec<Value>) {
    match part {
        ContentPart::Text { text } if text.is_empty() => {}
        ContentPart::Text { text } => out.push(json!({"text": text})),
        ContentPart::Image { .. } | ContentPart::File { .. } | ContentPart::Audio { .. } => {
            out.extend(media_part(part))
        }
        // Google caches automatically; unparsed parts are rejected earlier.
        ContentPart::CacheMark { .. } | ContentPart::Unread { .. } => {}
        ContentPart::Reasoning { text, proof } => thought(text, proof.as_ref(), out),
        ContentPart::ToolCall { id, name, arguments, proof } => {
            let mut part = json!({"functionCall": {"id": id, "name": name, "args": as_object(arguments)}});
            if let Some(signature) = signature(proof.as_ref()) {
                part[SIGNATURE] = signature.clone();
            }
            out.push(part);
        }
        ContentPart::ToolResult { id, name, content, is_error } => {
            let name = name.as_deref().or_else(|| names.0.get(id.as_str()).copied()).unwrap_or(id);
            out.push(function_response(id, name, content, *is_error));
        }
    }
}

/// Reasoning is sent back with Google's signature, or unsigned if it never had one: Google signs only some of it.
/// Reasoning signed by another provider is dropped.
fn thought(text: &str, proof: Option<&Value>, out: &mut Vec<Value>) {
    match signature(proof) {
        Some(signature) if text.is_empty() => {
            let of_part_before = proof.is_some_and(|proof| proof[OF_PART_BEFORE] == true);
            match out.last_mut().filter(|_| of_part_before) {
                Some(before) => before[SIGNATURE] = signature.clone(),
                None => out.push(json!({"text": "", SIGNATURE: signature})),
            }
        }
        Some(signature) => out.push(json!({"text": text, "thought": true, SIGNATURE: signature})),
        None if proof.is_none() && !text.is_empty() => out.push(json!({"text": text, "thought": true})),
        None => {}
    }
}

fn signature(proof: Option<&Value>) -> Option<&Value> {
    proof?.get(PROVIDER)?.get(PROOF).filter(|signature| signature.is_string())
}

fn function_response(id: &str, name: &str, content: &[ContentPart], is_error: bool) -> Value {
    let texts = content.iter().filter_map(|part| match part {
        ContentPart::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    let shown: Vec<Value> = content.iter().filter_map(media_part).collect();
    let member = if is_error { "error" } else { "output" };
    let mut response = json!({"id": id, "name": name, "response": {member: text}});
    if !shown.is_empty() {
        response["parts"] = shown.into();
    }
    json!({"functionResponse": response})
}

/// Google accepts only objects as arguments.
fn as_object(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        Value::Null => json!({}),
        other => json!({"arguments": other}),
    }
}

/// Media parts: images, files and audio.
fn media_part(part: &ContentPart) -> Option<Value> {
    let inline = |media_type: &str, base64: &str| json!({"inlineData": {"mimeType": media_type, "data": base64}});
    match part {
        ContentPart::Image { image: Image::Inline { media_type, base64 } } => Some(inline(media_type, base64)),
        ContentPart::Image { image: Image::Link { url } } => Some(match media_type_of(url) {
            Some(media_type) => json!({"fileData": {"fileUri": url, "mimeType": media_type}}),
            None => json!({"fileData": {"fileUri": url}}),
        }),
        ContentPart::File { file } => Some(inline(&file.media_type, &file.base64)),
        ContentPart::Audio { format, base64 } => Some(inline(&format!("audio/{format}"), base64)),
        _ => None,
    }
}

/// Models before Gemini 3 do not check signatures, and other families have none.
fn wants_signatures(model: &str) -> bool {
    let name = model.strip_prefix("models/").unwrap_or(model);
    name.starts_with("gemini-") && !name.starts_with("gemini-1.") && !name.starts_with("gemini-2.")
}

/// Only the first of several parallel calls carries a signature.
fn sign_first_call(parts: &mut [Value]) {
    let first =
        parts.iter_mut().filter_map(Value::as_object_mut).find(|part: &&mut Object| part.contains_key("functionCall"));
    if let Some(call) = first {
        call.entry(SIGNATURE).or_insert_with(|| PLACEHOLDER_SIGNATURE.into());
    }
}
