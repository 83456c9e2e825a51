//! Serializes a response for an OpenAI client.

use serde_json::{Map, Value, json};

use super::{content, messages, reasoning_details};
use crate::Completion;
use crate::chat::{ContentPart, Protocol, StopReason, Usage};

/// A `chat.completion`. An OpenAI response is passed on, with fields filled in that compatible servers omit and clients
/// require.
pub(super) fn render(completion: &Completion, model: &str, created: u64) -> Value {
    let raw = completion.raw.as_ref().filter(|raw| raw.protocol == Protocol::OpenAi);
    let mut body = raw.map(|raw| raw.body.clone()).unwrap_or_default();
    let id = Some(&completion.id).filter(|id| !id.is_empty()).cloned();

    fill_field(&mut body, "id", || json!(id.unwrap_or_else(|| format!("chatcmpl-{created}"))));
    fill_field(&mut body, "object", || json!("chat.completion"));
    fill_field(&mut body, "created", || json!(created));
    body.insert("model".into(), json!(model));
    match body.get_mut("choices").and_then(Value::as_array_mut) {
        Some(choices) => {
            choices.iter_mut().enumerate().for_each(|(index, choice)| fill_choice(index, choice, completion))
        }
        None => {
            body.insert("choices".into(), json!([choice(completion)]));
        }
    }
    fill_field(&mut body, "usage", || usage(completion.usage));
    Value::Object(body)
}

fn choice(completion: &Completion) -> Value {
    let text = Some(completion.text()).filter(|text| !text.is_empty());
    let thinking: String = completion.parts.iter().filter_map(thinking).collect();
    let calls: Vec<Value> = completion.parts.iter().filter_map(tool_call).collect();
    let mut message = json!({"role": "assistant", "content": text, "refusal": null});
    if !thinking.is_empty() {
        message["reasoning_content"] = json!(thinking);
    }
    if let Some(details) = reasoning_details::write(&completion.parts) {
        message[reasoning_details::FIELD] = details;
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(&completion.stop)})
}

pub(super) fn finish_reason(stop: &StopReason) -> &'static str {
    match stop {
        // Clients accept only these values.
        StopReason::Finished | StopReason::StopSequence | StopReason::Other(_) => "stop",
        StopReason::Length => "length",
        StopReason::Tools => "tool_calls",
        StopReason::Refused => "content_filter",
    }
}

pub(super) fn usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.total(),
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}

fn text(part: &ContentPart) -> Option<&str> {
    match part {
        ContentPart::Text { text } => Some(text),
        _ => None,
    }
}

fn thinking(part: &ContentPart) -> Option<&str> {
    match part {
        ContentPart::Reasoning { text, .. } => Some(text),
        _ => None,
    }
}

/// The proof is sent with the call; clients that preserve unknown fields send it back.
fn tool_call(part: &ContentPart) -> Option<Value> {
    let mut call = messages::tool_call(part)?;
    if let ContentPart::ToolCall { proof: Some(proof), .. } = part {
        call["extra_content"] = proof.clone();
    }
    Some(call)
}

/// Sets a field that is missing or null.
fn fill_field(body: &mut Map<String, Value>, name: &str, value: impl FnOnce() -> Value) {
    let member = body.entry(name).or_insert(Value::Null);
    if member.is_null() {
        *member = value();
    }
}

fn fill_choice(index: usize, choice: &mut Value, completion: &Completion) {
    let Value::Object(choice) = choice else { return };
    fill_field(choice, "index", || json!(index));
    if index == 0 {
        fill_field(choice, "finish_reason", || json!(finish_reason(&completion.stop)));
    }
    let Some(Value::Object(message)) = choice.get_mut("message") else { return };
    fill_field(message, "role", || json!("assistant"));
    if let Some(parts) = message.get("content").filter(|content| content.is_array()).map(content::parts) {
        message.insert("content".into(), json!(parts.iter().filter_map(text).collect::<String>()));
    }
    let Some(calls) = message.get_mut("tool_calls").and_then(Value::as_array_mut) else { return };
    for (index, call) in calls.iter_mut().enumerate() {
        let Value::Object(call) = call else { continue };
        fill_field(call, "id", || json!(content::call_id(index)));
        fill_field(call, "type", || json!("function"));
        let Some(Value::Object(function)) = call.get_mut("function") else { continue };
        let arguments = function.entry("arguments").or_insert(Value::Null);
        if !arguments.is_string() {
            *arguments = Value::String(content::arguments_text(arguments));
        }
    }
}
