//! Parses buffered OpenAI responses.

use serde_json::{Map, Value};

use super::{content, error};
use crate::chat::{ContentPart, Protocol, RawBody, StopReason, Usage};
use crate::{Completion, Error};

pub(super) fn read(body: &[u8]) -> Result<Completion, Error> {
    let Ok(Value::Object(body)) = serde_json::from_slice(body) else {
        return Err(Error::InvalidResponse("response is not a JSON object"));
    };
    let choice = first_choice(&body);
    // Some gateways report an upstream error with a success status.
    let failure = error::from_body(&body).or_else(|| choice?.as_object().and_then(error::from_body));
    if let Some(error) = failure {
        return Err(error);
    }
    let choice = choice.ok_or(Error::InvalidResponse("response has no choices"))?;
    let message = &choice["message"];
    if !message.is_object() {
        return Err(Error::InvalidResponse("choice has no message"));
    }
    let mut parts = content::answer(message);
    // The raw body still contains it for clients that support it.
    parts.retain(|part| !matches!(part, ContentPart::Unread { .. }));
    let has_calls = parts.iter().any(|part| matches!(part, ContentPart::ToolCall { .. }));
    Ok(Completion {
        id: body.get("id").and_then(content::text).unwrap_or_default().to_owned(),
        model: body.get("model").and_then(content::text).unwrap_or_default().to_owned(),
        stop: stop(choice, content::refusal(message).is_some(), has_calls),
        usage: body.get("usage").and_then(usage).unwrap_or_default(),
        parts,
        raw: Some(RawBody { protocol: Protocol::OpenAi, body }),
    })
}

/// The first choice. Clients that requested several take the rest from the raw body.
pub(super) fn first_choice(body: &Map<String, Value>) -> Option<&Value> {
    let choices = body.get("choices")?.as_array()?;
    choices.iter().find(|choice| choice["index"] == 0 || choice["index"].is_null())
}

/// The stop reason. A refusal, and a forced tool call, may be reported as `stop`.
pub(super) fn stop(choice: &Value, refused: bool, has_calls: bool) -> StopReason {
    match content::text(&choice["finish_reason"]) {
        _ if refused => StopReason::Refused,
        Some("content_filter") => StopReason::Refused,
        Some("length") => StopReason::Length,
        Some("tool_calls" | "function_call") => StopReason::Tools,
        None | Some("stop") if has_calls => StopReason::Tools,
        // vLLM reports the matched stop sequence here; OpenAI does not.
        None | Some("stop") if choice["stop_reason"].is_string() => StopReason::StopSequence,
        None | Some("stop") => StopReason::Finished,
        Some(other) => StopReason::Other(other.to_owned()),
    }
}

/// `None` if no usage is reported.
pub(super) fn usage(usage: &Value) -> Option<Usage> {
    let count = |value: &Value| value.as_u64().unwrap_or_default();
    usage.is_object().then(|| Usage {
        prompt: count(&usage["prompt_tokens"]),
        completion: count(&usage["completion_tokens"]),
        cached: count(&usage["prompt_tokens_details"]["cached_tokens"]),
        reasoning: count(&usage["completion_tokens_details"]["reasoning_tokens"]),
    })
}
