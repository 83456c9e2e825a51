//! The messages of a request, read as turns.

use std::collections::HashMap;

use serde_json::Value;

use super::content;
use crate::providers::Error;
use crate::providers::chat::{Message, Part, Role};

/// The turns that messages make. Results of tools have a message each, and are one turn where they follow each other.
pub(super) fn read(messages: &[Value]) -> Result<Vec<Message>, Error> {
    let mut turns: Vec<Message> = Vec::new();
    // A result says which call it answers and not which tool; other protocols want to know.
    let mut called: HashMap<String, String> = HashMap::new();
    for message in messages {
        let (role, parts) = match message["role"].as_str() {
            Some("system" | "developer") => (Role::System, content::contents(message)),
            Some("user") => (Role::User, content::contents(message)),
            Some("assistant") => (Role::Assistant, content::answer(message)),
            Some("tool" | "function") => (Role::User, vec![result(message, &called)]),
            _ => return Err(Error::BadRequest { kind: "invalid_messages".into() }),
        };
        for part in &parts {
            if let Part::ToolCall { id, name, .. } = part {
                called.insert(id.clone(), name.clone());
            }
        }
        match turns.last_mut() {
            Some(last) if is_results(last) && matches!(parts[..], [Part::ToolResult { .. }]) => {
                last.parts.extend(parts)
            }
            _ => turns.push(Message { role, parts }),
        }
    }
    Ok(turns)
}

/// How many messages the turn was read from.
pub(super) fn length(turn: &Message) -> usize {
    if is_results(turn) { turn.parts.len() } else { 1 }
}

fn is_results(turn: &Message) -> bool {
    matches!(turn.parts.first(), Some(Part::ToolResult { .. }))
}

fn result(message: &Value, called: &HashMap<String, String>) -> Part {
    // The older `function` role has no ids, only names.
    let name = content::text(&message["name"]);
    let id = content::text(&message["tool_call_id"]).or(name).unwrap_or_default();
    Part::ToolResult {
        id: id.to_owned(),
        name: name.map(str::to_owned).or_else(|| called.get(id).cloned()),
        content: content::contents(message),
        is_error: false,
    }
}
