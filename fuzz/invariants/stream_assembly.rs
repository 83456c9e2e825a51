//! Assembles stream deltas and checks their consistency.

use std::collections::BTreeMap;

use corbie::providers::chat::{StopReason, Usage};
use corbie::providers::provider::StreamDecoder;
use corbie::providers::{Delta, Error, SseParser};

/// An assembled answer.
#[derive(Debug, Default, PartialEq)]
pub(super) struct AssembledResponse {
    pub(super) text: String,
    pub(super) reasoning: String,
    /// Name and arguments of each call.
    pub(super) calls: BTreeMap<usize, (String, String)>,
    pub(super) stop: Option<StopReason>,
    pub(super) usage: Option<Usage>,
}

/// Parses a stream like the program.
pub(super) fn decode_stream(bytes: &[u8], decoder: &mut StreamDecoder) -> Result<Vec<Delta>, Error> {
    let mut deltas = Vec::new();
    for event in SseParser::default().push(bytes).expect("no event is larger than an input") {
        if event.data.trim().is_empty() || decoder.is_finished() {
            continue;
        }
        deltas.extend(decoder.event(&event)?);
    }
    deltas.extend(decoder.end());
    Ok(deltas)
}

impl AssembledResponse {
    /// Deltas arrive in a consistent order: arguments never precede their call, and the model stops once.
    pub(super) fn from_deltas(deltas: &[Delta]) -> AssembledResponse {
        let mut gathered = AssembledResponse::default();
        for delta in deltas {
            match delta {
                Delta::Text { text } => gathered.text.push_str(text),
                Delta::Reasoning { text } => gathered.reasoning.push_str(text),
                Delta::ToolCall { index, name, .. } => {
                    let before = gathered.calls.insert(*index, (name.clone(), String::new()));
                    assert!(before.is_none(), "a call begins once");
                }
                Delta::Arguments { index, json } => {
                    gathered.calls.get_mut(index).expect("a call that was told of").1.push_str(json);
                }
                Delta::Proof { index: Some(index), .. } => assert!(gathered.calls.contains_key(index)),
                Delta::Stopped { stop } => assert!(gathered.stop.replace(stop.clone()).is_none(), "it stops once"),
                Delta::Used { usage } => gathered.usage = Some(*usage),
                Delta::Started { .. } | Delta::Proof { index: None, .. } => {}
            }
        }
        gathered
    }
}
