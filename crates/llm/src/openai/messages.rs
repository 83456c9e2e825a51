//! Serializes a message of a chat as OpenAI messages.

use serde_json::{Value, json};

use super::content;
use crate::chat::{ChatRole, ContentPart, FileContent, Image, Message};

/// The OpenAI messages for one chat message: one per tool result, followed by one for the rest.
///
/// Reasoning is omitted: OpenAI does not accept it back.
pub(super) fn write(turn: &Message, system_role: &str) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    let mut rest: Vec<&ContentPart> = Vec::new();
    for part in &turn.parts {
        match part {
            ContentPart::ToolResult { id, content, .. } => {
                messages.push(json!({"role": "tool", "tool_call_id": id, "content": text_of(content.iter())}));
                // A tool result holds text only; media go into a user message.
                let shown = |part: &&ContentPart| {
                    matches!(part, ContentPart::Image { .. } | ContentPart::File { .. } | ContentPart::Audio { .. })
                };
                rest.extend(content.iter().filter(shown));
            }
            part => rest.push(part),
        }
    }
    if messages.is_empty() || !rest.is_empty() {
        messages.push(match turn.role {
            ChatRole::System => json!({"role": system_role, "content": content_list(&rest)}),
            ChatRole::User => json!({"role": "user", "content": content_list(&rest)}),
            ChatRole::Assistant => assistant(&rest),
        });
    }
    messages
}

fn assistant(parts: &[&ContentPart]) -> Value {
    let calls: Vec<Value> = parts.iter().filter_map(|part| tool_call(part)).collect();
    let text = text_of(parts.iter().copied());
    if calls.is_empty() {
        return json!({"role": "assistant", "content": text});
    }
    let content = Some(text).filter(|text| !text.is_empty());
    json!({"role": "assistant", "content": content, "tool_calls": calls})
}

/// A tool call in the protocol's format; `None` for any other part.
pub(super) fn tool_call(part: &ContentPart) -> Option<Value> {
    let ContentPart::ToolCall { id, name, arguments, proof } = part else { return None };
    let arguments = content::arguments_text(arguments);
    let mut call = json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    // Only Google's compatible endpoint requires a signature back, and it puts its name on it.
    if let Some(proof) = proof.as_ref().filter(|proof| proof.get("google").is_some()) {
        call["extra_content"] = proof.clone();
    }
    Some(call)
}

/// A single text is written as a string: every server accepts that, while not every server accepts lists.
fn content_list(parts: &[&ContentPart]) -> Value {
    let items: Vec<Value> = parts.iter().filter_map(|part| item(part)).collect();
    match &items[..] {
        [] => json!(""),
        [one] if one["type"] == "text" => one["text"].clone(),
        _ => Value::Array(items),
    }
}

fn item(part: &ContentPart) -> Option<Value> {
    match part {
        ContentPart::Text { text } => Some(json!({"type": "text", "text": text})),
        ContentPart::Image { image: Image::Inline { media_type, base64 } } => {
            Some(json!({"type": "image_url", "image_url": {"url": format!("data:{media_type};base64,{base64}")}}))
        }
        ContentPart::Image { image: Image::Link { url } } => {
            Some(json!({"type": "image_url", "image_url": {"url": url}}))
        }
        ContentPart::File { file: FileContent { name, media_type, base64 } } => {
            let mut file = json!({"file_data": format!("data:{media_type};base64,{base64}")});
            if let Some(name) = name {
                file["filename"] = json!(name);
            }
            Some(json!({"type": "file", "file": file}))
        }
        ContentPart::Audio { format, base64 } => {
            Some(json!({"type": "input_audio", "input_audio": {"data": base64, "format": format}}))
        }
        _ => None,
    }
}

fn text_of<'a>(parts: impl Iterator<Item = &'a ContentPart>) -> String {
    let texts = parts.filter_map(|part| match part {
        ContentPart::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}
