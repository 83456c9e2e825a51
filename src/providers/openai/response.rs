//! An answer that came whole, read.

use serde_json::{Map, Value};

use super::{content, failure};
use crate::providers::chat::{Part, Protocol, Raw, Stop, Usage};
use crate::providers::{Completion, Error};

pub(super) fn read(body: &[u8]) -> Result<Completion, Error> {
    let Ok(Value::Object(body)) = serde_json::from_slice(body) else {
        return Err(Error::Unreadable("it is no JSON object"));
    };
    let choice = first_choice(&body);
    // Some gateways report a failure of the provider behind them under a status of success.
    let failure = failure::inside(&body).or_else(|| choice?.as_object().and_then(failure::inside));
    if let Some(error) = failure {
        return Err(error);
    }
    let choice = choice.ok_or(Error::Unreadable("it has no choices"))?;
    let message = &choice["message"];
    if !message.is_object() {
        return Err(Error::Unreadable("its choice has no message"));
    }
    let mut parts = content::answer(message);
    // It is in the raw body, for callers who know more.
    parts.retain(|part| !matches!(part, Part::Unread { .. }));
    let has_calls = parts.iter().any(|part| matches!(part, Part::ToolCall { .. }));
    Ok(Completion {
        id: body.get("id").and_then(content::text).unwrap_or_default().to_owned(),
        model: body.get("model").and_then(content::text).unwrap_or_default().to_owned(),
        stop: stop(choice, content::refusal(message).is_some(), has_calls),
        usage: body.get("usage").and_then(usage).unwrap_or_default(),
        parts,
        raw: Some(Raw { protocol: Protocol::OpenAi, body }),
    })
}

/// The choice that is the answer: a caller who wants several reads the others from the raw body.
pub(super) fn first_choice(body: &Map<String, Value>) -> Option<&Value> {
    let choices = body.get("choices")?.as_array()?;
    choices.iter().find(|choice| choice["index"] == 0 || choice["index"].is_null())
}

/// Why the model stopped. It may refuse under the reason `stop`, and call a tool it was told to call under the same.
pub(super) fn stop(choice: &Value, refused: bool, has_calls: bool) -> Stop {
    match content::text(&choice["finish_reason"]) {
        _ if refused => Stop::Refused,
        Some("content_filter") => Stop::Refused,
        Some("length") => Stop::Length,
        Some("tool_calls" | "function_call") => Stop::Tools,
        None | Some("stop") if has_calls => Stop::Tools,
        // vLLM says here which word it was; OpenAI does not tell.
        None | Some("stop") if choice["stop_reason"].is_string() => Stop::StopWord,
        None | Some("stop") => Stop::Finished,
        Some(other) => Stop::Other(other.to_owned()),
    }
}

/// Nothing where there is no count at all.
pub(super) fn usage(usage: &Value) -> Option<Usage> {
    let count = |value: &Value| value.as_u64().unwrap_or_default();
    usage.is_object().then(|| Usage {
        prompt: count(&usage["prompt_tokens"]),
        completion: count(&usage["completion_tokens"]),
        cached: count(&usage["prompt_tokens_details"]["cached_tokens"]),
        reasoning: count(&usage["completion_tokens_details"]["reasoning_tokens"]),
    })
}
