//! What proves thinking to its own provider, on its way through a caller and back.
//!
//! OpenAI has no place for it. It goes out once, as a list `reasoning_details` beside the text: SDKs hand members back
//! that they do not know, and put a list of a stream together only where each entry has an `index` and comes whole.
//! Proofs of calls travel with their calls, as `extra_content`.

use serde_json::{Value, json};

use super::content;
use crate::providers::Delta;
use crate::providers::chat::Part;

/// The member of a message, and of a delta.
pub(super) const NAME: &str = "reasoning_details";

/// Thinking with its proof.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Detail {
    pub(super) text: String,
    pub(super) proof: Value,
    /// It stands after the text of the message, and not before all of it.
    pub(super) after_text: bool,
}

/// Gathers the details of an answer that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    details: Vec<Detail>,
    /// Thinking whose proof has not come.
    thinking: String,
    has_text: bool,
}

impl Gathered {
    pub(super) fn see(&mut self, delta: &Delta) {
        match delta {
            Delta::Reasoning { text } => self.thinking.push_str(text),
            Delta::Proof { index: None, proof } => {
                let text = std::mem::take(&mut self.thinking);
                self.details.push(Detail { text, proof: proof.clone(), after_text: self.has_text });
            }
            Delta::Text { text } => {
                self.has_text |= !text.is_empty();
                // It had none.
                self.thinking.clear();
            }
            Delta::ToolCall { .. } => self.thinking.clear(),
            _ => {}
        }
    }

    /// All of them, once they are all there; none where there are none.
    pub(super) fn take(&mut self) -> Option<Value> {
        written(&std::mem::take(&mut self.details))
    }
}

/// The details of an answer that came whole.
pub(super) fn write(parts: &[Part]) -> Option<Value> {
    let mut has_text = false;
    let mut details = Vec::new();
    for part in parts {
        match part {
            Part::Text { text } => has_text |= !text.is_empty(),
            Part::Reasoning { text, proof: Some(proof) } => {
                details.push(Detail { text: text.clone(), proof: proof.clone(), after_text: has_text });
            }
            _ => {}
        }
    }
    written(&details)
}

/// The details of a message that a caller hands back. Those of others are nothing to us.
pub(super) fn read(message: &Value) -> Vec<Detail> {
    let entries = message[NAME].as_array().map(Vec::as_slice).unwrap_or_default();
    let detail = |entry: &Value| {
        Some(Detail {
            text: entry["text"].as_str().unwrap_or_default().to_owned(),
            proof: content::proof(entry)?,
            after_text: entry["after_text"] == true,
        })
    };
    entries.iter().filter_map(detail).collect()
}

fn written(details: &[Detail]) -> Option<Value> {
    let entry = |(index, detail): (usize, &Detail)| {
        let Detail { text, proof, after_text } = detail;
        let mut entry = json!({"type": "reasoning.text", "index": index, "text": text, "extra_content": proof});
        if *after_text {
            entry["after_text"] = true.into();
        }
        entry
    };
    (!details.is_empty()).then(|| details.iter().enumerate().map(entry).collect())
}
