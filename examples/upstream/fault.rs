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
use crate::failure::{Failure, Reason, Wait, status_code};
use crate::seen::Seen;
use crate::stream::{self, Ending, Event, Reply};

const NO_JSON: &str = "this is no JSON";
const HTML: &str = "<!doctype html>\n<title>Bad gateway</title>\n<h1>Bad gateway</h1>\n";

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fault {
    Status { status: u16, wait: Option<Wait> },
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
    pub(crate) fn of_model(model: &str) -> Result<Option<Fault>, String> {
        let words: Vec<&str> = model.split('-').collect();
        let fault = match words[..] {
            ["status", status] => error_status(status).map(|status| Fault::Status { status, wait: None }),
            ["status", status, ref rest @ ..] => {
                error_status(status).zip(wait(rest)).map(|(status, wait)| Fault::Status { status, wait: Some(wait) })
            }
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
    pub(crate) fn failure(&self, api: Api, key: &str, model: &str, seen: &Seen) -> Option<Failure> {
        match *self {
            Fault::Status { status, wait } => {
                Some(Failure { wait, ..Failure::new(status, format!("the model is called `{model}`")) })
            }
            Fault::Quota => {
                // Anthropic reports this as a bad request.
                let status = if api == Api::Anthropic { 400 } else { 429 };
                let message = "Your credit balance is too low, or you exceeded your current quota";
                Some(Failure { reason: Reason::Quota, ..Failure::new(status, message) })
            }
            Fault::Flaky { status, times } => {
                let message = format!("`{model}` fails {times} times for each key");
                seen.fails_again(key, model, times).then(|| Failure::new(status, message))
            }
            Fault::Leak { status } => {
                let message = format!("the key {key} failed in /srv/gateway/internal/billing.py, line 12");
                Some(Failure { reason: Reason::Leak(key.to_owned()), ..Failure::new(status, message) })
            }
            _ => None,
        }
    }

    /// Sends a reply with this fault.
    pub(crate) async fn spoil(self, api: Api, reply: Reply) -> Response {
        let kind = reply.content_type();
        let is_stream = matches!(reply, Reply::Events(_));
        let mut pieces = reply.pieces();
        let (pause, ending) = match self {
            Fault::NotJson if is_stream => {
                let event = Event { name: None, data: NO_JSON.into(), says: false };
                return ([(CONTENT_TYPE, kind)], Body::from(event.frame())).into_response();
            }
            Fault::NotJson => return ([(CONTENT_TYPE, kind)], NO_JSON).into_response(),
            Fault::Empty => return ([(CONTENT_TYPE, kind)], Body::empty()).into_response(),
            Fault::Html { status } => {
                return (status_code(status), [(CONTENT_TYPE, "text/html; charset=utf-8")], HTML).into_response();
            }
            Fault::Endless => {
                let beginning = if is_stream { "data: {\"id\":\"" } else { "{\"id\":\"" };
                return ([(CONTENT_TYPE, kind)], stream::endless(beginning)).into_response();
            }
            Fault::LyingLength => {
                let length = pieces.iter().map(Bytes::len).sum::<usize>() + 64;
                let headers = [(CONTENT_TYPE, HeaderValue::from_static(kind)), (CONTENT_LENGTH, length.into())];
                return (headers, stream::in_pieces(pieces, Duration::ZERO, Ending::Closed)).into_response();
            }
            Fault::Reset => return stream::closed().into_response(),
            Fault::Stall => future::pending().await,
            Fault::StallMid => {
                pieces.truncate(reply.two_said());
                (Duration::ZERO, Ending::Silence)
            }
            Fault::Cut { pieces: most } => {
                pieces.truncate(most);
                (Duration::ZERO, Ending::Closed)
            }
            Fault::End { pieces: most } => {
                pieces.truncate(most);
                (Duration::ZERO, Ending::Proper)
            }
            Fault::ErrorMid => {
                let error = error_mid(api);
                if !is_stream {
                    return stream::whole(&error);
                }
                pieces.truncate(reply.two_said());
                let name = (api == Api::Anthropic).then_some("error");
                pieces.push(Event { name, data: error.to_string(), says: false }.frame());
                (Duration::ZERO, Ending::Proper)
            }
            Fault::Slow { pause } => {
                tokio::time::sleep(pause).await;
                return stream::respond(reply);
            }
            Fault::Drip { pause } => (pause, Ending::Proper),
            Fault::Trickle { pause } => {
                pieces.truncate(reply.two_said());
                return ([(CONTENT_TYPE, kind)], stream::trickle(pieces.concat().into(), pause)).into_response();
            }
            Fault::Shred => {
                let bytes = pieces.concat();
                pieces = bytes.chunks(3).map(Bytes::copy_from_slice).collect();
                (Duration::ZERO, Ending::Proper)
            }
            // Error statuses were handled before, and a flaky model may work by now.
            Fault::Status { .. } | Fault::Quota | Fault::Flaky { .. } | Fault::Leak { .. } => {
                return stream::respond(reply);
            }
        };
        ([(CONTENT_TYPE, kind)], stream::in_pieces(pieces, pause, ending)).into_response()
    }
}

/// The mid-stream error of each API.
fn error_mid(api: Api) -> Value {
    let status = if api == Api::Anthropic { 529 } else { 503 };
    api.failure(&Failure::new(status, "Overloaded"))
}

fn wait(words: &[&str]) -> Option<Wait> {
    match words {
        ["after", seconds] => number(seconds).map(Wait::Seconds),
        ["ms", milliseconds] => number(milliseconds).map(Wait::Milliseconds),
        ["date"] => Some(Wait::Date),
        ["retryinfo"] => Some(Wait::RetryInfo),
        _ => None,
    }
}

fn error_status(word: &str) -> Option<u16> {
    number(word).filter(|status| (400..600).contains(status))
}

fn number<T: std::str::FromStr>(word: &str) -> Option<T> {
    word.parse().ok()
}
