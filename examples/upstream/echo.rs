//! API-independent answers: an echo, tool calls, or an instance of a schema.

use serde_json::{Map, Value, json};

use crate::strings;

/// The listed models. Every other name works too.
pub(crate) const MODELS: [&str; 3] = ["echo-large", "echo-small", "echo-thinking"];

/// Maximum page size of lists, so that clients have to paginate.
pub(crate) const MAX_PAGE: usize = 2;

/// Maximum depth: references in a schema may be cyclic.
const MAX_SCHEMA_DEPTH: usize = 16;

/// An API-independent request.
#[derive(Debug, Default)]
pub(crate) struct ChatRequest {
    pub(crate) model: String,
    pub(crate) messages: Vec<ChatMessage>,
    pub(crate) has_tools: bool,
    pub(crate) format: Option<OutputFormat>,
    pub(crate) reasoning: bool,
    /// In words.
    pub(crate) max_tokens: Option<u64>,
    pub(crate) stop: Vec<String>,
    pub(crate) stream: bool,
    /// OpenAI reports the usage of a stream only on request.
    pub(crate) stream_usage: bool,
}

#[derive(Debug)]
pub(crate) struct ChatMessage {
    pub(crate) role: MessageRole,
    pub(crate) text: String,
    /// Tool results.
    pub(crate) tool_results: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageRole {
    System,
    User,
    Assistant,
}

#[derive(Debug)]
pub(crate) enum OutputFormat {
    Json,
    Schema(Value),
}

/// Either a text or tool calls.
#[derive(Debug)]
pub(crate) struct ChatResponse {
    pub(crate) thinking: Option<String>,
    pub(crate) text: String,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) stop: StopReason,
    pub(crate) usage: Usage,
}

#[derive(Debug)]
pub(crate) struct ToolCall {
    /// Unique across turns.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

#[derive(Debug, PartialEq)]
pub(crate) enum StopReason {
    Finished,
    Length,
    StopSequence(String),
    Tools,
}

/// Word counts, used as token counts.
#[derive(Debug)]
pub(crate) struct Usage {
    pub(crate) prompt: u64,
    /// Without thinking.
    pub(crate) completion: u64,
    pub(crate) thinking: u64,
}

pub(crate) fn answer(asked: &ChatRequest) -> ChatResponse {
    let answered =
        asked.messages.iter().rposition(|turn| turn.role == MessageRole::Assistant).map_or(0, |last| last + 1);
    let new = || asked.messages[answered..].iter().filter(|turn| turn.role == MessageRole::User);
    let results: Vec<&str> = new().flat_map(|turn| &turn.tool_results).map(String::as_str).collect();
    let heard = match results.is_empty() {
        true => last_text(&asked.messages).to_owned(),
        false => {
            let texts = new().map(|turn| turn.text.as_str()).filter(|text| !text.is_empty());
            results.iter().copied().chain(texts).collect::<Vec<_>>().join("\n")
        }
    };
    let calls = if asked.has_tools && results.is_empty() { calls(&heard, asked.messages.len()) } else { Vec::new() };
    let (text, stop) = match &asked.format {
        _ if !calls.is_empty() => (String::new(), StopReason::Tools),
        None => apply_limits(format!("echo: {heard}"), asked),
        Some(OutputFormat::Json) => apply_limits(json!({"echo": heard}).to_string(), asked),
        Some(OutputFormat::Schema(schema)) => apply_limits(schema_example(schema, schema, 0).to_string(), asked),
    };
    let thinking = asked.reasoning.then(|| format!("The user says: {heard}"));
    let usage = Usage {
        prompt: asked
            .messages
            .iter()
            .map(|turn| word_count(&turn.text) + turn.tool_results.iter().map(|r| word_count(r)).sum::<u64>())
            .sum(),
        completion: word_count(&text)
            + calls.iter().map(|call| 1 + word_count(&call.arguments.to_string())).sum::<u64>(),
        thinking: thinking.as_deref().map_or(0, word_count),
    };
    ChatResponse { thinking, text, calls, stop, usage }
}

/// One page of the models, and the start of the next.
pub(crate) fn page(start: usize, length: Option<usize>) -> (&'static [&'static str], Option<usize>) {
    let start = start.min(MODELS.len());
    let end = MODELS.len().min(start + length.unwrap_or(MAX_PAGE).clamp(1, MAX_PAGE));
    (&MODELS[start..end], (end < MODELS.len()).then_some(end))
}

fn last_text(turns: &[ChatMessage]) -> &str {
    let mut users = turns.iter().rev().filter(|turn| turn.role == MessageRole::User && !turn.text.is_empty());
    users.next().map_or("", |turn| &turn.text)
}

/// Parses `call NAME {json}` any number of times; ignores the rest.
fn calls(text: &str, turns: usize) -> Vec<ToolCall> {
    let mut calls = Vec::new();
    let mut rest = text.trim_start();
    while let Some(call) = rest.strip_prefix("call ") {
        let name = call.split([' ', '\n']).next().unwrap_or_default();
        let mut values = serde_json::Deserializer::from_str(&call[name.len()..]).into_iter::<Map<String, Value>>();
        let arguments = values.next().and_then(Result::ok);
        rest = match &arguments {
            Some(_) => call[name.len() + values.byte_offset()..].trim_start(),
            None => "",
        };
        let arguments = Value::Object(arguments.unwrap_or_default());
        calls.push(ToolCall { id: format!("{turns}_{}", calls.len()), name: name.to_owned(), arguments });
    }
    calls
}

/// Truncates a text at the first stop word and at the token limit.
fn apply_limits(mut text: String, asked: &ChatRequest) -> (String, StopReason) {
    let mut stop = StopReason::Finished;
    let found = asked.stop.iter().filter_map(|word| Some((text.find(word.as_str())?, word)));
    if let Some((at, word)) = found.min() {
        text.truncate(at);
        stop = StopReason::StopSequence(word.clone());
    }
    let most = asked.max_tokens.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    let kept = text.split_inclusive(char::is_whitespace).take(most).map(str::len).sum();
    if kept < text.len() {
        text.truncate(kept);
        stop = StopReason::Length;
    }
    (text, stop)
}

fn word_count(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

/// A minimal instance of a schema, for the keywords that matter to providers.
fn schema_example(schema: &Value, root: &Value, depth: usize) -> Value {
    let inner = |schema: &Value| schema_example(schema, root, depth + 1);
    if depth > MAX_SCHEMA_DEPTH {
        return Value::Null;
    }
    if let Some(path) = schema["$ref"].as_str() {
        return inner(path.strip_prefix('#').and_then(|path| root.pointer(path)).unwrap_or(&Value::Null));
    }
    if let Some(value) = schema.get("const").or_else(|| schema["enum"].get(0)) {
        return value.clone();
    }
    if let Some(variant) = ["anyOf", "oneOf", "allOf"].iter().find_map(|name| schema[name].get(0)) {
        return inner(variant);
    }
    let least = |name: &str| schema[name].as_u64().unwrap_or(0) as usize;
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str()).unwrap_or("object");
    // Google writes types in uppercase.
    match kind.to_ascii_lowercase().as_str() {
        "string" => "a".repeat(least("minLength").min(1000)).into(),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| 0.into()),
        "boolean" => false.into(),
        "array" => (0..least("minItems").min(10)).map(|_| inner(&schema["items"])).collect(),
        "object" => {
            let required = strings(&schema["required"]).into_iter();
            required.map(|name| (name.clone(), inner(&schema["properties"][name]))).collect()
        }
        _ => Value::Null,
    }
}
