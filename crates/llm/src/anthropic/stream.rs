//! Decodes Anthropic's streaming responses.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::response::{ReportedUsage, stop};
use super::{blocks, error};
use crate::chat::{ContentPart, Delta};
use crate::{Error, SseEvent};

/// Decodes the events of one response.
#[derive(Debug, Default)]
pub struct AnthropicDecoder {
    state: State,
    /// Open blocks, by the provider's index.
    open: BTreeMap<u64, OpenBlock>,
    /// Number of tool calls so far. Our call indexes do not count the blocks in between.
    calls: usize,
    usage: ReportedUsage,
}

#[derive(Debug, Default, PartialEq)]
enum State {
    #[default]
    Waiting,
    Started,
    /// The stop reason has been received.
    Stopped,
    Complete,
}

/// An unfinished block.
#[derive(Debug)]
enum OpenBlock {
    Text,
    /// The block without its text, used to attach the signature that arrives at its end.
    Thinking {
        proof: Value,
    },
    /// The initial input counts only if no further input arrives.
    Call {
        index: usize,
        input: Value,
        written: bool,
    },
    /// A block that is not passed on.
    Other,
}

impl AnthropicDecoder {
    pub fn event(&mut self, event: &SseEvent) -> Result<Vec<Delta>, Error> {
        if event.data.is_empty() || self.is_complete() {
            return Ok(Vec::new());
        }
        let data: Value =
            serde_json::from_str(&event.data).map_err(|_| Error::InvalidResponse("stream event is not JSON"))?;
        match data.get("type").and_then(Value::as_str).unwrap_or(&event.name) {
            "error" => Err(error::from_event(&data)),
            "message_start" => self.start(&data),
            "content_block_start" => self.open(&data),
            "content_block_delta" => self.block_delta(&data),
            "content_block_stop" => self.close(&data),
            "message_delta" => self.end(&data),
            "message_stop" if self.state == State::Stopped => {
                self.state = State::Complete;
                Ok(Vec::new())
            }
            "message_stop" => Err(Error::InvalidResponse("stream has no stop reason")),
            // Pings, and event types added in the future.
            _ => Ok(Vec::new()),
        }
    }

    /// Whether the response is complete.
    pub fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    fn start(&mut self, data: &Value) -> Result<Vec<Delta>, Error> {
        let message = data.get("message").ok_or(Error::InvalidResponse("first stream event has no message"))?;
        let text = |member: &str| message.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(usage) = message.get("usage") {
            self.usage = self.usage.updated_with(usage);
        }
        self.state = State::Started;
        Ok(vec![Delta::Started { id: text("id"), model: text("model") }])
    }

    fn open(&mut self, data: &Value) -> Result<Vec<Delta>, Error> {
        if self.state != State::Started {
            return Err(Error::InvalidResponse("stream events are out of order"));
        }
        let block = data.get("content_block").ok_or(Error::InvalidResponse("content block has no content"))?;
        let (open, deltas) = match blocks::read(block) {
            Some(ContentPart::Text { text }) => (OpenBlock::Text, text_delta(text)),
            // Emitted even if empty: redacted thinking also starts here.
            Some(ContentPart::Reasoning { text, proof }) => {
                (OpenBlock::Thinking { proof: proof.unwrap_or_default() }, vec![Delta::Reasoning { text }])
            }
            Some(ContentPart::ToolCall { id, name, arguments, proof }) => {
                let index = self.calls;
                self.calls += 1;
                let mut deltas = vec![Delta::ToolCall { index, id, name }];
                deltas.extend(proof.map(|proof| Delta::Proof { index: Some(index), proof }));
                (OpenBlock::Call { index, input: arguments, written: false }, deltas)
            }
            _ => (OpenBlock::Other, Vec::new()),
        };
        self.open.insert(number(data)?, open);
        Ok(deltas)
    }

    fn block_delta(&mut self, data: &Value) -> Result<Vec<Delta>, Error> {
        let open = self.open.get_mut(&number(data)?).ok_or(Error::InvalidResponse("stream events are out of order"))?;
        let delta = data.get("delta").unwrap_or(&Value::Null);
        let text = |member: &str| delta.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(match (open, delta.get("type").and_then(Value::as_str).unwrap_or_default()) {
            (OpenBlock::Text, "text_delta") => text_delta(text("text")),
            (OpenBlock::Thinking { .. }, "thinking_delta") => vec![Delta::Reasoning { text: text("thinking") }],
            (OpenBlock::Thinking { proof }, "signature_delta") => {
                let before = proof.get("signature").and_then(Value::as_str).unwrap_or_default();
                let signature = format!("{before}{}", text("signature"));
                if let Some(proof) = proof.as_object_mut() {
                    proof.insert("signature".into(), signature.into());
                }
                Vec::new()
            }
            (OpenBlock::Call { index, written, .. }, "input_json_delta") => {
                let json = text("partial_json");
                *written |= !json.is_empty();
                if json.is_empty() { Vec::new() } else { vec![Delta::Arguments { index: *index, json }] }
            }
            // Citations, and deltas of unsupported blocks.
            _ => Vec::new(),
        })
    }

    fn close(&mut self, data: &Value) -> Result<Vec<Delta>, Error> {
        Ok(match self.open.remove(&number(data)?) {
            Some(OpenBlock::Thinking { proof }) => vec![Delta::Proof { index: None, proof }],
            // Arguments must be JSON even if the tool takes none.
            Some(OpenBlock::Call { index, input, written: false }) => {
                let input = if input.is_object() { input } else { json!({}) };
                vec![Delta::Arguments { index, json: input.to_string() }]
            }
            Some(_) => Vec::new(),
            None => return Err(Error::InvalidResponse("stream events are out of order")),
        })
    }

    fn end(&mut self, data: &Value) -> Result<Vec<Delta>, Error> {
        if self.state == State::Waiting {
            return Err(Error::InvalidResponse("stream events are out of order"));
        }
        let mut deltas = Vec::new();
        if let Some(stop) = data.get("delta").and_then(|delta| stop(delta.get("stop_reason")?)) {
            self.state = State::Stopped;
            deltas.push(Delta::Stopped { stop });
        }
        if let Some(usage) = data.get("usage") {
            self.usage = self.usage.updated_with(usage);
            deltas.push(Delta::Used { usage: self.usage.usage() });
        }
        Ok(deltas)
    }
}

fn text_delta(text: String) -> Vec<Delta> {
    if text.is_empty() { Vec::new() } else { vec![Delta::Text { text }] }
}

fn number(data: &Value) -> Result<u64, Error> {
    data.get("index").and_then(Value::as_u64).ok_or(Error::InvalidResponse("content block has no index"))
}
