//! Anthropic Messages API.

use http::HeaderMap;
use serde_json::{Map, Value, json};

use crate::echo::{self, ChatMessage, ChatRequest, ChatResponse, MODELS, MessageRole, OutputFormat, StopReason};
use crate::error::{ApiError, ErrorReason};
use crate::signatures::signature;
use crate::stream::{Event, split};
use crate::{list, strings};

pub(crate) fn parse_request(body: &Value, headers: &HeaderMap) -> Result<ChatRequest, String> {
    if !headers.contains_key("anthropic-version") {
        return Err("anthropic-version: header is required".into());
    }
    let model = body["model"].as_str().ok_or("model: Field required")?;
    let max_tokens = body["max_tokens"].as_u64().ok_or("max_tokens: Field required")?;
    let messages = body["messages"].as_array().filter(|messages| !messages.is_empty());
    let mut turns =
        vec![ChatMessage { role: MessageRole::System, text: text(&body["system"]), tool_results: Vec::new() }];
    for message in messages.ok_or("messages: at least one message is required")? {
        turns.push(turn(message)?);
    }
    let format = &body["output_config"]["format"];
    Ok(ChatRequest {
        model: model.to_owned(),
        messages: turns,
        has_tools: !list(&body["tools"]).is_empty(),
        format: (format["type"] == "json_schema").then(|| OutputFormat::Schema(format["schema"].clone())),
        reasoning: matches!(body["thinking"]["type"].as_str(), Some("enabled" | "adaptive")),
        max_tokens: Some(max_tokens),
        stop: strings(&body["stop_sequences"]),
        stream: body["stream"] == true,
        stream_usage: true,
    })
}

pub(crate) fn full_response(asked: &ChatRequest, answer: &ChatResponse) -> Value {
    let mut message = message(asked, answer);
    message["content"] = blocks(answer, &asked.model).into();
    message["stop_reason"] = stop_reason(answer).into();
    message["stop_sequence"] = stop_sequence(answer).into();
    message["usage"]["output_tokens"] = output_tokens(answer).into();
    message
}

pub(crate) fn stream_events(asked: &ChatRequest, answer: &ChatResponse) -> Vec<Event> {
    let mut events = vec![event("message_start", json!({"message": message(asked, answer)}))];
    for (index, mut block) in blocks(answer, &asked.model).into_iter().enumerate() {
        let deltas = deltas(&mut block);
        events.push(event("content_block_start", json!({"index": index, "content_block": block})));
        if index == 0 {
            events.push(event("ping", json!({})));
        }
        let delta = |delta| Event {
            has_content: true,
            ..event("content_block_delta", json!({"index": index, "delta": delta}))
        };
        events.extend(deltas.into_iter().map(delta));
        events.push(event("content_block_stop", json!({"index": index})));
    }
    let delta = json!({"stop_reason": stop_reason(answer), "stop_sequence": stop_sequence(answer)});
    events.push(event("message_delta", json!({"delta": delta, "usage": {"output_tokens": output_tokens(answer)}})));
    events.push(event("message_stop", json!({})));
    events
}

pub(crate) fn models(limit: Option<String>, after: Option<String>) -> Value {
    let start = after.and_then(|after| MODELS.iter().position(|id| *id == after)).map_or(0, |index| index + 1);
    let (page, next) = echo::page(start, limit.and_then(|limit| limit.parse().ok()));
    let model = |id: &&str| {
        json!({
            "type": "model",
            "id": id,
            "display_name": id.replace('-', " "),
            "created_at": "2025-01-01T00:00:00Z",
            "max_input_tokens": 200_000,
            "max_tokens": 64_000,
        })
    };
    json!({
        "data": page.iter().map(model).collect::<Vec<_>>(),
        "has_more": next.is_some(),
        "first_id": page.first(),
        "last_id": page.last(),
    })
}

pub(crate) fn error(failure: &ApiError) -> Map<String, Value> {
    let kind = match failure.status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400..500 => "invalid_request_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    let mut error = Map::new();
    error.insert("type".into(), kind.into());
    error.insert("message".into(), failure.message.as_str().into());
    if let ErrorReason::Leak(key) = &failure.reason {
        error.insert("details".into(), json!({"error_code": key}));
    }
    error
}

fn turn(message: &Value) -> Result<ChatMessage, String> {
    let role = match message["role"].as_str() {
        Some("user") => MessageRole::User,
        Some("assistant") => MessageRole::Assistant,
        _ => return Err("messages: Input should be 'user' or 'assistant'".into()),
    };
    let results = list(&message["content"]).iter().filter(|block| block["type"] == "tool_result");
    Ok(ChatMessage {
        role,
        text: text(&message["content"]),
        tool_results: results.map(|block| text(&block["content"])).collect(),
    })
}

/// The text of a content value: a string, or blocks.
fn text(content: &Value) -> String {
    let block = |block: &'_ Value| match block["type"].as_str()? {
        "text" => block["text"].as_str().map(str::to_owned),
        "image" => Some("[image]".to_owned()),
        _ => None,
    };
    match content {
        Value::String(text) => text.clone(),
        blocks => list(blocks).iter().filter_map(block).collect::<Vec<_>>().join("\n"),
    }
}

/// A message without content, as at the start of a stream.
fn message(asked: &ChatRequest, answer: &ChatResponse) -> Value {
    json!({
        "id": "msg_echo",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": {
            "input_tokens": answer.usage.prompt,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 1,
            "service_tier": "standard",
        },
    })
}

fn blocks(answer: &ChatResponse, model: &str) -> Vec<Value> {
    let mut blocks = Vec::new();
    if let Some(thinking) = &answer.thinking {
        blocks.push(json!({"type": "thinking", "thinking": thinking, "signature": signature(model)}));
    }
    if !answer.text.is_empty() {
        blocks.push(json!({"type": "text", "text": answer.text}));
    }
    blocks.extend(answer.calls.iter().map(|call| {
        json!({"type": "tool_use", "id": format!("toolu_{}", call.id), "name": call.name, "input": call.arguments})
    }));
    blocks
}

/// Empties a block and returns the deltas that fill it.
fn deltas(block: &mut Value) -> Vec<Value> {
    let kind = block["type"].as_str().unwrap_or_default().to_owned();
    let mut take = |name: &str| std::mem::replace(&mut block[name], "".into());
    match kind.as_str() {
        "thinking" => {
            let (thinking, signature) = (take("thinking"), take("signature"));
            let pieces = split(thinking.as_str().unwrap_or_default());
            let mut deltas: Vec<Value> =
                pieces.iter().map(|piece| json!({"type": "thinking_delta", "thinking": piece})).collect();
            deltas.push(json!({"type": "signature_delta", "signature": signature}));
            deltas
        }
        "text" => {
            let text = take("text");
            let pieces = split(text.as_str().unwrap_or_default());
            pieces.iter().map(|piece| json!({"type": "text_delta", "text": piece})).collect()
        }
        _ => {
            let input = std::mem::replace(&mut block["input"], json!({})).to_string();
            split(&input).iter().map(|piece| json!({"type": "input_json_delta", "partial_json": piece})).collect()
        }
    }
}

/// An event whose data repeats its name.
fn event(name: &'static str, rest: Value) -> Event {
    let mut data = json!({"type": name});
    if let (Value::Object(data), Value::Object(rest)) = (&mut data, rest) {
        data.extend(rest);
    }
    Event { name: Some(name), data: data.to_string(), has_content: false }
}

fn stop_reason(answer: &ChatResponse) -> &'static str {
    match answer.stop {
        StopReason::Finished => "end_turn",
        StopReason::Length => "max_tokens",
        StopReason::StopSequence(_) => "stop_sequence",
        StopReason::Tools => "tool_use",
    }
}

fn stop_sequence(answer: &ChatResponse) -> Option<&str> {
    match &answer.stop {
        StopReason::StopSequence(word) => Some(word),
        _ => None,
    }
}

fn output_tokens(answer: &ChatResponse) -> u64 {
    answer.usage.completion + answer.usage.thinking
}
