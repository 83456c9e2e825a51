//! Turns of a conversation as the API wants them: instructions apart, the two sides taking turns.

use serde_json::{Value, json};

use super::blocks;
use crate::providers::chat::{Message, Part, Role};

/// The texts of all system turns, as blocks.
pub(super) fn system(messages: &[Message]) -> Vec<Value> {
    let turns = messages.iter().filter(|message| message.role == Role::System);
    let parts = turns.flat_map(|message| &message.parts);
    blocks::write_all(parts.filter(|part| matches!(part, Part::Text { .. } | Part::CacheMark { .. })))
}

/// The turns of the user and the assistant. Turns of one side that follow each other become one: results of tools
/// that were called together must come together.
pub(super) fn conversation(messages: &[Message]) -> Vec<Value> {
    let mut turns: Vec<(Role, Vec<&Part>)> = Vec::new();
    for message in messages.iter().filter(|message| message.role != Role::System) {
        match turns.last_mut() {
            Some((role, parts)) if *role == message.role => parts.extend(&message.parts),
            _ => turns.push((message.role, message.parts.iter().collect())),
        }
    }
    turns.into_iter().filter_map(|(role, parts)| turn(role, parts)).collect()
}

/// Whether the model is about to go on from tools that it called without thinking that we can show.
/// With a thinking budget, the API refuses such a conversation.
pub(super) fn goes_on_unproven(messages: &[Message]) -> bool {
    let Some(last) = messages.iter().rposition(|message| message.role == Role::Assistant) else { return false };
    let results =
        messages[last..].iter().flat_map(|message| &message.parts).any(|part| matches!(part, Part::ToolResult { .. }));
    let mut thinking = messages[last].parts.iter().filter(|part| matches!(part, Part::Reasoning { .. }));
    results && !thinking.any(|part| blocks::write(part).is_some())
}

/// How many system turns a conversation begins with.
pub(super) fn leading_system(messages: &[Message]) -> usize {
    messages.iter().take_while(|message| message.role == Role::System).count()
}

fn turn(role: Role, mut parts: Vec<&Part>) -> Option<Value> {
    // Results must come before everything else the user says. The sort is stable, so their order stays.
    parts.sort_by_key(|part| !matches!(part, Part::ToolResult { .. }));
    let content = blocks::write_all(parts);
    let role = if role == Role::Assistant { "assistant" } else { "user" };
    (!content.is_empty()).then(|| json!({"role": role, "content": content}))
}
