//! Which requests may be answered from the semantic cache: those that end with a short question in plain text and have
//! no tools. The question is compared by meaning, and the context before it must be identical.

use serde_json::{Map, Value};

use corbie_llm::openai::RawChatRequest;

/// An eligible request as question and context.
#[derive(Debug, PartialEq)]
pub(super) struct EligibleRequest {
    /// The last user message.
    pub(super) question: String,
    /// The remaining request.
    pub(super) context: String,
}

/// In a longer text, a few decisive words hardly change the embedding.
const MAX_QUESTION_BYTES: usize = 400;

impl EligibleRequest {
    /// Splits a request that ends with a text question. Requests with tools are excluded: the model may act on them,
    /// and semantic similarity is not sufficient for that.
    pub(super) fn of(received: &RawChatRequest) -> Option<EligibleRequest> {
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
        let fits = !text.trim().is_empty() && text.len() <= MAX_QUESTION_BYTES;
        fits.then(|| EligibleRequest { question: text, context: Value::Object(body).to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(body: &Value) -> Option<EligibleRequest> {
        EligibleRequest::of(&RawChatRequest::read(body.to_string().into()).unwrap())
    }

    #[test]
    fn the_last_words_are_the_question_and_all_the_rest_must_be_the_same() {
        let asked = |text: &str| json!({ "model": "m", "messages": [{ "role": "user", "content": text }] });
        let (one, other) = (of(&asked("why?")).unwrap(), of(&asked("how come?")).unwrap());
        assert_eq!((one.question.as_str(), &one.context), ("why?", &other.context));
        let mut warmer = asked("why?");
        warmer["temperature"] = json!(1.5);
        assert_ne!(of(&warmer).unwrap().context, one.context);
        let mut parts = asked("");
        parts["messages"][0]["content"] = json!([{ "type": "text", "text": "why?" }]);
        assert_eq!(of(&parts).unwrap().question, "why?");
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
            user(json!("x".repeat(MAX_QUESTION_BYTES + 1))),
            json!({ "messages": [] }),
            json!({ "messages": [{ "role": "assistant", "content": "so" }] }),
        ] {
            assert_eq!(of(&body), None, "{body}");
        }
    }
}
