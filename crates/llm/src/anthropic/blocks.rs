//! Content blocks of Anthropic's messages, in requests and responses.

use serde_json::{Map, Value, json};

use super::documents;
use crate::chat::{ContentPart, Image};

/// The field that marks a prompt cache breakpoint.
pub(super) const CACHE_CONTROL: &str = "cache_control";

/// Parses a block into a part. Unsupported blocks, such as server tools and documents, yield `None`.
pub(super) fn read(block: &Value) -> Option<ContentPart> {
    let text = |member: &str| block.get(member).and_then(Value::as_str).map(str::to_owned);
    match block.get("type")?.as_str()? {
        "text" => Some(ContentPart::Text { text: text("text")? }),
        "image" => Some(ContentPart::Image { image: image(block.get("source")?)? }),
        "thinking" => Some(ContentPart::Reasoning { text: text("thinking")?, proof: without(block, &["thinking"]) }),
        "redacted_thinking" => Some(ContentPart::Reasoning { text: String::new(), proof: without(block, &[]) }),
        "tool_use" => Some(ContentPart::ToolCall {
            id: text("id")?,
            name: text("name")?,
            arguments: block.get("input")?.clone(),
            // The caller of tools that server-side code may call; it is returned unmodified.
            proof: without(block, &["id", "name", "input"])
                .filter(|rest| rest.as_object().is_some_and(|rest| rest.len() > 1)),
        }),
        "tool_result" => Some(ContentPart::ToolResult {
            id: text("tool_use_id")?,
            name: None,
            content: read_all(block.get("content").unwrap_or(&Value::Null)),
            is_error: block.get("is_error").and_then(Value::as_bool).unwrap_or(false),
        }),
        _ => None,
    }
}

/// The parts of a content field, which is a list of blocks or a plain string.
pub(super) fn read_all(content: &Value) -> Vec<ContentPart> {
    match content {
        Value::String(text) => vec![ContentPart::Text { text: text.clone() }],
        Value::Array(blocks) => blocks.iter().filter_map(read).collect(),
        _ => Vec::new(),
    }
}

/// Serializes parts as blocks. A cache breakpoint becomes a field of the preceding block; thinking blocks cannot carry
/// one.
pub(super) fn write_all<'a>(parts: impl IntoIterator<Item = &'a ContentPart>) -> Vec<Value> {
    let mut blocks: Vec<Value> = Vec::new();
    for part in parts {
        match (part, blocks.last_mut()) {
            (ContentPart::CacheMark { control }, Some(last))
                if !is(last, "thinking") && !is(last, "redacted_thinking") =>
            {
                last[CACHE_CONTROL] = control.clone();
            }
            _ => blocks.extend(write(part)),
        }
    }
    blocks
}

/// Serializes a part as a block. Parts that the API rejects yield `None`: empty text, and reasoning of other providers.
pub(super) fn write(part: &ContentPart) -> Option<Value> {
    match part {
        ContentPart::Text { text } => text_block(text),
        ContentPart::Image { image: Image::Inline { media_type, base64 } } => {
            Some(json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": base64}}))
        }
        ContentPart::Image { image: Image::Link { url } } => {
            Some(json!({"type": "image", "source": {"type": "url", "url": url}}))
        }
        ContentPart::File { file } => documents::write(file),
        ContentPart::Reasoning { text, proof } => thinking(text, proof.as_ref()?),
        ContentPart::ToolCall { id, name, arguments, proof } => {
            let mut block = Map::new();
            block.insert("type".into(), "tool_use".into());
            block.insert("id".into(), tool_id(id).into());
            block.insert("name".into(), name.as_str().into());
            block.insert("input".into(), input(arguments));
            if let Some(rest) = proof.as_ref().filter(|proof| is(proof, "tool_use")).and_then(Value::as_object) {
                block.extend(rest.clone());
            }
            Some(block.into())
        }
        ContentPart::ToolResult { id, content, is_error, .. } => {
            let mut block = json!({"type": "tool_result", "tool_use_id": tool_id(id)});
            let is_taken = |part: &&ContentPart| {
                matches!(part, ContentPart::Text { .. } | ContentPart::Image { .. } | ContentPart::File { .. })
            };
            let taken = content.iter().filter(is_taken);
            let blocks: Vec<Value> = taken.filter_map(write).collect();
            if !blocks.is_empty() {
                block["content"] = blocks.into();
            }
            if *is_error {
                block["is_error"] = true.into();
            }
            // The API caches tool results only as a whole.
            let mark = |part: &ContentPart| match part {
                ContentPart::CacheMark { control } => Some(control.clone()),
                _ => None,
            };
            if let Some(control) = content.iter().rev().find_map(mark) {
                block[CACHE_CONTROL] = control;
            }
            Some(block)
        }
        // The last two are rejected earlier.
        ContentPart::CacheMark { .. } | ContentPart::Audio { .. } | ContentPart::Unread { .. } => None,
    }
}

pub(super) fn text_block(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({"type": "text", "text": text}))
}

fn image(source: &Value) -> Option<Image> {
    let text = |member: &str| source.get(member).and_then(Value::as_str).map(str::to_owned);
    match source.get("type")?.as_str()? {
        "base64" => Some(Image::Inline { media_type: text("media_type")?, base64: text("data")? }),
        "url" => Some(Image::Link { url: text("url")? }),
        _ => None,
    }
}

/// Thinking is returned exactly as received or not at all: the API verifies its signature.
fn thinking(text: &str, proof: &Value) -> Option<Value> {
    let mut block = proof.as_object()?.clone();
    if is(proof, "thinking") {
        block.insert("thinking".into(), text.into());
    } else if !is(proof, "redacted_thinking") {
        return None;
    }
    Some(block.into())
}

fn is(value: &Value, kind: &str) -> bool {
    value.get("type").and_then(Value::as_str) == Some(kind)
}

fn without(block: &Value, members: &[&str]) -> Option<Value> {
    let mut rest = block.as_object()?.clone();
    rest.retain(|member, _| !members.contains(&member.as_str()));
    Some(rest.into())
}

/// The API accepts only objects here.
fn input(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        Value::Null => json!({}),
        Value::String(text) => {
            serde_json::from_str::<Map<String, Value>>(text).map_or_else(|_| json!({"arguments": text}), Value::Object)
        }
        other => json!({"arguments": other}),
    }
}

/// IDs of other providers may contain characters that the API rejects. A call and its result are mapped identically.
fn tool_id(id: &str) -> String {
    let taken = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    id.chars().map(|letter| if taken(letter) { letter } else { '_' }).collect()
}
