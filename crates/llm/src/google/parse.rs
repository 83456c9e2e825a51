//! Parses a client's `generateContent` request into a [`Chat`].

use serde_json::Value;

use super::fields::{Object, field, object, objects, text};
use super::{parts, resource, schema};
use crate::Error;
use crate::chat::{
    Chat, ChatRole, ContentPart, Effort, Message, Protocol, RawBody, Reasoning, ResponseFormat, Tool, ToolChoice,
};

/// Parses the supported fields and keeps the original body.
pub(super) fn chat(body: Object) -> Result<Chat, Error> {
    if !matches!(field(&body, "contents"), Some(Value::Array(_) | Value::Object(_))) {
        return Err(Error::BadRequest { kind: "invalid_argument".into() });
    }
    let mut chat = typed(&body);
    chat.raw = Some(RawBody { protocol: Protocol::Google, body });
    Ok(chat)
}

/// The supported fields of a request.
pub(super) fn typed(body: &Object) -> Chat {
    let none = Object::new();
    let settings = object(body, "generationConfig").unwrap_or(&none);
    let number = |name| field(settings, name).and_then(Value::as_f64);
    let whole = |name| field(settings, name).and_then(Value::as_i64);
    Chat {
        model: text(body, "model").map(|model| resource(model).1.to_owned()).unwrap_or_default(),
        messages: messages(body),
        tools: tools(body),
        tool_choice: tool_choice(body),
        // The API has no such parameter.
        parallel_tool_calls: None,
        format: format(settings),
        max_tokens: whole("maxOutputTokens").and_then(|tokens| tokens.try_into().ok()),
        temperature: number("temperature"),
        top_p: number("topP"),
        frequency_penalty: number("frequencyPenalty"),
        presence_penalty: number("presencePenalty"),
        seed: whole("seed"),
        // `candidateCount` remains in the raw request.
        n: None,
        stop: stop(settings),
        reasoning: object(settings, "thinkingConfig").and_then(reasoning),
        stream: false,
        raw: None,
    }
}

/// One message for the system instruction, if present, and one per `contents` entry.
fn messages(body: &Object) -> Vec<Message> {
    let instructions = object(body, "systemInstruction").map(|instructions| Message {
        role: ChatRole::System,
        parts: parts::parse_parts(instructions, |_| String::new()),
    });
    let turns = objects(body, "contents").into_iter().enumerate().map(|(turn, content)| Message {
        role: if text(content, "role") == Some("model") { ChatRole::Assistant } else { ChatRole::User },
        parts: parts::parse_parts(content, |call| format!("call_{turn}_{call}")),
    });
    let mut messages: Vec<Message> = instructions.into_iter().chain(turns).collect();
    pair_results_with_calls(&mut messages);
    messages
}

/// Results without an ID are matched to the calls of the same function in order.
fn pair_results_with_calls(messages: &mut [Message]) {
    let mut open: Vec<(String, String)> = Vec::new();
    for (turn, message) in messages.iter_mut().enumerate() {
        for (place, part) in message.parts.iter_mut().enumerate() {
            match part {
                ContentPart::ToolCall { id, name, .. } => open.push((id.clone(), name.clone())),
                ContentPart::ToolResult { id, name, .. } => {
                    let answered = open.iter().position(|(call, function)| match id.is_empty() {
                        true => name.as_deref() == Some(function),
                        false => call == id,
                    });
                    match answered.map(|place| open.remove(place)) {
                        Some((call, _)) => *id = call,
                        None if id.is_empty() => *id = format!("result_{turn}_{place}"),
                        None => {}
                    }
                }
                _ => {}
            }
        }
    }
}

fn tools(body: &Object) -> Vec<Tool> {
    let declarations = objects(body, "tools").into_iter().flat_map(|tool| objects(tool, "functionDeclarations"));
    let tools = declarations.filter_map(|declaration| {
        let schema = field(declaration, "parametersJsonSchema").cloned();
        let schema = schema.or_else(|| field(declaration, "parameters").map(schema::json_schema));
        Some(Tool {
            name: text(declaration, "name")?.to_owned(),
            description: text(declaration, "description").map(str::to_owned),
            schema: schema.unwrap_or_else(|| serde_json::json!({"type": "object", "properties": {}})),
            strict: false,
            cache_control: None,
        })
    });
    tools.collect()
}

fn tool_choice(body: &Object) -> Option<ToolChoice> {
    let calling = object(object(body, "toolConfig")?, "functionCallingConfig")?;
    let allowed = field(calling, "allowedFunctionNames").and_then(Value::as_array);
    match text(calling, "mode")?.to_ascii_uppercase().as_str() {
        "ANY" => match allowed.map(Vec::as_slice) {
            Some([Value::String(only)]) => Some(ToolChoice::Tool(only.clone())),
            _ => Some(ToolChoice::Required),
        },
        "NONE" => Some(ToolChoice::None),
        "AUTO" | "VALIDATED" => Some(ToolChoice::Auto),
        _ => None,
    }
}

fn format(settings: &Object) -> Option<ResponseFormat> {
    let json_schema = field(settings, "responseJsonSchema").cloned();
    let schema = json_schema.or_else(|| field(settings, "responseSchema").map(schema::json_schema));
    if let Some(schema) = schema {
        let title = schema.get("title").and_then(Value::as_str);
        return Some(ResponseFormat::Schema { name: title.unwrap_or("answer").to_owned(), schema });
    }
    (text(settings, "responseMimeType") == Some("application/json")).then_some(ResponseFormat::Json)
}

fn stop(settings: &Object) -> Vec<String> {
    let words = field(settings, "stopSequences").and_then(Value::as_array);
    words.into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

fn reasoning(thinking: &Object) -> Option<Reasoning> {
    let level = text(thinking, "thinkingLevel").map(str::to_ascii_uppercase);
    let effort = match level.as_deref() {
        Some("MINIMAL") => Some(Effort::Minimal),
        Some("LOW") => Some(Effort::Low),
        Some("MEDIUM") => Some(Effort::Medium),
        Some("HIGH") => Some(Effort::High),
        _ => None,
    };
    if let Some(effort) = effort {
        return Some(Reasoning::Effort(effort));
    }
    match field(thinking, "thinkingBudget").and_then(Value::as_i64) {
        Some(0) => Some(Reasoning::Off),
        Some(budget) => Some(u32::try_from(budget).map_or(Reasoning::On, Reasoning::Budget)),
        None => {
            let shown = field(thinking, "includeThoughts").and_then(Value::as_bool).unwrap_or(false);
            shown.then_some(Reasoning::On)
        }
    }
}
