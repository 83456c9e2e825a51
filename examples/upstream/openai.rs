//! OpenAI Chat Completions API.

use serde_json::{Map, Value, json};

use crate::echo::{ChatMessage, ChatRequest, ChatResponse, MODELS, MessageRole, OutputFormat, StopReason, ToolCall};
use crate::error::{ApiError, ErrorReason};
use crate::signatures::{SIGNING_PREFIX, signature};
use crate::stream::{Event, split};
use crate::{list, strings};

const CREATED: u64 = 1_700_000_000;

pub(crate) fn parse_request(body: &Value) -> Result<ChatRequest, String> {
    let model = body["model"].as_str().ok_or("`model` is missing")?;
    let messages = body["messages"].as_array().filter(|messages| !messages.is_empty());
    let stop = match &body["stop"] {
        Value::String(word) => vec![word.clone()],
        words => strings(words),
    };
    let format = match body["response_format"]["type"].as_str() {
        Some("json_schema") => Some(OutputFormat::Schema(body["response_format"]["json_schema"]["schema"].clone())),
        Some("json_object") => Some(OutputFormat::Json),
        _ => None,
    };
    Ok(ChatRequest {
        model: model.to_owned(),
        messages: messages.ok_or("`messages` is missing or empty")?.iter().map(turn).collect::<Result<_, _>>()?,
        has_tools: !list(&body["tools"]).is_empty(),
        format,
        reasoning: body["reasoning_effort"].as_str().is_some_and(|effort| effort != "none"),
        max_tokens: body["max_completion_tokens"].as_u64().or_else(|| body["max_tokens"].as_u64()),
        stop,
        stream: body["stream"] == true,
        stream_usage: body["stream_options"]["include_usage"] == true,
    })
}

pub(crate) fn full_response(asked: &ChatRequest, answer: &ChatResponse) -> Value {
    let mut message = json!({"role": "assistant", "content": answer.text, "refusal": null, "annotations": []});
    if let Some(thinking) = &answer.thinking {
        // OpenAI does not return it; compatible servers use this name.
        message["reasoning_content"] = thinking.as_str().into();
    }
    if !answer.calls.is_empty() {
        message["content"] = Value::Null;
        message["tool_calls"] = answer.calls.iter().map(|call| tool_call(call, &call.arguments.to_string())).collect();
    }
    if let Some((details, proof)) = signed_reasoning(asked, answer) {
        message["reasoning_details"] = details;
        if !answer.calls.is_empty() {
            message["tool_calls"][0]["extra_content"] = proof;
        }
    }
    json!({
        "id": "chatcmpl-echo",
        "object": "chat.completion",
        "created": CREATED,
        "model": asked.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(answer)}],
        "usage": usage(answer),
        "service_tier": "default",
        "system_fingerprint": "fp_echo",
    })
}

pub(crate) fn stream_events(asked: &ChatRequest, answer: &ChatResponse) -> Vec<Event> {
    let chunk = |choices: Value, usage: Value, says: bool| {
        let mut chunk = json!({
            "id": "chatcmpl-echo",
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": asked.model,
            "system_fingerprint": "fp_echo",
            "choices": choices,
        });
        if asked.stream_usage {
            chunk["usage"] = usage;
        }
        Event::data(&chunk, says)
    };
    let delta = |delta: Value, says: bool| {
        chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]), Value::Null, says)
    };
    let mut events = vec![delta(json!({"role": "assistant", "content": "", "refusal": null}), false)];
    let thinking = split(answer.thinking.as_deref().unwrap_or_default());
    events.extend(thinking.iter().map(|piece| delta(json!({"reasoning_content": piece}), true)));
    events.extend(split(&answer.text).iter().map(|piece| delta(json!({"content": piece}), true)));
    let signed = signed_reasoning(asked, answer);
    events.extend(signed.iter().map(|(details, _)| delta(json!({"reasoning_details": details}), true)));
    for (index, call) in answer.calls.iter().enumerate() {
        let mut opening = tool_call(call, "");
        opening["index"] = index.into();
        if let Some((_, proof)) = signed.as_ref().filter(|_| index == 0) {
            opening["extra_content"] = proof.clone();
        }
        events.push(delta(json!({"tool_calls": [opening]}), true));
        events.extend(
            split(&call.arguments.to_string())
                .iter()
                .map(|piece| delta(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}), true)),
        );
    }
    let last = json!([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": finish_reason(answer)}]);
    events.push(chunk(last, Value::Null, false));
    if asked.stream_usage {
        events.push(chunk(json!([]), usage(answer), false));
    }
    events.push(Event { name: None, data: "[DONE]".into(), has_content: false });
    events
}

pub(crate) fn models() -> Value {
    let model = |id: &&str| json!({"id": id, "object": "model", "created": CREATED, "owned_by": "upstream"});
    json!({"object": "list", "data": MODELS.iter().map(model).collect::<Vec<_>>()})
}

pub(crate) fn error(failure: &ApiError) -> Map<String, Value> {
    let (kind, code) = match (&failure.reason, failure.status) {
        (ErrorReason::Leak(key), _) => ("invalid_request_error", Some(key.as_str())),
        (ErrorReason::Quota, _) => ("insufficient_quota", Some("insufficient_quota")),
        (_, 401) => ("invalid_request_error", Some("invalid_api_key")),
        (_, 404) => ("invalid_request_error", Some("model_not_found")),
        (_, 429) => ("requests", Some("rate_limit_exceeded")),
        (_, 400..500) => ("invalid_request_error", None),
        _ => ("server_error", None),
    };
    let mut error = Map::new();
    error.insert("message".into(), failure.message.as_str().into());
    error.insert("type".into(), kind.into());
    error.insert("param".into(), Value::Null);
    error.insert("code".into(), code.into());
    error
}

/// Signed thinking as OpenRouter writes it, and a signed call as Google's compatible API does, of models that sign.
fn signed_reasoning(asked: &ChatRequest, answer: &ChatResponse) -> Option<(Value, Value)> {
    (answer.thinking.is_some() && asked.model.starts_with(SIGNING_PREFIX)).then(|| {
        let signature = signature(&asked.model);
        let detail = json!({"type": "reasoning.encrypted", "index": 0, "format": "echo", "data": signature});
        (json!([detail]), json!({"google": {"thought_signature": signature}}))
    })
}

fn turn(message: &Value) -> Result<ChatMessage, String> {
    let text = match &message["content"] {
        Value::String(text) => text.clone(),
        parts => list(parts).iter().filter_map(part).collect::<Vec<_>>().join("\n"),
    };
    let role = match message["role"].as_str() {
        Some("system" | "developer") => MessageRole::System,
        Some("user") => MessageRole::User,
        Some("assistant") => MessageRole::Assistant,
        Some("tool") if message["tool_call_id"].is_string() => {
            return Ok(ChatMessage { role: MessageRole::User, text: String::new(), tool_results: vec![text] });
        }
        Some("tool") => return Err("a message of a tool has no `tool_call_id`".into()),
        _ => return Err("a message has no known `role`".into()),
    };
    Ok(ChatMessage { role, text, tool_results: Vec::new() })
}

fn part(part: &Value) -> Option<&str> {
    match part["type"].as_str()? {
        "text" => part["text"].as_str(),
        "image_url" => Some("[image]"),
        _ => None,
    }
}

fn tool_call(call: &ToolCall, arguments: &str) -> Value {
    let function = json!({"name": call.name, "arguments": arguments});
    json!({"id": format!("call_{}", call.id), "type": "function", "function": function})
}

fn finish_reason(answer: &ChatResponse) -> &'static str {
    match answer.stop {
        StopReason::Finished | StopReason::StopSequence(_) => "stop",
        StopReason::Length => "length",
        StopReason::Tools => "tool_calls",
    }
}

fn usage(answer: &ChatResponse) -> Value {
    let completion = answer.usage.completion + answer.usage.thinking;
    json!({
        "prompt_tokens": answer.usage.prompt,
        "completion_tokens": completion,
        "total_tokens": answer.usage.prompt + completion,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": answer.usage.thinking, "audio_tokens": 0},
    })
}
