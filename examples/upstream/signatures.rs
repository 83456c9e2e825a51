//! Counts request attributes that an echo does not show: thinking signatures and cache markers.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::{Api, list};

/// The model that reports the counts.
pub(crate) const COUNTING_MODEL: &str = "marks";

/// Compatible servers sign nothing, except for models whose names begin with this.
pub(crate) const SIGNING_PREFIX: &str = "signing-";

/// The value that Google accepts instead of a signature.
const SKIP_SIGNATURE: &str = "skip_thought_signature_validator";

/// The flag that accepts the signatures of recorded conversations, which no model of this mock has made.
const ACCEPT_RECORDED: &str = "--accept-recorded-signatures";

/// Whether a signature is accepted although no model of this mock made it.
fn is_recorded(signature: &Value) -> bool {
    let is_ours = || {
        let bytes = signature.as_str().and_then(|text| STANDARD.decode(text).ok());
        bytes.is_some_and(|bytes| bytes.starts_with(b"signature of "))
    };
    std::env::args().any(|argument| argument == ACCEPT_RECORDED) && !is_ours()
}

/// The signature of a model's thinking. Other models reject it.
pub(crate) fn signature(model: &str) -> String {
    STANDARD.encode(format!("signature of {model}"))
}

pub(crate) fn count_marks(body: &Value) -> String {
    let expected = signature(COUNTING_MODEL);
    let signatures = count(body, &|_, value| *value == expected);
    let marks = count(body, &|name, value| name == "cache_control" && value["type"] == "ephemeral");
    format!("{signatures} signatures, {marks} cache marks")
}

/// Rejects foreign and missing signatures with the error of each API.
pub(crate) fn check_signatures(api: Api, model: &str, body: &Value) -> Result<(), String> {
    let expected = signature(model);
    let is_foreign = |name: &str, value: &Value| {
        let signs = matches!(name, "signature" | "thoughtSignature" | "thought_signature" | "data");
        let of_google = api == Api::Google && value == SKIP_SIGNATURE;
        signs && value.is_string() && !of_google && *value != expected && !is_recorded(value)
    };
    let turns = match api {
        Api::OpenAi | Api::Anthropic => &body["messages"],
        Api::Google => &body["contents"],
    };
    // Images have data too.
    let thoughts = list(turns).iter().filter(|turn| turn["role"] == "assistant" || turn["role"] == "model");
    match api {
        _ if count(body, &|name, _| name == "signed_by") > 0 => Err("Unknown name: signed_by".into()),
        Api::Anthropic if thoughts.clone().any(|turn| count(turn, &is_foreign) > 0) => {
            Err("messages.1.content.0: Invalid `signature` in `thinking` block".into())
        }
        Api::Anthropic if body["thinking"]["type"] == "enabled" && lacks_reasoning(list(turns)) => {
            Err("messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`".into())
        }
        Api::Google if thoughts.clone().any(|turn| count(turn, &is_foreign) > 0) => {
            Err("Thought signature is not valid.".into())
        }
        Api::Google if model.starts_with("gemini-3") && thoughts.clone().any(lacks_signature) => {
            Err("Function call is missing a thought_signature in functionCall parts.".into())
        }
        Api::OpenAi if thoughts.clone().any(|turn| count(turn, &is_foreign) > 0) => {
            Err("The encrypted content could not be verified.".into())
        }
        _ => Ok(()),
    }
}

/// Whether the last turn calls tools without thinking before.
fn lacks_reasoning(turns: &[Value]) -> bool {
    let Some(last) = turns.iter().rposition(|turn| turn["role"] == "assistant") else { return false };
    let first = list(&turns[last]["content"]).first().map_or(&Value::Null, |block| &block["type"]);
    let mut blocks = turns[last..].iter().flat_map(|turn| list(&turn["content"]));
    blocks.any(|block| block["type"] == "tool_result") && first != "thinking" && first != "redacted_thinking"
}

/// Whether the first call of a turn has no signature.
fn lacks_signature(turn: &Value) -> bool {
    let mut calls = list(&turn["parts"]).iter().filter(|part| part["functionCall"].is_object());
    calls.next().is_some_and(|call| !call["thoughtSignature"].is_string())
}

fn count(value: &Value, is_one: &dyn Fn(&str, &Value) -> bool) -> usize {
    match value {
        Value::Object(members) => {
            members.iter().map(|(name, value)| usize::from(is_one(name, value)) + count(value, is_one)).sum()
        }
        Value::Array(values) => values.iter().map(|value| count(value, is_one)).sum(),
        _ => 0,
    }
}
