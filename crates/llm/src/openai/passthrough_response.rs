//! Detects complete responses, which pass through unmodified, and reads their token usage.

use std::fmt;

use serde::de::{Error as _, IgnoredAny, Visitor};
use serde::{Deserialize, Deserializer};

use crate::chat::Usage;

/// Fields that clients require. Parsing fails if one is null or has the wrong type.
#[derive(Deserialize)]
#[expect(dead_code, reason = "only whether the member parses matters")]
struct RequiredFields {
    id: NonEmptyString,
    object: NonEmptyString,
    created: u64,
    model: NonEmptyString,
    choices: Vec<Choice>,
    usage: RequiredUsage,
    #[serde(default)]
    error: Option<AbsentField>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only whether the member parses matters")]
struct Choice {
    index: u64,
    finish_reason: NonEmptyString,
    message: Message,
    #[serde(default)]
    error: Option<AbsentField>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only whether the member parses matters")]
struct Message {
    role: NonEmptyString,
    content: Option<AnyString>,
    #[serde(default)]
    tool_calls: Option<Vec<RequiredToolCall>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only whether the member parses matters")]
struct RequiredToolCall {
    id: NonEmptyString,
    r#type: NonEmptyString,
    #[serde(default)]
    function: Option<Function>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only whether the member parses matters")]
struct Function {
    name: NonEmptyString,
    arguments: AnyString,
}

#[derive(Deserialize)]
struct RequiredUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    #[serde(default)]
    prompt_tokens_details: Option<PromptTokensDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionTokensDetails>,
}

#[derive(Default, Deserialize)]
struct PromptTokensDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
struct CompletionTokensDetails {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

/// The token usage of a complete response.
pub(super) fn usage(body: &[u8]) -> Option<Usage> {
    // Skipped values are not validated, and clients fail on invalid UTF-8.
    let RequiredFields { choices, usage, .. } = serde_json::from_str(str::from_utf8(body).ok()?).ok()?;
    choices.iter().any(|choice| choice.index == 0).then(|| Usage {
        prompt: usage.prompt_tokens,
        completion: usage.completion_tokens,
        cached: usage.prompt_tokens_details.unwrap_or_default().cached_tokens.unwrap_or_default(),
        reasoning: usage.completion_tokens_details.unwrap_or_default().reasoning_tokens.unwrap_or_default(),
    })
}

/// A non-empty string, validated and discarded. Must not be `error`.
struct NonEmptyString;

/// A string, validated and discarded.
struct AnyString;

/// A field that must be absent.
struct AbsentField;

impl<'de> Deserialize<'de> for NonEmptyString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<NonEmptyString, D::Error> {
        deserializer.deserialize_str(StringVisitor { reject_empty: true }).map(|()| NonEmptyString)
    }
}

impl<'de> Deserialize<'de> for AnyString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AnyString, D::Error> {
        deserializer.deserialize_str(StringVisitor { reject_empty: false }).map(|()| AnyString)
    }
}

impl<'de> Deserialize<'de> for AbsentField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AbsentField, D::Error> {
        IgnoredAny::deserialize(deserializer)?;
        Err(D::Error::custom("a failure"))
    }
}

struct StringVisitor {
    reject_empty: bool,
}

impl Visitor<'_> for StringVisitor {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        match text {
            "" | "error" if self.reject_empty => Err(E::custom("no text")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn answer() -> Value {
        json!({
            "id": "a", "object": "chat.completion", "created": 1, "model": "m", "x": [1],
            "choices": [{ "index": 0, "finish_reason": "stop", "logprobs": null, "message": {
                "role": "assistant", "content": "hi \"you\"", "refusal": null,
                "tool_calls": [{ "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" } }],
            } }],
            "usage": {
                "prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13,
                "prompt_tokens_details": { "cached_tokens": 3 }, "completion_tokens_details": { "reasoning_tokens": 2 },
            },
        })
    }

    fn of(answer: &Value) -> Option<Usage> {
        usage(answer.to_string().as_bytes())
    }

    #[test]
    fn tokens_of_an_answer_that_lacks_nothing_are_counted() {
        assert_eq!(of(&answer()), Some(Usage { prompt: 9, completion: 4, cached: 3, reasoning: 2 }));
        let mut quiet = answer();
        quiet["choices"][0]["message"]["content"] = Value::Null;
        quiet["usage"] = json!({ "prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": null });
        assert!(of(&quiet).is_some());
    }

    #[test]
    fn one_that_is_no_text_has_to_be_read_even_where_nobody_looks() {
        let mut body = answer().to_string().replace("[1]", "\"!\"").into_bytes();
        assert!(usage(&body).is_some());
        let place = body.iter().position(|byte| *byte == b'!').unwrap();
        body[place] = 0xff;
        assert_eq!(usage(&body), None);
    }

    #[test]
    fn one_that_lacks_anything_or_tells_of_a_failure_has_to_be_read() {
        for (path, value) in [
            ("/id", json!(null)),
            ("/id", json!("")),
            ("/object", json!("error")),
            ("/created", json!(null)),
            ("/model", json!("")),
            ("/choices", json!([])),
            ("/choices/0/index", json!(1)),
            ("/choices/0/finish_reason", json!(null)),
            ("/choices/0/message/role", json!(null)),
            ("/choices/0/message/content", json!([{ "type": "text", "text": "hi" }])),
            ("/choices/0/message/tool_calls/0/id", json!(null)),
            ("/choices/0/message/tool_calls/0/type", json!(null)),
            ("/choices/0/message/tool_calls/0/function/arguments", json!({})),
            ("/usage", json!(null)),
        ] {
            let mut answer = answer();
            *answer.pointer_mut(path).unwrap() = value;
            assert_eq!(of(&answer), None, "{path}");
        }
        for (at, error) in [("", json!({ "message": "no" })), ("/choices/0", json!("no"))] {
            let mut answer = answer();
            answer.pointer_mut(at).unwrap()["error"] = error;
            assert_eq!(of(&answer), None, "{at}");
        }
    }
}
