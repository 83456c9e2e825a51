//! Decodes Google's streaming responses.
//!
//! Each event is a complete response that contains only the new parts. There is no end event: an answer is complete
//! when its last event has a finish reason. Some models send a finish reason with every event, so the decoder reports
//! it only after the stream has ended.

use serde_json::Value;

use super::error;
use super::fields::{Object, field, object, objects, text};
use super::parts;
use super::response::{call_id, candidate, is_blocked, model, stop, usage};
use crate::chat::{Delta, StopReason, Usage};
use crate::{Error, SseEvent};

/// Decodes the events of one stream.
#[derive(Debug, Default)]
pub struct GoogleDecoder {
    has_started: bool,
    id: String,
    calls: usize,
    /// The finish reason of the last event.
    stop: Option<StopReason>,
    usage: Option<Usage>,
    has_end_marker: bool,
}

impl GoogleDecoder {
    /// The deltas of an event.
    pub fn event(&mut self, event: &SseEvent) -> Result<Vec<Delta>, Error> {
        // Some gateways end every stream with OpenAI's `[DONE]`.
        if matches!(event.data.trim(), "" | "[DONE]") {
            self.has_end_marker |= !event.data.trim().is_empty();
            return Ok(Vec::new());
        }
        let Ok(Value::Object(chunk)) = serde_json::from_str(&event.data) else {
            return Err(Error::InvalidResponse("stream event is not a JSON object"));
        };
        if field(&chunk, "error").is_some() {
            return Err(error::in_stream(&chunk));
        }
        let mut deltas = Vec::new();
        self.start(&chunk, &mut deltas);
        if let Some(candidate) = candidate(&chunk) {
            for part in object(candidate, "content").map(|content| objects(content, "parts")).unwrap_or_default() {
                self.part(part, &mut deltas);
            }
            self.stop = text(candidate, "finishReason").map(|reason| stop(reason, self.calls > 0));
        } else if is_blocked(&chunk) {
            self.stop = Some(StopReason::Refused);
        }
        // Every event reports cumulative usage; only the last report counts.
        if self.is_complete() {
            self.usage = usage(&chunk).or(self.usage);
        }
        Ok(deltas)
    }

    /// Whether an explicit end marker was received.
    pub fn is_finished(&self) -> bool {
        self.has_end_marker && self.is_complete()
    }

    /// Whether the last event had a finish reason.
    pub fn is_complete(&self) -> bool {
        self.stop.is_some()
    }

    /// The final deltas after the end of the stream.
    pub fn end(&mut self) -> Vec<Delta> {
        let stopped = self.stop.take().map(|stop| Delta::Stopped { stop });
        let used = self.usage.take().map(|usage| Delta::Used { usage });
        stopped.into_iter().chain(used).collect()
    }

    fn start(&mut self, chunk: &Object, deltas: &mut Vec<Delta>) {
        if std::mem::replace(&mut self.has_started, true) {
            return;
        }
        self.id = text(chunk, "responseId").unwrap_or_default().to_owned();
        deltas.push(Delta::Started { id: self.id.clone(), model: model(chunk) });
    }

    /// One part. A function call arrives whole; images are not supported in streams.
    fn part(&mut self, part: &Object, deltas: &mut Vec<Delta>) {
        let said = deltas.len();
        let mut call_index = None;
        if let Some(call) = object(part, "functionCall") {
            let index = self.calls;
            let made = || call_id(&self.id, index);
            let Some(name) = text(call, "name").map(str::to_owned) else { return };
            let id = text(call, "id").filter(|id| !id.is_empty()).map_or_else(made, str::to_owned);
            let json = field(call, "args").map_or_else(|| "{}".to_owned(), Value::to_string);
            deltas.extend([Delta::ToolCall { index, id, name }, Delta::Arguments { index, json }]);
            self.calls += 1;
            call_index = Some(index);
        } else if let Some(text) = text(part, "text").filter(|text| !text.is_empty()).map(str::to_owned) {
            deltas.push(if parts::is_thought(part) { Delta::Reasoning { text } } else { Delta::Text { text } });
        }
        if let Some(mut proof) = parts::proof(part) {
            if matches!(deltas[said..], [Delta::Text { .. }]) {
                proof[parts::OF_PART_BEFORE] = true.into();
            }
            deltas.push(Delta::Proof { index: call_index, proof });
        }
    }
}
