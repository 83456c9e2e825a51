//! Why there is no answer, out of what the API says.
//!
//! An error has a broad `type`, a `message` for people and, for some causes, `details.error_code`.

use std::time::Duration;

use serde_json::Value;

use crate::providers::{Error, Head, retry_after};

/// Out of a response whose status says that it is none.
pub(super) fn of_response(head: Head<'_>, body: &[u8]) -> Error {
    let body = serde_json::from_slice(body).unwrap_or(Value::Null);
    of(head.status.as_u16(), &body, retry_after::of(head))
}

/// Out of an error that came where an answer was expected, in a stream or under a good status.
pub(super) fn of_event(body: &Value) -> Error {
    let status = match word(body, "type") {
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
    of(status, body, None)
}

fn of(status: u16, body: &Value, retry_after: Option<Duration>) -> Error {
    let (kind, code) = (word(body, "type"), code(body));
    let quota = has_nothing_left(status, body);
    let status = match (status, kind, code) {
        // The account is closed, or the key's owner has left: the request is fine, and another key may do.
        (400, _, Some("organization_on_hold" | "claude_code_key_creator_not_member")) => 401,
        (400, Some("not_found_error"), _) => 404,
        _ if quota => 429,
        (status, _, _) => status,
    };
    Error::of_status(status, code.or(kind), retry_after, quota)
}

/// Whether the account is at its end: no credit, or the month's limit reached.
fn has_nothing_left(status: u16, body: &Value) -> bool {
    let message = word(body, "message").unwrap_or_default();
    status == 402
        || word(body, "type") == Some("billing_error")
        || code(body) == Some("enforced_spend_limit_reached")
        // Older accounts get a plain 400, and only its words tell. Should they change, it stays a bad request.
        || message.contains("credit balance is too low")
}

fn word<'a>(body: &'a Value, member: &str) -> Option<&'a str> {
    body.get("error")?.get(member)?.as_str()
}

/// A word that stays the same, which the words for people do not.
fn code(body: &Value) -> Option<&str> {
    body.get("error")?.get("details")?.get("error_code")?.as_str()
}
