//! Round-trips signed reasoning through OpenAI clients as `reasoning_details`.
//!
//! OpenAI has no field for the signature. It is sent once, as a list `reasoning_details` next to the text: SDKs return
//! unknown fields, and reassemble a streamed list only if each entry has an `index` and arrives whole. Proofs of tool
//! calls travel with their calls, as `extra_content`.

use serde_json::{Value, json};

use super::content;
use crate::Delta;
use crate::chat::ContentPart;

/// Field name in a message and in a delta.
pub(super) const FIELD: &str = "reasoning_details";

/// Reasoning with its proof.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReasoningDetail {
    pub(super) text: String,
    pub(super) proof: Value,
    /// Follows the text of the message rather than preceding all of it.
    pub(super) after_text: bool,
}

/// Collects the details of a streaming response.
#[derive(Debug, Default)]
pub(super) struct ReasoningCollector {
    details: Vec<ReasoningDetail>,
    /// Reasoning without a proof so far.
    thinking: String,
    has_text: bool,
}

impl ReasoningCollector {
    pub(super) fn observe(&mut self, delta: &Delta) {
        match delta {
            Delta::Reasoning { text } => self.thinking.push_str(text),
            Delta::Proof { index: None, proof } => {
                let text = std::mem::take(&mut self.thinking);
                self.details.push(ReasoningDetail { text, proof: proof.clone(), after_text: self.has_text });
            }
            Delta::Text { text } => {
                self.has_text |= !text.is_empty();
                // The reasoning had no proof.
                self.thinking.clear();
            }
            Delta::ToolCall { .. } => self.thinking.clear(),
            _ => {}
        }
    }

    /// All collected details, or `None` if there are none.
    pub(super) fn take(&mut self) -> Option<Value> {
        serialize(&std::mem::take(&mut self.details))
    }
}

/// The details of a buffered response.
pub(super) fn write(parts: &[ContentPart]) -> Option<Value> {
    let mut has_text = false;
    let mut details = Vec::new();
    for part in parts {
        match part {
            ContentPart::Text { text } => has_text |= !text.is_empty(),
            ContentPart::Reasoning { text, proof: Some(proof) } => {
                details.push(ReasoningDetail { text: text.clone(), proof: proof.clone(), after_text: has_text });
            }
            _ => {}
        }
    }
    serialize(&details)
}

/// The details of a message that a client sends back. Details written by other gateways are ignored.
pub(super) fn read(message: &Value) -> Vec<ReasoningDetail> {
    let entries = message[FIELD].as_array().map(Vec::as_slice).unwrap_or_default();
    let detail = |entry: &Value| {
        Some(ReasoningDetail {
            text: entry["text"].as_str().unwrap_or_default().to_owned(),
            proof: content::proof(entry)?,
            after_text: entry["after_text"] == true,
        })
    };
    entries.iter().filter_map(detail).collect()
}

fn serialize(details: &[ReasoningDetail]) -> Option<Value> {
    let entry = |(index, detail): (usize, &ReasoningDetail)| {
        let ReasoningDetail { text, proof, after_text } = detail;
        let mut entry = json!({"type": "reasoning.text", "index": index, "text": text, "extra_content": proof});
        if *after_text {
            entry["after_text"] = true.into();
        }
        entry
    };
    (!details.is_empty()).then(|| details.iter().enumerate().map(entry).collect())
}
