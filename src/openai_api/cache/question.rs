//! Splits a request into its last question and the context before it.

use serde_json::{Map, Value};

use crate::providers::openai::Received;

/// A request as question and context.
#[derive(Debug, PartialEq)]
pub(super) struct Question {
    /// The last user message.
    pub(super) text: String,
    /// The remaining request.
    pub(super) before: String,
}

/// In a longer text, a few decisive words hardly change the embedding.
const LONGEST: usize = 400;

impl Question {
    /// Splits a request that ends with a text question. Requests with tools are excluded: the model may act on them,
    /// and semantic similarity is not sufficient for that.
    pub(super) fn of(received: &Received) -> Option<Question> {
        let mut body: Map<String, Value> = serde_json::from_slice(received.bytes()).ok()?;
        if ["tools", "functions"].iter().any(|name| body.contains_key(*name)) {
            return None;
        }
        let last = body.get_mut("messages")?.as_array_mut()?.last_mut()?.as_object_mut()?;
        if last.get("role")? != "user" {
            return None;
        }
        let text = match last.remove("content")? {
            Value::String(text) => text,
            Value::Array(parts) => match parts.as_slice() {
                [part] if part["type"] == "text" => part["text"].as_str()?.to_owned(),
                _ => return None,
            },
            _ => return None,
        };
        let fits = !text.trim().is_empty() && text.len() <= LONGEST;
        fits.then(|| Question { text, before: Value::Object(body).to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(body: &Value) -> Option<Question> {
        Question::of(&Received::read(body.to_string().into()).unwrap())
    }

    #[test]
    fn the_last_words_are_the_question_and_all_the_rest_must_be_the_same() {
        let asked = |text: &str| json!({ "model": "m", "messages": [{ "role": "user", "content": text }] });
        let (one, other) = (of(&asked("why?")).unwrap(), of(&asked("how come?")).unwrap());
        assert_eq!((one.text.as_str(), &one.before), ("why?", &other.before));
        let mut warmer = asked("why?");
        warmer["temperature"] = json!(1.5);
        assert_ne!(of(&warmer).unwrap().before, one.before);
        let mut parts = asked("");
        parts["messages"][0]["content"] = json!([{ "type": "text", "text": "why?" }]);
        assert_eq!(of(&parts).unwrap().text, "why?");
    }

    #[test]
    fn what_is_no_plain_question_is_not_compared() {
        let user = |content: Value| json!({ "messages": [{ "role": "user", "content": content }] });
        let mut with_tools = user(json!("why?"));
        with_tools["tools"] = json!([]);
        let picture =
            json!([{ "type": "text", "text": "what?" }, { "type": "image_url", "image_url": { "url": "x" } }]);
        for body in [
            with_tools,
            user(picture),
            user(json!("  ")),
            user(json!("x".repeat(LONGEST + 1))),
            json!({ "messages": [] }),
            json!({ "messages": [{ "role": "assistant", "content": "so" }] }),
        ] {
            assert_eq!(of(&body), None, "{body}");
        }
    }
}
