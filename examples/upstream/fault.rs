//! Fault injection by model name.
//!
//! | model | effect |
//! |---|---|
//! | `status-S` | an error with this status, in the API's format |
//! | `status-S-after-N` | with `Retry-After: N` |
//! | `status-S-ms-N` | with `retry-after-ms: N` |
//! | `status-S-date` | with a `Retry-After` date two seconds ahead |
//! | `status-S-retryinfo` | Google: with a `RetryInfo` of two seconds; other APIs: without a hint |
//! | `quota` | the quota of the account is exhausted |
//! | `flaky-N`, `flaky-S-N` | an error (503, or S) N times for each key, then an answer |
//! | `leak`, `leak-S` | an error (400, or S) that repeats the key and a path |
//! | `not-json`, `empty`, `html`, `html-S` | status 200 (or S) and an invalid body |
//! | `endless` | a body that never ends |
//! | `lying-length` | a `Content-Length` that is too long, then the connection closes |
//! | `reset` | the connection closes without an answer |
//! | `stall` | no answer, ever |
//! | `stall-mid` | two pieces of the answer, then silence |
//! | `cut-N` | N events (or quarters of a whole answer), then the connection closes |
//! | `end-N` | the same, but the body ends properly |
//! | `error-mid` | two pieces of the answer, then an error event; not streamed: an error with status 200 |
//! | `slow-N` | the answer, N milliseconds later |
//! | `drip-N` | the answer, N milliseconds before each piece |
//! | `trickle-N` | two pieces of the answer, then one byte of a comment every N milliseconds, forever |
//! | `shred` | the answer, three bytes at a time |

use std::future;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use serde_json::Value;

use crate::Api;
use crate::error::{ApiError, ErrorReason, RetryHint, status_code};
use crate::request_log::RequestLog;
use crate::stream::{self, BodyEnd, Event, ResponseBody};

const NOT_JSON_BODY: &str = "this is no JSON";
const HTML_BODY: &str = "<!doctype html>\n<title>Bad gateway</title>\n<h1>Bad gateway</h1>\n";

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fault {
    Status { status: u16, wait: Option<RetryHint> },
    Quota,
    Flaky { status: u16, times: u32 },
    Leak { status: u16 },
    NotJson,
    Empty,
    Html { status: u16 },
    Endless,
    LyingLength,
    Reset,
    Stall,
    StallMid,
    Cut { pieces: usize },
    End { pieces: usize },
    ErrorMid,
    Slow { pause: Duration },
    Drip { pause: Duration },
    Trickle { pause: Duration },
    Shred,
}

impl Fault {
    /// The fault of a model; `None` for a working model; an error for a malformed fault name.
    pub(crate) fn from_model(model: &str) -> Result<Option<Fault>, String> {
        let words: Vec<&str> = model.split('-').collect();
        let fault = match words[..] {
            ["status", status] => error_status(status).map(|status| Fault::Status { status, wait: None }),
            ["status", status, ref rest @ ..] => error_status(status)
                .zip(parse_retry_hint(rest))
                .map(|(status, wait)| Fault::Status { status, wait: Some(wait) }),
            ["quota"] => Some(Fault::Quota),
            ["flaky", times] => number(times).map(|times| Fault::Flaky { status: 503, times }),
            ["flaky", status, times] => {
                error_status(status).zip(number(times)).map(|(status, times)| Fault::Flaky { status, times })
            }
            ["leak"] => Some(Fault::Leak { status: 400 }),
            ["leak", status] => error_status(status).map(|status| Fault::Leak { status }),
            ["not", "json"] => Some(Fault::NotJson),
            ["empty"] => Some(Fault::Empty),
            ["html"] => Some(Fault::Html { status: 200 }),
            ["html", status] => error_status(status).map(|status| Fault::Html { status }),
            ["endless"] => Some(Fault::Endless),
            ["lying", "length"] => Some(Fault::LyingLength),
            ["reset"] => Some(Fault::Reset),
            ["stall"] => Some(Fault::Stall),
            ["stall", "mid"] => Some(Fault::StallMid),
            ["cut", pieces] => number(pieces).map(|pieces| Fault::Cut { pieces }),
            ["end", pieces] => number(pieces).map(|pieces| Fault::End { pieces }),
            ["error", "mid"] => Some(Fault::ErrorMid),
            ["slow", pause] => number(pause).map(|pause| Fault::Slow { pause: Duration::from_millis(pause) }),
            ["drip", pause] => number(pause).map(|pause| Fault::Drip { pause: Duration::from_millis(pause) }),
            ["trickle", pause] => number(pause).map(|pause| Fault::Trickle { pause: Duration::from_millis(pause) }),
            ["shred"] => Some(Fault::Shred),
            ["status" | "flaky" | "leak" | "html" | "stall" | "cut" | "end" | "slow" | "drip" | "trickle", ..] => None,
            _ => return Ok(None),
        };
        fault.map(Some).ok_or_else(|| format!("`{model}` looks like a fault and is none; see the table in fault.rs"))
    }

    /// The error response, for faults that consist of one.
    pub(crate) fn error(&self, api: Api, key: &str, model: &str, seen: &RequestLog) -> Option<ApiError> {
        match *self {
            Fault::Status { status, wait } => {
                Some(ApiError { retry_hint: wait, ..ApiError::new(status, format!("the model is called `{model}`")) })
            }
            Fault::Quota => {
                // Anthropic reports this as a bad request.
                let status = if api == Api::Anthropic { 400 } else { 429 };
                let message = "Your credit balance is too low, or you exceeded your current quota";
                Some(ApiError { reason: ErrorReason::Quota, ..ApiError::new(status, message) })
            }
            Fault::Flaky { status, times } => {
                let message = format!("`{model}` fails {times} times for each key");
                seen.fails_again(key, model, times).then(|| ApiError::new(status, message))
            }
            Fault::Leak { status } => {
                let message = format!("the key {key} failed in /srv/gateway/internal/billing.py, line 12");
                Some(ApiError { reason: ErrorReason::Leak(key.to_owned()), ..ApiError::new(status, message) })
            }
            _ => None,
        }
    }

    /// Sends a reply with this fault.
    pub(crate) async fn apply(self, api: Api, reply: ResponseBody) -> Response {
        let kind = reply.content_type();
        let is_stream = matches!(reply, ResponseBody::Events(_));
        let mut pieces = reply.chunks();
        let (pause, ending) = match self {
            Fault::NotJson if is_stream => {
                let event = Event { name: None, data: NOT_JSON_BODY.into(), has_content: false };
                return ([(CONTENT_TYPE, kind)], Body::from(event.frame())).into_response();
            }
            Fault::NotJson => return ([(CONTENT_TYPE, kind)], NOT_JSON_BODY).into_response(),
            Fault::Empty => return ([(CONTENT_TYPE, kind)], Body::empty()).into_response(),
            Fault::Html { status } => {
                return (status_code(status), [(CONTENT_TYPE, "text/html; charset=utf-8")], HTML_BODY).into_response();
            }
            Fault::Endless => {
                let beginning = if is_stream { "data: {\"id\":\"" } else { "{\"id\":\"" };
                return ([(CONTENT_TYPE, kind)], stream::endless_body(beginning)).into_response();
            }
            Fault::LyingLength => {
                let length = pieces.iter().map(Bytes::len).sum::<usize>() + 64;
                let headers = [(CONTENT_TYPE, HeaderValue::from_static(kind)), (CONTENT_LENGTH, length.into())];
                return (headers, stream::chunked_body(pieces, Duration::ZERO, BodyEnd::Closed)).into_response();
            }
            Fault::Reset => return stream::aborted_body().into_response(),
            Fault::Stall => future::pending().await,
            Fault::StallMid => {
                pieces.truncate(reply.chunks_until_second_content());
                (Duration::ZERO, BodyEnd::Silence)
            }
            Fault::Cut { pieces: most } => {
                pieces.truncate(most);
                (Duration::ZERO, BodyEnd::Closed)
            }
            Fault::End { pieces: most } => {
                pieces.truncate(most);
                (Duration::ZERO, BodyEnd::Complete)
            }
            Fault::ErrorMid => {
                let error = error_mid(api);
                if !is_stream {
                    return stream::json_response(&error);
                }
                pieces.truncate(reply.chunks_until_second_content());
                let name = (api == Api::Anthropic).then_some("error");
                pieces.push(Event { name, data: error.to_string(), has_content: false }.frame());
                (Duration::ZERO, BodyEnd::Complete)
            }
            Fault::Slow { pause } => {
                tokio::time::sleep(pause).await;
                return stream::respond(reply);
            }
            Fault::Drip { pause } => (pause, BodyEnd::Complete),
            Fault::Trickle { pause } => {
                pieces.truncate(reply.chunks_until_second_content());
                return ([(CONTENT_TYPE, kind)], stream::trickling_body(pieces.concat().into(), pause)).into_response();
            }
            Fault::Shred => {
                let bytes = pieces.concat();
                pieces = bytes.chunks(3).map(Bytes::copy_from_slice).collect();
                (Duration::ZERO, BodyEnd::Complete)
            }
            // Error statuses were handled before, and a flaky model may work by now.
            Fault::Status { .. } | Fault::Quota | Fault::Flaky { .. } | Fault::Leak { .. } => {
                return stream::respond(reply);
            }
        };
        ([(CONTENT_TYPE, kind)], stream::chunked_body(pieces, pause, ending)).into_response()
    }
}

/// The mid-stream error of each API.
fn error_mid(api: Api) -> Value {
    let status = if api == Api::Anthropic { 529 } else { 503 };
    api.error_body(&ApiError::new(status, "Overloaded"))
}

fn parse_retry_hint(words: &[&str]) -> Option<RetryHint> {
    match words {
        ["after", seconds] => number(seconds).map(RetryHint::Seconds),
        ["ms", milliseconds] => number(milliseconds).map(RetryHint::Milliseconds),
        ["date"] => Some(RetryHint::Date),
        ["retryinfo"] => Some(RetryHint::RetryInfo),
        _ => None,
    }
}

fn error_status(word: &str) -> Option<u16> {
    number(word).filter(|status| (400..600).contains(status))
}

fn number<T: std::str::FromStr>(word: &str) -> Option<T> {
    word.parse().ok()
}
