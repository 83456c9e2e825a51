//! Outcome of a call.

use serde_json::Value;

#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// The tool replied, with its result or a tool error.
    Said(Value),
    /// The server rejected the call for a legitimate reason. The call had no effect.
    Refused(String),
    /// The server reported an internal error. Acceptable only if a resource was taken from it.
    Failed(String),
    /// No reply arrived: the call may have been executed, or may still be.
    Lost(String),
    /// The reply is invalid. Never acceptable, under any fault.
    Wrong(String),
}

/// JSON-RPC codes for rejections of a valid call: too many requests, provider down, network failure, timeout,
/// cancelled, and shutting down.
const REFUSALS: [i64; 6] = [-32002, -32004, -32006, -32007, -32011, -32012];
/// Codes for internal failures: internal error, unnamed failure, and unserializable result.
const FAILURES: [i64; 3] = [-32603, -32000, -32013];
/// The 2026-07-28 protocol offsets application codes by 1000.
const MOVED: std::ops::RangeInclusive<i64> = -31019..=-31000;

impl Outcome {
    /// An I/O error. If the connection was refused, the call had no effect.
    pub(crate) fn of_error(error: &std::io::Error) -> Outcome {
        match error.kind() {
            // The Unix socket does not exist during a restart.
            std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::NotFound => {
                Outcome::Refused("nobody listens".to_owned())
            }
            std::io::ErrorKind::InvalidData => Outcome::Wrong(error.to_string()),
            _ => Outcome::Lost(error.to_string()),
        }
    }

    /// Outcome of an error status. A valid call must never be rejected as invalid.
    pub(crate) fn of_status(status: u16, text: &str) -> Outcome {
        let told = format!("{status} {text}");
        match status {
            429 | 499 | 502 | 503 | 504 | 507 => Outcome::Refused(told),
            500 => Outcome::Failed(told),
            _ => Outcome::Wrong(told),
        }
    }

    /// Outcome of a tool result. The first text of a result is JSON, and tool errors are results too.
    pub(crate) fn of_result(result: &Value) -> Outcome {
        let said = match &result["structuredContent"] {
            Value::Null => result["content"][0]["text"].as_str().and_then(|text| serde_json::from_str(text).ok()),
            structured => Some(structured.clone()),
        };
        let Some(said) = said else { return Outcome::Wrong(format!("a result without JSON: {result}")) };
        let kind = said["error"]["type"].as_str().or(said["error"].as_str()).unwrap_or_default();
        match kind {
            "storage_corrupt" => Outcome::Wrong(said.to_string()),
            "InternalError" | "internal_error" | "storage_failed" => Outcome::Failed(said.to_string()),
            _ if said["error"]["type"].is_string() => Outcome::Refused(said["error"].to_string()),
            _ => Outcome::Said(said),
        }
    }

    /// Outcome of a JSON-RPC message that must be the reply to the call `id`.
    pub(crate) fn of_message(message: &Value, id: u64) -> Outcome {
        if message["id"] != id {
            return Outcome::Wrong(format!("an answer to another call than {id}: {message}"));
        }
        match (&message["result"], &message["error"]) {
            (Value::Null, Value::Null) => Outcome::Wrong(format!("neither a result nor an error: {message}")),
            (Value::Null, error) => Outcome::of_error_object(error),
            (result, _) => Outcome::of_result(result),
        }
    }

    fn of_error_object(error: &Value) -> Outcome {
        let number = error["code"].as_i64().unwrap_or_default();
        let number = if MOVED.contains(&number) { number - 1000 } else { number };
        match number {
            refusal if REFUSALS.contains(&refusal) => Outcome::Refused(error.to_string()),
            failure if FAILURES.contains(&failure) => Outcome::Failed(error.to_string()),
            _ => Outcome::Wrong(format!("a call that is right is told: {error}")),
        }
    }
}

/// Whether a message is a notification.
pub(crate) fn is_unasked(message: &Value) -> bool {
    message["id"].is_null() && message["method"].is_string()
}

/// Whether a tool call succeeded.
pub(crate) fn is_success(said: &Value) -> bool {
    said["success"] != false && said["error"].is_null()
}
