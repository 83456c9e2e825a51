//! Parses OpenAI messages into chat messages.

use std::collections::HashMap;

use serde_json::Value;

use super::content;
use crate::Error;
use crate::chat::{ChatRole, ContentPart, Message};

/// The chat messages. Each tool result is a separate OpenAI message; consecutive results become one chat message.
pub(super) fn read(messages: &[Value]) -> Result<Vec<Message>, Error> {
    let mut turns: Vec<Message> = Vec::new();
    // A result names its call but not its tool, which other protocols require.
    let mut called: HashMap<String, String> = HashMap::new();
    for message in messages {
        let (role, parts) = match message["role"].as_str() {
            Some("system" | "developer") => (ChatRole::System, content::contents(message)),
            Some("user") => (ChatRole::User, content::contents(message)),
            Some("assistant") => (ChatRole::Assistant, content::answer(message)),
            Some("tool" | "function") => (ChatRole::User, vec![result(message, &called)]),
            _ => return Err(Error::BadRequest { kind: "invalid_messages".into() }),
        };
        for part in &parts {
            if let ContentPart::ToolCall { id, name, .. } = part {
                called.insert(id.clone(), name.clone());
            }
        }
        match turns.last_mut() {
            Some(last) if is_results(last) && matches!(parts[..], [ContentPart::ToolResult { .. }]) => {
                last.parts.extend(parts)
            }
            _ => turns.push(Message { role, parts }),
        }
    }
    Ok(turns)
}

/// Number of OpenAI messages the chat message was parsed from.
pub(super) fn source_message_count(turn: &Message) -> usize {
    if is_results(turn) { turn.parts.len() } else { 1 }
}

fn is_results(turn: &Message) -> bool {
    matches!(turn.parts.first(), Some(ContentPart::ToolResult { .. }))
}

fn result(message: &Value, called: &HashMap<String, String>) -> ContentPart {
    // The legacy `function` role has names instead of IDs.
    let name = content::text(&message["name"]);
    let id = content::text(&message["tool_call_id"]).or(name).unwrap_or_default();
    ContentPart::ToolResult {
        id: id.to_owned(),
        name: name.map(str::to_owned).or_else(|| called.get(id).cloned()),
        content: content::contents(message),
        is_error: false,
    }
}
