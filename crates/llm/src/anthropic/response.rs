//! Parses buffered Anthropic responses.

use serde_json::Value;

use super::{blocks, error};
use crate::Error;
use crate::chat::{Completion, Protocol, RawBody, StopReason, Usage};

pub(super) fn completion(body: &[u8]) -> Result<Completion, Error> {
    let Ok(Value::Object(body)) = serde_json::from_slice(body) else {
        return Err(Error::InvalidResponse("response is not a JSON object"));
    };
    if body.get("type").and_then(Value::as_str) == Some("error") {
        return Err(error::from_event(&Value::Object(body)));
    }
    let text = |member: &str| body.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
    let content =
        body.get("content").and_then(Value::as_array).ok_or(Error::InvalidResponse("response has no content"))?;
    Ok(Completion {
        id: text("id"),
        model: text("model"),
        parts: content.iter().filter_map(blocks::read).collect(),
        stop: body.get("stop_reason").and_then(stop).ok_or(Error::InvalidResponse("response has no stop reason"))?,
        usage: body.get("usage").map(|usage| ReportedUsage::default().updated_with(usage).usage()).unwrap_or_default(),
        raw: Some(RawBody { protocol: Protocol::Anthropic, body }),
    })
}

/// The stop reason; `None` while the model has not stopped.
pub(super) fn stop(reason: &Value) -> Option<StopReason> {
    Some(match reason.as_str()? {
        "end_turn" => StopReason::Finished,
        "stop_sequence" => StopReason::StopSequence,
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "tool_use" => StopReason::Tools,
        "refusal" => StopReason::Refused,
        other => StopReason::Other(other.to_owned()),
    })
}

/// Token counts as the API reports them: `input` excludes cache reads and cache writes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReportedUsage {
    input: u64,
    cache_read: u64,
    cache_creation: u64,
    output: u64,
    thinking: u64,
}

impl ReportedUsage {
    /// Overwrites the counts that are present. In a stream they are cumulative and are reported more than once.
    pub(super) fn updated_with(self, usage: &Value) -> ReportedUsage {
        let count = |value: Option<&Value>, before: u64| value.and_then(Value::as_u64).unwrap_or(before);
        let thinking = usage.get("output_tokens_details").and_then(|details| details.get("thinking_tokens"));
        ReportedUsage {
            input: count(usage.get("input_tokens"), self.input),
            cache_read: count(usage.get("cache_read_input_tokens"), self.cache_read),
            cache_creation: count(usage.get("cache_creation_input_tokens"), self.cache_creation),
            output: count(usage.get("output_tokens"), self.output),
            thinking: count(thinking, self.thinking),
        }
    }

    pub(super) fn usage(self) -> Usage {
        Usage {
            prompt: self.input.saturating_add(self.cache_read).saturating_add(self.cache_creation),
            completion: self.output,
            cached: self.cache_read,
            reasoning: self.thinking,
        }
    }
}
