//! OpenAI error responses, classified by status and error code.
//!
//! Only codes are compared and passed on. Messages are free text and may repeat secrets.

use std::time::Duration;

use serde_json::{Map, Value};

use super::content;
use crate::{Error, ResponseHead, retry_after};

/// The account's quota is exhausted: waiting does not help.
const QUOTA_CODES: [&str; 4] =
    ["insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance"];

const MODEL_NOT_FOUND_CODES: [&str; 4] =
    ["model_not_found", "invalid_model", "model_not_available", "model_not_supported"];

/// The error of a response with an error status.
pub(super) fn from_response(head: ResponseHead<'_>, body: &[u8]) -> Error {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    // Google's compatible endpoint wraps the error in a list.
    let body = body.get(0).unwrap_or(&body);
    let error = body.get("error").filter(|error| error.is_object()).unwrap_or(body);
    classify(head.status.as_u16(), error, retry_after::from_head(head))
}

/// An `error` inside a response or a chunk.
pub(super) fn from_body(body: &Map<String, Value>) -> Option<Error> {
    // Older vLLM returns the error object itself as the response.
    if body.get("object").is_some_and(|object| object == "error") {
        return Some(from_reported(&Value::Object(body.clone())));
    }
    match body.get("error")? {
        Value::Null | Value::Bool(_) => None,
        Value::Object(error) if error.is_empty() => None,
        Value::String(error) if error.is_empty() => None,
        error => Some(from_reported(error)),
    }
}

/// An error without a status: classified by its codes or by a number in it.
pub(super) fn from_reported(error: &Value) -> Error {
    let mut numbers = ["code", "status"].iter().filter_map(|name| match &error[name] {
        Value::String(text) => text.parse().ok(),
        number => number.as_u64().and_then(|number| u16::try_from(number).ok()),
    });
    let status = numbers.find(|status| (400..600).contains(status));
    classify(status.unwrap_or_else(|| status_of_codes(error)), error, None)
}

fn classify(status: u16, error: &Value, retry_after: Option<Duration>) -> Error {
    let says = |known: &[&str]| error_codes(error).any(|word| known.contains(&word));
    let is_refusal = (400..500).contains(&status);
    if status == 402 || is_refusal && says(&QUOTA_CODES) {
        return Error::of_status(429, None, retry_after, true);
    }
    if is_refusal && says(&MODEL_NOT_FOUND_CODES) || status == 400 && error["param"] == "model" {
        return Error::of_status(404, None, None, false);
    }
    // The code is more specific than the type, if it is a word.
    let is_word = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    Error::of_status(status, error_codes(error).find(is_word), retry_after, false)
}

fn error_codes(error: &Value) -> impl Iterator<Item = &str> {
    ["code", "type"].into_iter().filter_map(move |name| content::text(&error[name]))
}

fn status_of_codes(error: &Value) -> u16 {
    let known = error_codes(error).find_map(|word| match word {
        "rate_limit_exceeded" | "rate_limit_error" | "insufficient_quota" => Some(429),
        "invalid_api_key" | "authentication_error" | "permission_error" => Some(401),
        "model_not_found" => Some(404),
        "context_length_exceeded" | "invalid_request_error" | "BadRequestError" => Some(400),
        "timeout" => Some(504),
        _ => None,
    });
    known.unwrap_or(500)
}
