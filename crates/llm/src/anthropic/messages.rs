//! Serializes a conversation as Anthropic messages: system prompt separate, user and assistant alternating.

use serde_json::{Value, json};

use super::blocks;
use crate::chat::{ChatRole, ContentPart, Message};

/// The texts of all system messages, as blocks.
pub(super) fn system(messages: &[Message]) -> Vec<Value> {
    let turns = messages.iter().filter(|message| message.role == ChatRole::System);
    let parts = turns.flat_map(|message| &message.parts);
    blocks::write_all(parts.filter(|part| matches!(part, ContentPart::Text { .. } | ContentPart::CacheMark { .. })))
}

/// User and assistant messages. Adjacent messages of one role are merged: results of parallel tool calls must be in one
/// message.
pub(super) fn conversation(messages: &[Message]) -> Vec<Value> {
    let mut turns: Vec<(ChatRole, Vec<&ContentPart>)> = Vec::new();
    for message in messages.iter().filter(|message| message.role != ChatRole::System) {
        match turns.last_mut() {
            Some((role, parts)) if *role == message.role => parts.extend(&message.parts),
            _ => turns.push((message.role, message.parts.iter().collect())),
        }
    }
    turns.into_iter().filter_map(|(role, parts)| serialize_message(role, parts)).collect()
}

/// Whether the conversation continues after tool calls whose reasoning has no valid signature. With a thinking budget,
/// the API rejects such a conversation.
pub(super) fn continues_without_signature(messages: &[Message]) -> bool {
    let Some(last) = messages.iter().rposition(|message| message.role == ChatRole::Assistant) else { return false };
    let results = messages[last..]
        .iter()
        .flat_map(|message| &message.parts)
        .any(|part| matches!(part, ContentPart::ToolResult { .. }));
    let mut thinking = messages[last].parts.iter().filter(|part| matches!(part, ContentPart::Reasoning { .. }));
    results && !thinking.any(|part| blocks::write(part).is_some())
}

/// Number of leading system messages.
pub(super) fn leading_system(messages: &[Message]) -> usize {
    messages.iter().take_while(|message| message.role == ChatRole::System).count()
}

fn serialize_message(role: ChatRole, mut parts: Vec<&ContentPart>) -> Option<Value> {
    // Tool results must precede all other user content. The sort is stable, so their order is preserved.
    parts.sort_by_key(|part| !matches!(part, ContentPart::ToolResult { .. }));
    let content = blocks::write_all(parts);
    let role = if role == ChatRole::Assistant { "assistant" } else { "user" };
    (!content.is_empty()).then(|| json!({"role": role, "content": content}))
}
