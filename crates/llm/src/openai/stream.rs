//! Decodes OpenAI's streaming responses.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{content, error, response};
use crate::chat::{ContentPart, Usage};
use crate::{Delta, Error, SseEvent};

/// Decodes the chunks of one response.
#[derive(Debug, Default)]
pub struct OpenAiDecoder {
    started: bool,
    refused: bool,
    /// A finish reason has been received.
    stopped: bool,
    /// `[DONE]` has been received.
    has_end_marker: bool,
    /// Last reported usage: some servers repeat it with every chunk.
    usage: Option<Usage>,
    /// The last chunk carried usage.
    carries_usage: bool,
    /// Unfinished choices other than the first.
    unfinished_choices: BTreeSet<u64>,
    calls: Vec<ToolCallState>,
}

/// Whether a chunk carries content without a delta type: audio, server-specific fields, or further choices.
pub(super) fn has_unmodelled_content(data: &str) -> bool {
    const KNOWN: [&str; 5] = ["role", "content", "refusal", "tool_calls", "reasoning_content"];
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    let Ok(chunk) = serde_json::from_str::<Value>(data) else { return false };
    chunk["choices"].as_array().into_iter().flatten().any(|choice| {
        let first = choice["index"].as_u64().unwrap_or_default() == 0;
        let members = choice["delta"].as_object();
        members.into_iter().flatten().any(|(name, value)| {
            let known = name == "role" || (first && KNOWN.contains(&name.as_str()));
            !known && !is_empty(value)
        })
    })
}

/// A tool call in progress.
#[derive(Debug)]
struct ToolCallState {
    /// The server's index for it. Some servers send none, and some send the same index for all calls.
    number: Option<u64>,
    id: String,
    /// Its name has been received and its start has been emitted.
    is_started: bool,
    /// Arguments received before the name.
    pending_arguments: String,
}

impl OpenAiDecoder {
    /// The deltas of an event.
    pub fn event(&mut self, event: &SseEvent) -> Result<Vec<Delta>, Error> {
        self.carries_usage = false;
        let data = event.data.trim();
        if self.has_end_marker || data.is_empty() {
            return Ok(Vec::new());
        }
        if data.starts_with("[DONE]") {
            return self.end();
        }
        let chunk = match serde_json::from_str(data) {
            Ok(Value::Object(chunk)) => chunk,
            _ if event.name == "error" => return Err(error::from_reported(&Value::Null)),
            _ => return Err(Error::InvalidResponse("stream event is not a JSON object")),
        };
        if let Some(error) = error::from_body(&chunk) {
            return Err(error);
        }
        if event.name == "error" {
            return Err(error::from_reported(&Value::Object(chunk)));
        }
        self.chunk(&chunk)
    }

    /// Whether the response is complete: the model has stopped, or the end marker was received.
    pub fn is_complete(&self) -> bool {
        self.has_end_marker || (self.stopped && self.unfinished_choices.is_empty())
    }

    /// Whether the last event carried token usage.
    pub fn carries_usage(&self) -> bool {
        self.carries_usage
    }

    /// Whether the end marker was received; later events are not part of the response.
    pub fn is_finished(&self) -> bool {
        self.has_end_marker
    }

    fn end(&mut self) -> Result<Vec<Delta>, Error> {
        if !self.started {
            return Err(Error::InvalidResponse("stream has no response"));
        }
        self.has_end_marker = true;
        // Some servers never send a finish reason.
        Ok(self.stop(&Value::Null).into_iter().collect())
    }

    fn chunk(&mut self, chunk: &Map<String, Value>) -> Result<Vec<Delta>, Error> {
        let mut deltas = Vec::new();
        let choice = response::first_choice(chunk);
        if let Some(error) = choice.and_then(Value::as_object).and_then(error::from_body) {
            return Err(error);
        }
        // Azure's first chunk reports its content filters and has neither a choice nor an ID.
        let text = |name| chunk.get(name).and_then(content::text).unwrap_or_default().to_owned();
        if !self.started && (choice.is_some() || !text("id").is_empty()) {
            self.started = true;
            deltas.push(Delta::Started { id: text("id"), model: text("model") });
        }
        if let Some(choice) = choice {
            self.delta(&choice["delta"], &mut deltas);
            if content::text(&choice["finish_reason"]).is_some() {
                deltas.extend(self.stop(choice));
            }
        }
        for other in chunk.get("choices").and_then(Value::as_array).into_iter().flatten() {
            let Some(index) = other["index"].as_u64().filter(|index| *index > 0) else { continue };
            match content::text(&other["finish_reason"]) {
                Some(_) => drop(self.unfinished_choices.remove(&index)),
                None => drop(self.unfinished_choices.insert(index)),
            }
        }
        let usage = chunk.get("usage").and_then(response::usage);
        self.carries_usage = usage.is_some();
        if let Some(usage) = usage.filter(|usage| self.usage != Some(*usage)) {
            self.usage = Some(usage);
            deltas.push(Delta::Used { usage });
        }
        Ok(deltas)
    }

    fn delta(&mut self, delta: &Value, deltas: &mut Vec<Delta>) {
        deltas.extend(content::thinking(delta).map(|text| Delta::Reasoning { text: text.into() }));
        deltas.extend(content::parts(&delta["content"]).into_iter().filter_map(|part| match part {
            ContentPart::Text { text } => Some(Delta::Text { text }),
            _ => None,
        }));
        if let Some(text) = content::refusal(delta) {
            self.refused = true;
            deltas.push(Delta::Text { text: text.into() });
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(call, deltas);
        }
    }

    fn call(&mut self, delta: &Value, deltas: &mut Vec<Delta>) {
        let name = content::text(&delta["function"]["name"]);
        let index = self.find_or_add_call(delta["index"].as_u64(), content::text(&delta["id"]), name.is_some());
        let call = &mut self.calls[index];
        match &delta["function"]["arguments"] {
            Value::Null => {}
            arguments => call.pending_arguments.push_str(&content::arguments_text(arguments)),
        }
        if let Some(name) = name.filter(|_| !call.is_started) {
            call.is_started = true;
            deltas.push(Delta::ToolCall { index, id: call.id.clone(), name: name.to_owned() });
        }
        if call.is_started && !call.pending_arguments.is_empty() {
            deltas.push(Delta::Arguments { index, json: std::mem::take(&mut call.pending_arguments) });
        }
        if call.is_started {
            deltas.extend(content::proof(delta).map(|proof| Delta::Proof { index: Some(index), proof }));
        }
    }

    /// The index of the call that a chunk belongs to; adds a new call if there is none.
    fn find_or_add_call(&mut self, number: Option<u64>, id: Option<&str>, has_name: bool) -> usize {
        let same = |call: &ToolCallState| match (number, id) {
            // Calls that share one index are distinguished by ID; each starts with its name.
            (Some(_), Some(id)) if has_name => call.number == number && call.id == id,
            (Some(_), _) => call.number == number,
            (None, Some(id)) => call.id == id,
            (None, None) => !has_name,
        };
        if let Some(index) = self.calls.iter().rposition(same) {
            return index;
        }
        let id = id.map_or_else(|| content::call_id(self.calls.len()), str::to_owned);
        self.calls.push(ToolCallState { number, id, is_started: false, pending_arguments: String::new() });
        self.calls.len() - 1
    }

    fn stop(&mut self, choice: &Value) -> Option<Delta> {
        let has_calls = self.calls.iter().any(|call| call.is_started);
        let first = !std::mem::replace(&mut self.stopped, true);
        first.then(|| Delta::Stopped { stop: response::stop(choice, self.refused, has_calls) })
    }
}
