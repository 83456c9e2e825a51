//! Token usage of a stream, sent once, at the end. Some servers report it with every chunk, and corbie requests it even
//! if the caller did not.

use serde_json::Value;

/// Usage reported by a provider with OpenAI's protocol.
#[derive(Debug)]
pub(super) struct Counts {
    /// The caller has requested usage.
    wanted: bool,
    /// The last reported usage, as a separate chunk.
    last: Option<Value>,
}

impl Counts {
    pub(super) fn new(wanted: bool) -> Counts {
        Counts { wanted, last: None }
    }

    /// Removes the usage from a chunk. Returns the remaining chunk unless it is empty.
    pub(super) fn taken_from(&mut self, data: &str) -> Option<String> {
        let mut chunk: Value = serde_json::from_str(data).ok()?;
        self.take(&mut chunk);
        chunk["choices"].as_array().is_some_and(|choices| !choices.is_empty()).then(|| chunk.to_string())
    }

    /// The usage chunk for the end of the stream, if the caller has requested it.
    pub(super) fn told(&mut self) -> Option<String> {
        self.last.take().filter(|_| self.wanted).map(|counts| counts.to_string())
    }

    fn take(&mut self, chunk: &mut Value) {
        let Some(members) = chunk.as_object_mut() else { return };
        let Some(usage) = members.shift_remove("usage") else { return };
        if self.wanted {
            members.insert("usage".into(), Value::Null);
        }
        let mut counts = members.clone();
        counts.insert("choices".into(), Value::Array(Vec::new()));
        counts.insert("usage".into(), usage);
        self.last = Some(Value::Object(counts));
    }
}
