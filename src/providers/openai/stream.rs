//! Decodes OpenAI's streaming responses.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{content, failure, response};
use crate::providers::chat::{Part, Usage};
use crate::providers::{Delta, Error, Event};

/// Decodes the chunks of one response.
#[derive(Debug, Default)]
pub struct Decoder {
    started: bool,
    refused: bool,
    /// A finish reason has been received.
    stopped: bool,
    /// `[DONE]` has been received.
    ended: bool,
    /// Last reported usage: some servers repeat it with every chunk.
    usage: Option<Usage>,
    /// The last chunk carried usage.
    tells_tokens: bool,
    /// Unfinished choices other than the first.
    others: BTreeSet<u64>,
    calls: Vec<Call>,
}

/// Whether a chunk carries content without a delta type: audio, server-specific fields, or further choices.
pub(super) fn says_something_else(data: &str) -> bool {
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
struct Call {
    /// The server's index for it. Some servers send none, and some send the same index for all calls.
    number: Option<u64>,
    id: String,
    /// Its name has been received and its start has been emitted.
    announced: bool,
    /// Arguments received before the name.
    early: String,
}

impl Decoder {
    /// The deltas of an event.
    pub fn event(&mut self, event: &Event) -> Result<Vec<Delta>, Error> {
        self.tells_tokens = false;
        let data = event.data.trim();
        if self.ended || data.is_empty() {
            return Ok(Vec::new());
        }
        if data.starts_with("[DONE]") {
            return self.end();
        }
        let chunk = match serde_json::from_str(data) {
            Ok(Value::Object(chunk)) => chunk,
            _ if event.name == "error" => return Err(failure::reported(&Value::Null)),
            _ => return Err(Error::Unreadable("an event of its stream is no JSON object")),
        };
        if let Some(error) = failure::inside(&chunk) {
            return Err(error);
        }
        if event.name == "error" {
            return Err(failure::reported(&Value::Object(chunk)));
        }
        self.chunk(&chunk)
    }

    /// Whether the response is complete: the model has stopped, or the end marker was received.
    pub fn is_complete(&self) -> bool {
        self.ended || (self.stopped && self.others.is_empty())
    }

    /// Whether the last event carried token usage.
    pub fn tells_tokens(&self) -> bool {
        self.tells_tokens
    }

    /// Whether the end marker was received; later events are not part of the response.
    pub fn is_over(&self) -> bool {
        self.ended
    }

    fn end(&mut self) -> Result<Vec<Delta>, Error> {
        if !self.started {
            return Err(Error::Unreadable("its stream has no answer"));
        }
        self.ended = true;
        // Some servers never send a finish reason.
        Ok(self.stop(&Value::Null).into_iter().collect())
    }

    fn chunk(&mut self, chunk: &Map<String, Value>) -> Result<Vec<Delta>, Error> {
        let mut deltas = Vec::new();
        let choice = response::first_choice(chunk);
        if let Some(error) = choice.and_then(Value::as_object).and_then(failure::inside) {
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
                Some(_) => drop(self.others.remove(&index)),
                None => drop(self.others.insert(index)),
            }
        }
        let usage = chunk.get("usage").and_then(response::usage);
        self.tells_tokens = usage.is_some();
        if let Some(usage) = usage.filter(|usage| self.usage != Some(*usage)) {
            self.usage = Some(usage);
            deltas.push(Delta::Used { usage });
        }
        Ok(deltas)
    }

    fn delta(&mut self, delta: &Value, deltas: &mut Vec<Delta>) {
        deltas.extend(content::thinking(delta).map(|text| Delta::Reasoning { text: text.into() }));
        deltas.extend(content::parts(&delta["content"]).into_iter().filter_map(|part| match part {
            Part::Text { text } => Some(Delta::Text { text }),
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
        let index = self.find(delta["index"].as_u64(), content::text(&delta["id"]), name.is_some());
        let call = &mut self.calls[index];
        match &delta["function"]["arguments"] {
            Value::Null => {}
            arguments => call.early.push_str(&content::arguments_text(arguments)),
        }
        if let Some(name) = name.filter(|_| !call.announced) {
            call.announced = true;
            deltas.push(Delta::ToolCall { index, id: call.id.clone(), name: name.to_owned() });
        }
        if call.announced && !call.early.is_empty() {
            deltas.push(Delta::Arguments { index, json: std::mem::take(&mut call.early) });
        }
        if call.announced {
            deltas.extend(content::proof(delta).map(|proof| Delta::Proof { index: Some(index), proof }));
        }
    }

    /// The index of the call that a chunk belongs to; adds a new call if there is none.
    fn find(&mut self, number: Option<u64>, id: Option<&str>, has_name: bool) -> usize {
        let same = |call: &Call| match (number, id) {
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
        self.calls.push(Call { number, id, announced: false, early: String::new() });
        self.calls.len() - 1
    }

    fn stop(&mut self, choice: &Value) -> Option<Delta> {
        let has_calls = self.calls.iter().any(|call| call.announced);
        let first = !std::mem::replace(&mut self.stopped, true);
        first.then(|| Delta::Stopped { stop: response::stop(choice, self.refused, has_calls) })
    }
}
