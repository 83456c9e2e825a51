//! Parses a client's Messages API request.

use serde_json::{Map, Value};

use super::{blocks, thinking};
use crate::Error;
use crate::chat::{Chat, ChatRole, Message, Protocol, RawBody, ResponseFormat, Tool, ToolChoice};

/// The supported fields, along with the original body.
pub(super) fn chat(body: Map<String, Value>) -> Result<Chat, Error> {
    let model = body.get("model").and_then(Value::as_str).ok_or_else(invalid_request)?.to_owned();
    let number = |member: &str| body.get(member).and_then(Value::as_f64);
    let list = |member: &str| body.get(member).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Ok(Chat {
        model,
        messages: messages(&body)?,
        // Server tools have no schema. They remain in the raw body and are not translated.
        tools: list("tools").iter().filter_map(tool).collect(),
        tool_choice: body.get("tool_choice").and_then(tool_choice),
        parallel_tool_calls: body.get("tool_choice").and_then(parallel),
        format: body.get("output_config").and_then(|config| format(config.get("format")?)),
        max_tokens: body.get("max_tokens").and_then(Value::as_u64).and_then(|tokens| tokens.try_into().ok()),
        temperature: number("temperature"),
        top_p: number("top_p"),
        frequency_penalty: None,
        presence_penalty: None,
        seed: None,
        n: None,
        stop: list("stop_sequences").iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        reasoning: thinking::parse(&body),
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        raw: Some(RawBody { protocol: Protocol::Anthropic, body }),
    })
}

fn messages(body: &Map<String, Value>) -> Result<Vec<Message>, Error> {
    let mut messages = Vec::new();
    if let Some(system) = body.get("system").filter(|system| !system.is_null()) {
        messages.push(Message { role: ChatRole::System, parts: blocks::read_all(system) });
    }
    for message in body.get("messages").and_then(Value::as_array).ok_or_else(invalid_request)? {
        let role = match message.get("role").and_then(Value::as_str) {
            Some("user") => ChatRole::User,
            Some("assistant") => ChatRole::Assistant,
            Some("system") => ChatRole::System,
            _ => return Err(invalid_request()),
        };
        let content = message.get("content").filter(|content| content.is_string() || content.is_array());
        messages.push(Message { role, parts: blocks::read_all(content.ok_or_else(invalid_request)?) });
    }
    Ok(messages)
}

fn tool(tool: &Value) -> Option<Tool> {
    Some(Tool {
        name: tool.get("name")?.as_str()?.to_owned(),
        description: tool.get("description").and_then(Value::as_str).map(str::to_owned),
        schema: tool.get("input_schema")?.clone(),
        strict: tool.get("strict").and_then(Value::as_bool).unwrap_or(false),
        cache_control: tool.get("cache_control").filter(|control| !control.is_null()).cloned(),
    })
}

fn tool_choice(choice: &Value) -> Option<ToolChoice> {
    match choice.get("type")?.as_str()? {
        "auto" => Some(ToolChoice::Auto),
        "none" => Some(ToolChoice::None),
        "any" => Some(ToolChoice::Required),
        "tool" => Some(ToolChoice::Tool(choice.get("name")?.as_str()?.to_owned())),
        _ => None,
    }
}

fn parallel(choice: &Value) -> Option<bool> {
    Some(!choice.get("disable_parallel_tool_use")?.as_bool()?)
}

fn format(format: &Value) -> Option<ResponseFormat> {
    // The API has no schema name; other protocols require one.
    Some(ResponseFormat::Schema { name: "answer".into(), schema: format.get("schema")?.clone() })
}

fn invalid_request() -> Error {
    Error::BadRequest { kind: "invalid_request_error".into() }
}
