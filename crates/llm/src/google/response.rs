//! Parses Google responses. Streaming shares these functions.

use serde_json::Value;

use super::fields::{Object, field, object, objects, text};
use super::parts;
use crate::Error;
use crate::chat::{Completion, ContentPart, Protocol, RawBody, StopReason, Usage};

pub(super) fn completion(body: Object) -> Result<Completion, Error> {
    let id = text(&body, "responseId").unwrap_or_default().to_owned();
    let (parts, stop) = match candidate(&body) {
        Some(candidate) => {
            let parts =
                object(candidate, "content").map(|content| parts::parse_parts(content, |call| call_id(&id, call)));
            let parts = parts.unwrap_or_default();
            let reason = text(candidate, "finishReason");
            if reason.is_none() && parts.is_empty() {
                return Err(Error::InvalidResponse("candidate is empty"));
            }
            let has_calls = parts.iter().any(|part| matches!(part, ContentPart::ToolCall { .. }));
            (parts, stop(reason.unwrap_or("STOP"), has_calls))
        }
        None if is_blocked(&body) => (Vec::new(), StopReason::Refused),
        None => return Err(Error::InvalidResponse("response has no candidate")),
    };
    let model = model(&body);
    let usage = usage(&body).unwrap_or_default();
    Ok(Completion { id, model, parts, stop, usage, raw: Some(RawBody { protocol: Protocol::Google, body }) })
}

/// The first candidate; corbie never requests more.
pub(super) fn candidate(body: &Object) -> Option<&Object> {
    let is_first = |candidate: &&Object| field(candidate, "index").and_then(Value::as_u64).unwrap_or(0) == 0;
    objects(body, "candidates").into_iter().find(is_first)
}

/// Whether the prompt was blocked, in which case there are no candidates.
pub(super) fn is_blocked(body: &Object) -> bool {
    object(body, "promptFeedback").is_some_and(|feedback| text(feedback, "blockReason").is_some())
}

pub(super) fn model(body: &Object) -> String {
    let model = text(body, "modelVersion").unwrap_or_default();
    model.strip_prefix("models/").unwrap_or(model).to_owned()
}

/// A deterministic ID for the n-th call of a response that provides none.
pub(super) fn call_id(response_id: &str, call: usize) -> String {
    match response_id {
        "" => format!("call_{call}"),
        response_id => format!("call_{response_id}_{call}"),
    }
}

/// Google also reports `STOP` after a stop sequence and when the model waits for tools.
pub(super) fn stop(reason: &str, has_calls: bool) -> StopReason {
    match reason {
        "STOP" if has_calls => StopReason::Tools,
        "STOP" => StopReason::Finished,
        // `CONTINUATION` is a per-request limit of Google's; `continuationToken` in the raw response resumes it.
        "MAX_TOKENS" | "CONTINUATION" => StopReason::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => StopReason::Refused,
        word if is_word(word) => StopReason::Other(word.to_owned()),
        _ => StopReason::Other("OTHER".to_owned()),
    }
}

/// Token usage, if reported. Results of Google's built-in tools count as prompt tokens.
pub(super) fn usage(body: &Object) -> Option<Usage> {
    let counts = object(body, "usageMetadata")?;
    let count = |name| field(counts, name).and_then(Value::as_u64).unwrap_or(0);
    let reasoning = count("thoughtsTokenCount");
    Some(Usage {
        prompt: count("promptTokenCount").saturating_add(count("toolUsePromptTokenCount")),
        completion: count("candidatesTokenCount").saturating_add(reasoning),
        cached: count("cachedContentTokenCount"),
        reasoning,
    })
}

/// Only a single word is passed to clients, never a sentence.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}
