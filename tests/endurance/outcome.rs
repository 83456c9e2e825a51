//! What became of a call.

use serde_json::Value;

#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// The tool answered: with what was wanted, or with a failure of its own.
    Said(Value),
    /// The server said no, for a reason that is none of its making: nothing is promised, and nothing has changed.
    Refused(String),
    /// The server said that it failed itself. That is right only where something was taken from it that it needs.
    Failed(String),
    /// No answer came: it may have been carried out, or not, or may be yet.
    Lost(String),
    /// What came is no answer at all. That is never right, whatever was broken meanwhile.
    Wrong(String),
}

/// The numbers of JSON-RPC for what a call that is right may be told: too many at once, a provider that is down, a
/// network that fails, no time left, cancelled, and shutting down.
const REFUSALS: [i64; 6] = [-32002, -32004, -32006, -32007, -32011, -32012];
/// And those for a program that failed itself: an internal error, a failure without a name, and a result that cannot be
/// written.
const FAILURES: [i64; 3] = [-32603, -32000, -32013];
/// Today's version of the protocol moves the numbers of programs by so much.
const MOVED: std::ops::RangeInclusive<i64> = -31019..=-31000;

impl Outcome {
    /// No answer, since something broke. Who was not even let in has changed nothing.
    pub(crate) fn of_error(error: &std::io::Error) -> Outcome {
        match error.kind() {
            // The socket is not there between two lives of the server.
            std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::NotFound => {
                Outcome::Refused("nobody listens".to_owned())
            }
            std::io::ErrorKind::InvalidData => Outcome::Wrong(error.to_string()),
            _ => Outcome::Lost(error.to_string()),
        }
    }

    /// What a status says that is none of success. A call that is right is never called wrong.
    pub(crate) fn of_status(status: u16, text: &str) -> Outcome {
        let told = format!("{status} {text}");
        match status {
            429 | 499 | 502 | 503 | 504 | 507 => Outcome::Refused(told),
            500 => Outcome::Failed(told),
            _ => Outcome::Wrong(told),
        }
    }

    /// What a tool's result says. Results have JSON as their first text, and failures of a tool are results too.
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

    /// What a message of JSON-RPC says that answers the call `id`.
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

/// Whether a message is what a server says by itself, between answers.
pub(crate) fn is_unasked(message: &Value) -> bool {
    message["id"].is_null() && message["method"].is_string()
}

/// Whether a tool did what was wanted of it.
pub(crate) fn is_success(said: &Value) -> bool {
    said["success"] != false && said["error"].is_null()
}
