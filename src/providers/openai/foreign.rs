//! Strips fields of other providers before sending to OpenAI itself, which rejects unknown message fields. Compatible
//! servers receive the messages unmodified, because one of them may have written the fields.

use memchr::memmem;
use serde_json::{Map, Value};

use super::details;
use crate::providers::Chat;
use crate::providers::chat::{Part, Protocol};

/// Message fields that OpenAI never writes.
const THINKING: [&str; 3] = [details::NAME, "reasoning_content", "reasoning"];
/// A tool call field that OpenAI never writes.
const PROOF: &str = "extra_content";

/// Whether the body may contain such a field. A fast substring scan that message text cannot trigger, since quotes in
/// it are escaped.
pub(super) fn may_be_in(body: &[u8]) -> bool {
    let says = |name: &&str| memmem::find(body, format!("\"{name}\"").as_bytes()).is_some();
    THINKING.iter().chain([&PROOF]).any(says)
}

/// The chat without such fields; `None` if it has none.
pub(super) fn without(chat: &Chat) -> Option<Chat> {
    let raw = chat.raw.as_ref().filter(|raw| raw.protocol == Protocol::OpenAi)?;
    let is_foreign = |message: &Value| {
        let proven = calls(message).iter().any(|call| call.get(PROOF).is_some());
        proven || THINKING.iter().any(|name| message.get(name).is_some())
    };
    if !raw.body.get("messages")?.as_array()?.iter().any(is_foreign) {
        return None;
    }
    let mut chat = chat.clone();
    if let Some(raw) = &mut chat.raw {
        raw.body.get_mut("messages").and_then(Value::as_array_mut)?.iter_mut().for_each(clean);
    }
    // The typed messages must match the stripped raw messages; otherwise they would be serialized again.
    for message in &mut chat.messages {
        message.parts.retain(|part| !matches!(part, Part::Reasoning { .. }));
        for part in &mut message.parts {
            if let Part::ToolCall { proof, .. } = part {
                *proof = None;
            }
        }
    }
    Some(chat)
}

fn calls(message: &Value) -> &[Value] {
    message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn clean(message: &mut Value) {
    let Value::Object(message) = message else { return };
    message.retain(|name, _| !THINKING.contains(&name.as_str()));
    let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
    for call in calls.into_iter().flatten().filter_map(Value::as_object_mut) {
        Map::retain(call, |name, _| name != PROOF);
    }
}
