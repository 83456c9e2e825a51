//! How many tokens a stream took, told once and at its end: some servers tell it with every chunk, and we ask them to
//! also where the caller did not.

use serde_json::Value;

/// What a provider of the caller's own protocol says of tokens.
#[derive(Debug)]
pub(super) struct Counts {
    /// The caller wants to be told.
    wanted: bool,
    /// What was said last, as a chunk of its own.
    last: Option<Value>,
}

impl Counts {
    pub(super) fn new(wanted: bool) -> Counts {
        Counts { wanted, last: None }
    }

    /// Takes them out of a chunk; gives what is left of it, if that says anything.
    pub(super) fn taken_from(&mut self, data: &str) -> Option<String> {
        let mut chunk: Value = serde_json::from_str(data).ok()?;
        self.take(&mut chunk);
        chunk["choices"].as_array().is_some_and(|choices| !choices.is_empty()).then(|| chunk.to_string())
    }

    /// The last chunk before the end, where one is wanted.
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
