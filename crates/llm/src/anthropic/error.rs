//! Anthropic error responses.
//!
//! An error has a broad `type`, a human-readable `message` and, for some causes, `details.error_code`.

use std::time::Duration;

use serde_json::Value;

use crate::{Error, ResponseHead, retry_after};

/// The error of a response with an error status.
pub(super) fn from_response(head: ResponseHead<'_>, body: &[u8]) -> Error {
    let body = serde_json::from_slice(body).unwrap_or(Value::Null);
    classify(head.status.as_u16(), &body, retry_after::from_head(head))
}

/// The error in a stream or in a response with a success status.
pub(super) fn from_event(body: &Value) -> Error {
    let status = match error_field(body, "type") {
        Some("invalid_request_error") => 400,
        Some("authentication_error") => 401,
        Some("billing_error") => 402,
        Some("permission_error") => 403,
        Some("not_found_error") => 404,
        Some("request_too_large") => 413,
        Some("rate_limit_error") => 429,
        Some("timeout_error") => 504,
        Some("overloaded_error") => 529,
        _ => 500,
    };
    classify(status, body, None)
}

fn classify(status: u16, body: &Value, retry_after: Option<Duration>) -> Error {
    let (kind, code) = (error_field(body, "type"), code(body));
    let quota = is_quota_exhausted(status, body);
    let status = match (status, kind, code) {
        // The account is closed or the key's owner has left. The request is valid, so another key may work.
        (400, _, Some("organization_on_hold" | "claude_code_key_creator_not_member")) => 401,
        (400, Some("not_found_error"), _) => 404,
        _ if quota => 429,
        (status, _, _) => status,
    };
    Error::of_status(status, code.or(kind), retry_after, quota)
}

/// Whether the account is exhausted: no credit, or the monthly limit reached.
fn is_quota_exhausted(status: u16, body: &Value) -> bool {
    let message = error_field(body, "message").unwrap_or_default();
    status == 402
        || error_field(body, "type") == Some("billing_error")
        || code(body) == Some("enforced_spend_limit_reached")
        // Older accounts get a plain 400 that differs only in its message. If that text changes, the error remains a
        // bad request.
        || message.contains("credit balance is too low")
}

fn error_field<'a>(body: &'a Value, member: &str) -> Option<&'a str> {
    body.get("error")?.get(member)?.as_str()
}

/// The stable error code, in contrast to the message.
fn code(body: &Value) -> Option<&str> {
    body.get("error")?.get("details")?.get("error_code")?.as_str()
}
