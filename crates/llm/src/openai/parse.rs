//! Parses a client's chat completion request.
//!
//! Fields that corbie acts on must have the right type, or the request is rejected with the field's name. All other
//! fields are left for the provider to validate.

use serde_json::{Map, Value, json};

use super::{content, parse_messages};
use crate::chat::{Effort, Protocol, RawBody, Reasoning, ResponseFormat, Tool, ToolChoice};
use crate::{Chat, Error};

pub(super) fn parse(body: Map<String, Value>) -> Result<Chat, Error> {
    let chat = read(&body)?;
    Ok(Chat { raw: Some(RawBody { protocol: Protocol::OpenAi, body }), ..chat })
}

/// The typed part of a request.
pub(super) fn read(body: &Map<String, Value>) -> Result<Chat, Error> {
    let messages = body.get("messages").and_then(Value::as_array).filter(|messages| !messages.is_empty());
    let max_tokens = match member(body, "max_completion_tokens", token_limit)? {
        Some(limit) => Some(limit),
        None => member(body, "max_tokens", token_limit)?,
    };
    Ok(Chat {
        model: member(body, "model", |value| value.as_str().map(str::to_owned))?.unwrap_or_default(),
        messages: parse_messages::read(messages.ok_or_else(|| invalid("messages"))?)?,
        tools: member(body, "tools", tools)?.unwrap_or_default(),
        tool_choice: member(body, "tool_choice", tool_choice)?.flatten(),
        parallel_tool_calls: member(body, "parallel_tool_calls", Value::as_bool)?,
        format: member(body, "response_format", format)?.flatten(),
        max_tokens: max_tokens.flatten(),
        temperature: member(body, "temperature", Value::as_f64)?,
        top_p: member(body, "top_p", Value::as_f64)?,
        frequency_penalty: member(body, "frequency_penalty", Value::as_f64)?,
        presence_penalty: member(body, "presence_penalty", Value::as_f64)?,
        seed: member(body, "seed", Value::as_i64)?,
        n: member(body, "n", |value| value.as_u64()?.try_into().ok())?,
        stop: member(body, "stop", stop)?.unwrap_or_default(),
        reasoning: member(body, "reasoning_effort", |value| value.as_str().map(reasoning))?.flatten(),
        stream: member(body, "stream", Value::as_bool)?.unwrap_or_default(),
        raw: None,
    })
}

/// An optional field: it may be missing or null, but not of another type.
fn member<T>(
    body: &Map<String, Value>,
    name: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, Error> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => read(value).map(Some).ok_or_else(|| invalid(name)),
    }
}

fn invalid(name: &str) -> Error {
    Error::invalid_parameter(name)
}

/// Clients of local servers send -1 for "no limit".
fn token_limit(value: &Value) -> Option<Option<u32>> {
    match value.as_i64()? {
        ..0 => Some(None),
        number => u32::try_from(number).ok().map(Some),
    }
}

/// Functions only: other tool types are specific to OpenAI and reach it in the raw body.
fn tools(value: &Value) -> Option<Vec<Tool>> {
    let functions = value.as_array()?.iter().map(|tool| (tool, &tool["function"]));
    let tools = functions.filter_map(|(tool, function)| {
        Some(Tool {
            name: content::text(&function["name"])?.to_owned(),
            description: content::text(&function["description"]).map(str::to_owned),
            // A function without `parameters` takes none.
            schema: match &function["parameters"] {
                Value::Null => json!({"type": "object", "properties": {}}),
                schema => schema.clone(),
            },
            strict: function["strict"] == true,
            cache_control: content::cache_control(tool).or_else(|| content::cache_control(function)).cloned(),
        })
    });
    Some(tools.collect())
}

/// The outer option is `None` for a wrong type, the inner one for a choice that other protocols cannot express.
fn tool_choice(value: &Value) -> Option<Option<ToolChoice>> {
    let word = match value {
        Value::String(word) => word.as_str(),
        Value::Object(choice) => match choice.get("type")?.as_str()? {
            "function" => {
                return Some(Some(ToolChoice::Tool(value["function"]["name"].as_str()?.to_owned())));
            }
            "allowed_tools" => value["allowed_tools"]["mode"].as_str()?,
            _ => return Some(None),
        },
        _ => return None,
    };
    match word {
        "auto" => Some(Some(ToolChoice::Auto)),
        "none" => Some(Some(ToolChoice::None)),
        "required" => Some(Some(ToolChoice::Required)),
        _ => None,
    }
}

fn format(value: &Value) -> Option<Option<ResponseFormat>> {
    let format = match value["type"].as_str()? {
        "json_object" => ResponseFormat::Json,
        "json_schema" => {
            let name = value["json_schema"]["name"].as_str().unwrap_or_default().to_owned();
            ResponseFormat::Schema { name, schema: value["json_schema"]["schema"].clone() }
        }
        _ => return Some(None),
    };
    Some(Some(format))
}

fn stop(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(word) => Some(vec![word.clone()]),
        Value::Array(words) => words.iter().map(|word| word.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

/// The provider may support effort values that are unknown here.
pub(super) fn reasoning(word: &str) -> Option<Reasoning> {
    let effort = match word {
        "none" => return Some(Reasoning::Off),
        "minimal" => Effort::Minimal,
        "low" => Effort::Low,
        "medium" => Effort::Medium,
        "high" => Effort::High,
        "xhigh" | "max" => Effort::Max,
        _ => return None,
    };
    Some(Reasoning::Effort(effort))
}
