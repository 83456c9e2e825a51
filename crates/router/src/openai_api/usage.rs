//! Token usage of a stream, sent once, at the end. Some servers report it with every chunk, and corbie requests it even
//! if the caller did not.

use serde_json::Value;

/// Usage reported by a provider with OpenAI's protocol.
#[derive(Debug)]
pub(super) struct UsageTracker {
    /// The caller has requested usage.
    requested: bool,
    /// The last reported usage, as a separate chunk.
    last: Option<Value>,
}

impl UsageTracker {
    pub(super) fn new(wanted: bool) -> UsageTracker {
        UsageTracker { requested: wanted, last: None }
    }

    /// Removes the usage from a chunk. Returns the remaining chunk unless it is empty.
    pub(super) fn strip_usage(&mut self, data: &str) -> Option<String> {
        let mut chunk: Value = serde_json::from_str(data).ok()?;
        self.strip_chunk(&mut chunk);
        chunk["choices"].as_array().is_some_and(|choices| !choices.is_empty()).then(|| chunk.to_string())
    }

    /// The usage chunk for the end of the stream, if the caller has requested it.
    pub(super) fn final_chunk(&mut self) -> Option<String> {
        self.last.take().filter(|_| self.requested).map(|counts| counts.to_string())
    }

    fn strip_chunk(&mut self, chunk: &mut Value) {
        let Some(members) = chunk.as_object_mut() else { return };
        let Some(usage) = members.shift_remove("usage") else { return };
        if self.requested {
            members.insert("usage".into(), Value::Null);
        }
        let mut counts = members.clone();
        counts.insert("choices".into(), Value::Array(Vec::new()));
        counts.insert("usage".into(), usage);
        self.last = Some(Value::Object(counts));
    }
}
