//! What other providers want back, kept away from OpenAI itself, which takes no members of messages that it does not
//! know. Compatible servers get everything as it came: one of them may have written it.

use memchr::memmem;
use serde_json::{Map, Value};

use super::details;
use crate::providers::Chat;
use crate::providers::chat::{Part, Protocol};

/// Members of messages that OpenAI has never written.
const THINKING: [&str; 3] = [details::NAME, "reasoning_content", "reasoning"];
/// A member of calls that it has never written.
const PROOF: &str = "extra_content";

/// Whether bytes may say anything of the kind. A quick look, which no text of a message can pass for.
pub(super) fn may_be_in(body: &[u8]) -> bool {
    let says = |name: &&str| memmem::find(body, format!("\"{name}\"").as_bytes()).is_some();
    THINKING.iter().chain([&PROOF]).any(says)
}

/// The chat without it; none where there is nothing of the kind.
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
    // What was read of the messages must say the same as they do now, or they would be written anew.
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
