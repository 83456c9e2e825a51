//! What became of a call.

use serde_json::Value;

#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// The tool answered: with what was wanted, or with a failure of its own.
    Said(Value),
    /// The server said no, or that it failed: nothing is promised, and nothing has changed.
    Refused(String),
    /// No answer came: it may have been carried out, or not, or may be yet.
    Lost(String),
    /// What came is no answer at all. That is never right, whatever was broken meanwhile.
    Wrong(String),
}

impl Outcome {
    /// No answer, since something broke. Who was not even let in has changed nothing.
    pub(crate) fn of_error(error: &std::io::Error) -> Outcome {
        match error.kind() {
            std::io::ErrorKind::ConnectionRefused => Outcome::Refused("nobody listens".to_owned()),
            _ => Outcome::Lost(error.to_string()),
        }
    }

    /// What a tool's result says. Results have JSON as their first text, and failures of a tool are results too.
    pub(crate) fn of_result(result: &Value) -> Outcome {
        let said = match &result["structuredContent"] {
            Value::Null => result["content"][0]["text"].as_str().and_then(|text| serde_json::from_str(text).ok()),
            structured => Some(structured.clone()),
        };
        match said {
            Some(said) if said["error"]["type"].is_string() => Outcome::Refused(said["error"].to_string()),
            Some(said) => Outcome::Said(said),
            None => Outcome::Wrong(format!("a result without JSON: {result}")),
        }
    }

    /// What a message of JSON-RPC says that answers the call `id`.
    pub(crate) fn of_message(message: &Value, id: u64) -> Outcome {
        if message["id"] != id && !message["id"].is_null() {
            return Outcome::Wrong(format!("an answer to another call than {id}: {message}"));
        }
        match (&message["result"], &message["error"]) {
            (Value::Null, Value::Null) => Outcome::Wrong(format!("neither a result nor an error: {message}")),
            (Value::Null, error) => Outcome::Refused(error.to_string()),
            (result, _) => Outcome::of_result(result),
        }
    }
}
