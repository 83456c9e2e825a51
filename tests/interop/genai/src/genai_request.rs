//! Converts a golden chat to genai's types.
//!
//! Parts that genai does not support are omitted: that a tool failed, pictures in its result, and the `caller` of the
//! call.

use genai::chat::{
    Binary, ChatMessage, ChatOptions, ChatRequest, ChatResponseFormat, ContentPart, JsonSpec, ReasoningEffort, Tool,
    ToolCall, ToolChoice, ToolResponse,
};
use serde_json::Value;

pub(crate) fn chat_request(chat: &Value) -> ChatRequest {
    let request = ChatRequest::from_messages(list(&chat["messages"]).iter().flat_map(messages).collect());
    match list(&chat["tools"]) {
        [] => request,
        tools => request.with_tools(tools.iter().map(tool)),
    }
}

pub(crate) fn chat_options(chat: &Value) -> ChatOptions {
    let mut options = ChatOptions::default().with_capture_usage(true);
    options.max_tokens = chat["max_tokens"].as_u64().and_then(|limit| limit.try_into().ok());
    options.temperature = chat["temperature"].as_f64();
    options.top_p = chat["top_p"].as_f64();
    options.seed = chat["seed"].as_u64();
    options.stop_sequences = list(&chat["stop"]).iter().map(text).collect();
    options.tool_choice = match chat["tool_choice"].as_str() {
        Some("auto") => Some(ToolChoice::Auto),
        Some("none") => Some(ToolChoice::None),
        Some("required") => Some(ToolChoice::Required),
        _ => chat["tool_choice"]["tool"].as_str().map(ToolChoice::tool),
    };
    let format = &chat["format"];
    options.response_format = match format["type"].as_str() {
        Some("json") => Some(ChatResponseFormat::JsonMode),
        Some("schema") => Some(JsonSpec::new(text(&format["name"]), format["schema"].clone()).into()),
        _ => None,
    };
    let reasoning = &chat["reasoning"];
    let budget = reasoning["budget"].as_u64().and_then(|budget| budget.try_into().ok());
    options.reasoning_effort = match (reasoning.as_str(), reasoning["effort"].as_str(), budget) {
        (Some("off"), ..) => Some(ReasoningEffort::Zero),
        (_, Some(effort), _) => ReasoningEffort::from_keyword(effort),
        (_, _, budget) => budget.map(ReasoningEffort::Budget),
    };
    let thinks = !(reasoning.is_null() || reasoning == "off" || budget == Some(0));
    options.capture_reasoning_content = thinks.then_some(true);
    options
}

/// Tool results go in a separate message, before the rest of the turn.
fn messages(turn: &Value) -> Vec<ChatMessage> {
    let mut parts = Vec::new();
    let mut results = Vec::new();
    for part in list(&turn["parts"]) {
        match part["type"].as_str() {
            Some("text") => parts.push(ContentPart::Text(text(&part["text"]))),
            Some("image") => parts.push(image(&part["image"]).into()),
            Some("reasoning") => push_reasoning(part, &mut parts),
            Some("tool_call") => parts.push(tool_call(part).into()),
            Some("tool_result") => results.push(tool_result(part)),
            other => panic!("there is no part of the type {other:?}"),
        }
    }
    let mut messages = Vec::new();
    if !results.is_empty() {
        messages.push(ChatMessage::from(results));
    }
    if !parts.is_empty() {
        messages.push(match turn["role"].as_str() {
            Some("system") => ChatMessage::system(parts),
            Some("assistant") => ChatMessage::assistant(parts),
            _ => ChatMessage::user(parts),
        });
    }
    messages
}

fn image(image: &Value) -> Binary {
    let Some(url) = image["url"].as_str() else {
        return Binary::from_base64(text(&image["media_type"]), text(&image["base64"]), None);
    };
    let path = url.split('?').next().unwrap_or_default();
    let kind = match path.rsplit('.').next() {
        Some("jpg") => "image/jpeg",
        Some("png") => "image/png",
        Some("webp") => "image/webp",
        _ => "image/*",
    };
    Binary::from_url(kind, url, None)
}

fn push_reasoning(part: &Value, parts: &mut Vec<ContentPart>) {
    let proof = &part["proof"];
    if proof["type"] == "redacted_thinking" {
        parts.push(ContentPart::from_custom(proof.clone(), None));
    } else if let Some(signature) = proof["google"]["thought_signature"].as_str() {
        // Google's signature belongs to a part, and genai expects it before that part. Thoughts themselves are not sent
        // back.
        if part["text"] == "" {
            if proof["of_preceding_part"] != true {
                parts.push(ContentPart::Text(String::new()));
            }
            parts.insert(parts.len().saturating_sub(1), ContentPart::ThoughtSignature(signature.into()));
        }
    } else {
        parts.push(ContentPart::ReasoningContent(text(&part["text"])));
        if proof["type"] == "thinking" {
            parts.push(ContentPart::ThoughtSignature(text(&proof["signature"])));
        }
    }
}

fn tool(tool: &Value) -> Tool {
    let described = Tool::new(text(&tool["name"])).with_schema(tool["schema"].clone());
    match tool["description"].as_str() {
        Some(description) => described.with_description(description),
        None => described,
    }
}

fn tool_call(part: &Value) -> ToolCall {
    ToolCall {
        call_id: text(&part["id"]),
        fn_name: text(&part["name"]),
        fn_arguments: part["arguments"].clone(),
        thought_signatures: part["proof"]["google"]["thought_signature"]
            .as_str()
            .map(|signature| vec![signature.into()]),
    }
}

fn tool_result(part: &Value) -> ToolResponse {
    let texts = list(&part["content"]).iter().filter_map(|part| part["text"].as_str());
    let response = ToolResponse::new(text(&part["id"]), texts.collect::<Vec<_>>().join("\n"));
    match part["name"].as_str() {
        Some(name) => response.with_fn_name(name),
        None => response,
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
