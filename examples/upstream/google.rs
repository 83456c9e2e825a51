//! Google Gemini `generateContent` API.

use serde_json::{Map, Value, json};

use crate::echo::{self, ChatMessage, ChatRequest, ChatResponse, MessageRole, OutputFormat, StopReason};
use crate::error::{ApiError, ErrorReason, RetryHint};
use crate::signatures::signature;
use crate::stream::{Event, split};
use crate::{list, strings};

pub(crate) fn parse_request(body: &Value, model: String, stream: bool) -> Result<ChatRequest, String> {
    let contents = body["contents"].as_array().filter(|contents| !contents.is_empty());
    let instructions = text(member(body, "systemInstruction"));
    let mut turns = vec![ChatMessage { role: MessageRole::System, text: instructions, tool_results: Vec::new() }];
    for content in contents.ok_or("contents is not specified")? {
        turns.push(turn(content)?);
    }
    let config = member(body, "generationConfig");
    let schemas = ["responseJsonSchema", "responseSchema"].map(|name| member(config, name));
    let is_json = member(config, "responseMimeType") == "application/json";
    let declares = |tool: &Value| !list(member(tool, "functionDeclarations")).is_empty();
    Ok(ChatRequest {
        model,
        messages: turns,
        has_tools: list(&body["tools"]).iter().any(declares),
        format: match schemas.into_iter().find(|schema| schema.is_object()) {
            Some(schema) => Some(OutputFormat::Schema(schema.clone())),
            None => is_json.then_some(OutputFormat::Json),
        },
        reasoning: member(member(config, "thinkingConfig"), "includeThoughts") == true,
        max_tokens: member(config, "maxOutputTokens").as_u64(),
        stop: strings(member(config, "stopSequences")),
        stream,
        stream_usage: true,
    })
}

pub(crate) fn full_response(asked: &ChatRequest, answer: &ChatResponse) -> Value {
    let mut parts = Vec::new();
    parts.extend(answer.thinking.as_ref().map(|thinking| json!({"text": thinking, "thought": true})));
    if !answer.text.is_empty() {
        parts.push(json!({"text": answer.text}));
    }
    parts.extend(calls(asked, answer));
    if let Some(part) = parts.last_mut().filter(|_| answer.thinking.is_some() && answer.calls.is_empty()) {
        part["thoughtSignature"] = signature(&asked.model).into();
    }
    response(asked, answer, parts, true)
}

pub(crate) fn stream_events(asked: &ChatRequest, answer: &ChatResponse) -> Vec<Event> {
    let mut parts: Vec<Value> = Vec::new();
    let thinking = split(answer.thinking.as_deref().unwrap_or_default());
    parts.extend(thinking.iter().map(|piece| json!({"text": piece, "thought": true})));
    parts.extend(split(&answer.text).iter().map(|piece| json!({"text": piece})));
    parts.extend(calls(asked, answer));
    let mut events: Vec<Event> =
        parts.into_iter().map(|part| Event::data(&response(asked, answer, vec![part], false), true)).collect();
    let mut last = json!({"text": ""});
    if answer.thinking.is_some() && answer.calls.is_empty() {
        last["thoughtSignature"] = signature(&asked.model).into();
    }
    events.push(Event::data(&response(asked, answer, vec![last], true), false));
    events
}

pub(crate) fn models(length: Option<String>, token: Option<String>) -> Value {
    let start = token.and_then(|token| token.parse().ok()).unwrap_or(0);
    let (page, next) = echo::page(start, length.and_then(|length| length.parse().ok()));
    let model = |id: &&str| {
        json!({
            "name": format!("models/{id}"),
            "version": "1",
            "displayName": id.replace('-', " "),
            "description": "Says what it hears",
            "inputTokenLimit": 1_048_576,
            "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        })
    };
    let mut list = json!({"models": page.iter().map(model).collect::<Vec<_>>()});
    if let Some(next) = next {
        list["nextPageToken"] = next.to_string().into();
    }
    list
}

pub(crate) fn error(failure: &ApiError) -> Map<String, Value> {
    let status = match failure.status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        408 | 504 => "DEADLINE_EXCEEDED",
        429 => "RESOURCE_EXHAUSTED",
        400..500 => "INVALID_ARGUMENT",
        503 | 529 => "UNAVAILABLE",
        _ => "INTERNAL",
    };
    let detail = |kind: &str, rest: Value| {
        let mut detail = json!({"@type": format!("type.googleapis.com/google.rpc.{kind}")});
        if let (Value::Object(detail), Value::Object(rest)) = (&mut detail, rest) {
            detail.extend(rest);
        }
        detail
    };
    let retry_info = || detail("RetryInfo", json!({"retryDelay": "2s"}));
    let info = |reason: &str| detail("ErrorInfo", json!({"reason": reason, "domain": "googleapis.com"}));
    let details = match &failure.reason {
        ErrorReason::Quota => {
            let violation = json!({
                "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
                "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
                "quotaValue": "50",
            });
            // The delay is included although retrying does not help.
            vec![detail("QuotaFailure", json!({"violations": [violation]})), retry_info()]
        }
        ErrorReason::Key => vec![info("API_KEY_INVALID")],
        ErrorReason::Leak(key) => vec![info(key)],
        ErrorReason::Status if failure.retry_hint == Some(RetryHint::RetryInfo) => vec![retry_info()],
        ErrorReason::Status => Vec::new(),
    };
    let mut error = Map::new();
    error.insert("code".into(), failure.status.into());
    error.insert("message".into(), failure.message.as_str().into());
    error.insert("status".into(), status.into());
    if !details.is_empty() {
        error.insert("details".into(), details.into());
    }
    error
}

fn turn(content: &Value) -> Result<ChatMessage, String> {
    let role = match content["role"].as_str() {
        Some("user" | "function") | None => MessageRole::User,
        Some("model") => MessageRole::Assistant,
        _ => return Err("Please use a valid role: user, model.".into()),
    };
    let responses = list(&content["parts"]).iter().map(|part| member(part, "functionResponse"));
    let results = responses.filter(|response| response.is_object()).map(result).collect();
    Ok(ChatMessage { role, text: text(content), tool_results: results })
}

/// A function result is an object; an object with a single text is converted to that text.
fn result(response: &Value) -> String {
    let response = &response["response"];
    let values: Vec<&Value> = response.as_object().into_iter().flat_map(Map::values).collect();
    match values[..] {
        [Value::String(text)] => text.clone(),
        _ => response.to_string(),
    }
}

fn text(content: &Value) -> String {
    let part = |part: &'_ Value| match part {
        part if ["inlineData", "fileData"].iter().any(|name| member(part, name).is_object()) => Some("[image]".into()),
        part if part["thought"] == true => None,
        part => part["text"].as_str().map(str::to_owned),
    };
    list(&content["parts"]).iter().filter_map(part).collect::<Vec<String>>().join("\n")
}

/// A member by its documented name. Google also accepts snake case, and its SDK uses it for some members.
fn member<'a>(object: &'a Value, name: &str) -> &'a Value {
    let underscored = || {
        let letters = name.chars().flat_map(|letter| {
            [letter.is_ascii_uppercase().then_some('_'), Some(letter.to_ascii_lowercase())].into_iter().flatten()
        });
        object.get(letters.collect::<String>())
    };
    object.get(name).or_else(underscored).unwrap_or(&Value::Null)
}

/// Of calls that were thought about, the first is signed.
fn calls(asked: &ChatRequest, answer: &ChatResponse) -> impl Iterator<Item = Value> {
    answer.calls.iter().enumerate().map(|(index, call)| {
        let id = format!("call_{}", call.id);
        let mut part = json!({"functionCall": {"id": id, "name": call.name, "args": call.arguments}});
        if index == 0 && answer.thinking.is_some() {
            part["thoughtSignature"] = signature(&asked.model).into();
        }
        part
    })
}

fn response(asked: &ChatRequest, answer: &ChatResponse, parts: Vec<Value>, is_last: bool) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if is_last {
        // Tool calls have no separate finish reason.
        candidate["finishReason"] = if answer.stop == StopReason::Length { "MAX_TOKENS" } else { "STOP" }.into();
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": usage(answer),
        "modelVersion": asked.model,
        "responseId": "echo",
    })
}

fn usage(answer: &ChatResponse) -> Value {
    let used = &answer.usage;
    let mut usage = json!({
        "promptTokenCount": used.prompt,
        "candidatesTokenCount": used.completion,
        "totalTokenCount": used.prompt + used.completion + used.thinking,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": used.prompt}],
    });
    if used.thinking > 0 {
        usage["thoughtsTokenCount"] = used.thinking.into();
    }
    usage
}
