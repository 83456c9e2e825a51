//! Encodes a streaming response as OpenAI chunks.

use serde_json::{Value, json};

use super::reasoning_details::{self, ReasoningCollector};
use super::render;
use crate::Delta;
use crate::chat::Usage;

/// Encodes the events of one response.
#[derive(Debug)]
pub struct Encoder {
    id: String,
    /// The model name the client requested.
    model: String,
    created: u64,
    /// The client requested a usage chunk.
    with_usage: bool,
    usage: Option<Usage>,
    details: ReasoningCollector,
}

impl Encoder {
    pub fn new(model: impl Into<String>, created: u64, with_usage: bool) -> Encoder {
        Encoder {
            id: format!("chatcmpl-{created}"),
            model: model.into(),
            created,
            with_usage,
            usage: None,
            details: ReasoningCollector::default(),
        }
    }

    /// Encodes a delta, if it adds anything.
    pub fn delta(&mut self, delta: &Delta, out: &mut Vec<u8>) {
        let choice = |delta: Value| json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": null});
        self.details.observe(delta);
        let choice = match delta {
            Delta::Started { id, .. } => {
                if !id.is_empty() {
                    self.id.clone_from(id);
                }
                choice(json!({"role": "assistant", "content": "", "refusal": null}))
            }
            Delta::Text { text } | Delta::Reasoning { text } if text.is_empty() => return,
            Delta::Text { text } => choice(json!({"content": text})),
            Delta::Reasoning { text } => choice(json!({"reasoning_content": text})),
            Delta::ToolCall { index, id, name } => choice(json!({"tool_calls": [
                {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}
            ]})),
            Delta::Arguments { index, json } => {
                choice(json!({"tool_calls": [{"index": index, "function": {"arguments": json}}]}))
            }
            // The proof is sent with the call; clients that preserve unknown fields send it back. SDKs fail on a tool
            // call chunk without a function.
            Delta::Proof { index: Some(index), proof } => choice(json!({"tool_calls": [
                {"index": index, "function": {"arguments": ""}, "extra_content": proof}
            ]})),
            Delta::Proof { index: None, .. } => return,
            Delta::Stopped { stop } => {
                if let Some(details) = self.details.take() {
                    self.write(json!([choice(json!({reasoning_details::FIELD: details}))]), None, out);
                }
                json!({"index": 0, "delta": {}, "logprobs": null, "finish_reason": render::finish_reason(stop)})
            }
            Delta::Used { usage } => {
                self.usage = Some(*usage);
                return;
            }
        };
        self.write(json!([choice]), None, out);
    }

    /// Encodes the end of a complete response. A truncated one must not have it.
    pub fn end(&self, out: &mut Vec<u8>) {
        if self.with_usage {
            self.write(json!([]), self.usage, out);
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }

    fn write(&self, choices: Value, usage: Option<Usage>, out: &mut Vec<u8>) {
        let mut chunk = json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": choices,
        });
        if self.with_usage {
            // Like OpenAI: null in every chunk but the last.
            chunk["usage"] = usage.map_or(Value::Null, render::usage);
        }
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(chunk.to_string().as_bytes());
        out.extend_from_slice(b"\n\n");
    }
}
