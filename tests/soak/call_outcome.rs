//! Outcome of a call.

use serde_json::Value;

#[derive(Debug, Clone)]
pub(crate) enum CallOutcome {
    /// The tool replied, with its result or a tool error.
    Answered(Value),
    /// The server rejected the call for a legitimate reason. The call had no effect.
    Refused(String),
    /// The server reported an internal error. Acceptable only if a resource was taken from it.
    Failed(String),
    /// No reply arrived: the call may have been executed, or may still be.
    Lost(String),
    /// The reply is invalid. Never acceptable, under any fault.
    Invalid(String),
}

/// JSON-RPC codes for rejections of a valid call: too many requests, provider down, network failure, timeout,
/// cancelled, and shutting down.
const REFUSAL_CODES: [i64; 6] = [-32002, -32004, -32006, -32007, -32011, -32012];
/// Codes for internal failures: internal error, unnamed failure, and unserializable result.
const FAILURE_CODES: [i64; 3] = [-32603, -32000, -32013];
/// The 2026-07-28 protocol offsets application codes by 1000.
const SHIFTED_CODES: std::ops::RangeInclusive<i64> = -31019..=-31000;

impl CallOutcome {
    /// An I/O error. If the connection was refused, the call had no effect.
    pub(crate) fn from_io_error(error: &std::io::Error) -> CallOutcome {
        match error.kind() {
            // The Unix socket does not exist during a restart.
            std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::NotFound => {
                CallOutcome::Refused("nobody listens".to_owned())
            }
            std::io::ErrorKind::InvalidData => CallOutcome::Invalid(error.to_string()),
            _ => CallOutcome::Lost(error.to_string()),
        }
    }

    /// Outcome of an error status. A valid call must never be rejected as invalid.
    pub(crate) fn from_status(status: u16, text: &str) -> CallOutcome {
        let told = format!("{status} {text}");
        match status {
            429 | 499 | 502 | 503 | 504 | 507 => CallOutcome::Refused(told),
            500 => CallOutcome::Failed(told),
            _ => CallOutcome::Invalid(told),
        }
    }

    /// Outcome of a tool result. The first text of a result is JSON, and tool errors are results too.
    pub(crate) fn from_tool_result(result: &Value) -> CallOutcome {
        let said = match &result["structuredContent"] {
            Value::Null => result["content"][0]["text"].as_str().and_then(|text| serde_json::from_str(text).ok()),
            structured => Some(structured.clone()),
        };
        let Some(said) = said else { return CallOutcome::Invalid(format!("a result without JSON: {result}")) };
        let kind = said["error"]["type"].as_str().or(said["error"].as_str()).unwrap_or_default();
        match kind {
            "storage_corrupt" => CallOutcome::Invalid(said.to_string()),
            "InternalError" | "internal_error" | "storage_failed" => CallOutcome::Failed(said.to_string()),
            _ if said["error"]["type"].is_string() => CallOutcome::Refused(said["error"].to_string()),
            _ => CallOutcome::Answered(said),
        }
    }

    /// Outcome of a JSON-RPC message that must be the reply to the call `id`.
    pub(crate) fn from_message(message: &Value, id: u64) -> CallOutcome {
        if message["id"] != id {
            return CallOutcome::Invalid(format!("an answer to another call than {id}: {message}"));
        }
        match (&message["result"], &message["error"]) {
            (Value::Null, Value::Null) => CallOutcome::Invalid(format!("neither a result nor an error: {message}")),
            (Value::Null, error) => CallOutcome::from_error_object(error),
            (result, _) => CallOutcome::from_tool_result(result),
        }
    }

    fn from_error_object(error: &Value) -> CallOutcome {
        let number = error["code"].as_i64().unwrap_or_default();
        let number = if SHIFTED_CODES.contains(&number) { number - 1000 } else { number };
        match number {
            refusal if REFUSAL_CODES.contains(&refusal) => CallOutcome::Refused(error.to_string()),
            failure if FAILURE_CODES.contains(&failure) => CallOutcome::Failed(error.to_string()),
            _ => CallOutcome::Invalid(format!("a call that is right is told: {error}")),
        }
    }
}

/// Whether a message is a notification.
pub(crate) fn is_notification(message: &Value) -> bool {
    message["id"].is_null() && message["method"].is_string()
}

/// Whether a tool call succeeded.
pub(crate) fn is_success(said: &Value) -> bool {
    said["success"] != false && said["error"].is_null()
}
