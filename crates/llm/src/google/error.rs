//! Google error responses.
//!
//! The status code is ambiguous: an invalid key yields 400, and 429 covers both a short rate limit and a daily quota.
//! The `details` of the error distinguish them. The `message` never reaches clients (S-01).

use std::time::Duration;

use serde_json::Value;

use super::fields::{Object, field, object, objects, text};
use crate::{Error, ResponseHead, retry_after};

/// The body as an object, or the error it reports.
pub(super) fn check(head: ResponseHead<'_>, body: &[u8]) -> Result<Object, Error> {
    let parsed = match serde_json::from_slice(body) {
        Ok(Value::Object(object)) => Some(object),
        // A failed streaming request returns an array that contains the error.
        Ok(Value::Array(values)) => values.into_iter().next().and_then(|value| match value {
            Value::Object(object) => Some(object),
            _ => None,
        }),
        _ => None,
    };
    let error = parsed.as_ref().and_then(|body| object(body, "error"));
    if !head.status.is_success() {
        return Err(classify(head.status.as_u16(), error.unwrap_or(&Object::new()), Some(head)));
    }
    if let Some(error) = error {
        return Err(classify(status(error), error, Some(head)));
    }
    match parsed {
        Some(body) => Ok(body),
        None if body.is_empty() => Err(Error::InvalidResponse("response is empty")),
        None => Err(Error::InvalidResponse("response is not a JSON object")),
    }
}

/// An error in the middle of a stream that started successfully.
pub(super) fn in_stream(chunk: &Object) -> Error {
    match object(chunk, "error") {
        Some(error) => classify(status(error), error, None),
        None => Error::InvalidResponse("stream event is an error without a reason"),
    }
}

fn classify(http_status: u16, error: &Object, head: Option<ResponseHead<'_>>) -> Error {
    let reasons = || details(error, "ErrorInfo").filter_map(|info| text(info, "reason"));
    if reasons().any(|reason| reason.starts_with("API_KEY_")) {
        return Error::Authentication;
    }
    if http_status == 400 && is_about_model(error) {
        return Error::ModelNotFound;
    }
    let quota = http_status == 429 && is_quota_exhausted(error);
    let kind = text(error, "status").map(str::to_ascii_lowercase);
    Error::of_status(http_status, kind.as_deref(), retry_delay(error, head), quota)
}

/// The `details` entries of one type, such as `type.googleapis.com/google.rpc.ErrorInfo`.
fn details<'a>(error: &'a Object, kind: &str) -> impl Iterator<Item = &'a Object> {
    let ending = format!("google.rpc.{kind}");
    let is_kind = move |detail: &&Object| text(detail, "@type").is_some_and(|name| name.ends_with(&ending));
    objects(error, "details").into_iter().filter(is_kind)
}

/// Whether the quota is exhausted rather than rate limited: the daily quota is used up, or the account has no credit.
fn is_quota_exhausted(error: &Object) -> bool {
    let mut violations = details(error, "QuotaFailure").flat_map(|failure| objects(failure, "violations"));
    let per_day = violations.any(|violation| text(violation, "quotaId").is_some_and(|id| id.contains("PerDay")));
    let exhausted = details(error, "ErrorInfo").any(|info| text(info, "reason") == Some("QUOTA_EXHAUSTED"));
    // For prepaid accounts only the message text indicates it.
    let message = text(error, "message").unwrap_or_default();
    per_day || exhausted || message.contains("credits are depleted") || message.contains("spending cap")
}

/// Whether the error is about the model name.
fn is_about_model(error: &Object) -> bool {
    let mut violations = details(error, "BadRequest").flat_map(|request| objects(request, "fieldViolations"));
    let is_model =
        |violation| text(violation, "field").is_some_and(|field| field == "model" || field.ends_with(".model"));
    violations.any(is_model) || text(error, "message").is_some_and(|message| message.contains("unexpected model name"))
}

fn retry_delay(error: &Object, head: Option<ResponseHead<'_>>) -> Option<Duration> {
    let delay = details(error, "RetryInfo").find_map(|info| text(info, "retryDelay"));
    delay.and_then(retry_after::seconds).or_else(|| head.and_then(retry_after::from_head))
}

/// The status code in the error body: as a number, or derived from its name.
fn status(error: &Object) -> u16 {
    let code = field(error, "code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    code.filter(|code| (400..600).contains(code)).unwrap_or_else(|| match text(error, "status") {
        Some("INVALID_ARGUMENT" | "FAILED_PRECONDITION" | "OUT_OF_RANGE") => 400,
        Some("UNAUTHENTICATED") => 401,
        Some("PERMISSION_DENIED") => 403,
        Some("NOT_FOUND") => 404,
        Some("RESOURCE_EXHAUSTED") => 429,
        Some("UNAVAILABLE") => 503,
        Some("DEADLINE_EXCEEDED") => 504,
        _ => 500,
    })
}
