//! JSON parser with source positions.
//!
//! serde_json validates the text and limits nesting, but reports no positions of valid values. So a second pass over
//! the valid text determines them, and detects duplicate keys.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::super::diagnostic::{Diagnostic, KeyPath, Origin};
use super::super::spanned_value::{SpannedEntry, SpannedMap, SpannedValue, ValueData};
use super::position::PositionIndex;
use super::{Position, syntax_error};

pub(super) fn parse(text: &str, path: &Arc<Path>) -> Result<SpannedValue, Vec<Diagnostic>> {
    let start = Position { line: 1, column: 1 };
    if text.trim().is_empty() {
        return Ok(SpannedValue::empty(Origin::file(path, start)));
    }
    // Parsing a `Value` limits nesting; skipping with `IgnoredAny` would not.
    if let Err(error) = serde_json::from_str::<Value>(text) {
        let position = Position { line: error.line().max(1), column: error.column().max(1) };
        // serde_json appends the position; ours is a prefix.
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        return Err(vec![syntax_error(path, position, format!("is not valid JSON: {message}"))]);
    }
    let mut walk = JsonWalker { text, offset: 0, index: PositionIndex::new(text), path, diagnostics: Vec::new() };
    match walk.value(&KeyPath::default()) {
        Some(root) if walk.diagnostics.is_empty() => Ok(root),
        Some(_) => Err(walk.diagnostics),
        None => Err(vec![syntax_error(path, start, "is not valid JSON")]),
    }
}

struct JsonWalker<'a> {
    text: &'a str,
    offset: usize,
    index: PositionIndex<'a>,
    path: &'a Arc<Path>,
    diagnostics: Vec<Diagnostic>,
}

impl JsonWalker<'_> {
    /// `None` is impossible for valid text and avoids a panic.
    fn value(&mut self, path: &KeyPath) -> Option<SpannedValue> {
        let origin = self.origin();
        let data = match self.peek()? {
            b'{' => self.object(path)?,
            b'[' => self.array(path)?,
            b'"' => ValueData::String(self.string()?.into()),
            _ => SpannedValue::from_json(self.scalar()?, origin.clone()).data,
        };
        Some(SpannedValue { data, origin })
    }

    fn object(&mut self, path: &KeyPath) -> Option<ValueData> {
        let mut entries = SpannedMap::new();
        self.offset += 1;
        while self.peek()? != b'}' {
            let key_origin = self.origin();
            let key = self.string()?;
            let path = path.key(&key);
            self.peek()?;
            self.offset += 1; // the colon
            let node = self.value(&path)?;
            if entries.contains_key(&key) {
                self.diagnostics.push(Diagnostic::at(key_origin.clone(), path, "duplicate key"));
            }
            entries.insert(key, SpannedEntry { key: key_origin, node });
            self.comma()?;
        }
        self.offset += 1;
        Some(ValueData::Map(entries))
    }

    fn array(&mut self, path: &KeyPath) -> Option<ValueData> {
        let mut items = Vec::new();
        self.offset += 1;
        while self.peek()? != b']' {
            items.push(self.value(&path.index(items.len()))?);
            self.comma()?;
        }
        self.offset += 1;
        Some(ValueData::List(items))
    }

    fn string(&mut self) -> Option<String> {
        let rest = self.text.get(self.offset..)?;
        let mut escaped = false;
        let end = rest.bytes().skip(1).position(|byte| {
            let closes = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            closes
        })? + 2;
        self.offset += end;
        serde_json::from_str(&rest[..end]).ok()
    }

    fn scalar(&mut self) -> Option<Value> {
        let rest = self.text.get(self.offset..)?;
        let end = rest.find([',', ']', '}', ' ', '\t', '\r', '\n']).unwrap_or(rest.len());
        self.offset += end;
        serde_json::from_str(&rest[..end]).ok()
    }

    fn comma(&mut self) -> Option<()> {
        if self.peek()? == b',' {
            self.offset += 1;
            self.peek()?;
        }
        Some(())
    }

    /// Advances to the next byte that is not white space, and returns it.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.get(self.offset..)?;
        self.offset += rest.bytes().take_while(u8::is_ascii_whitespace).count();
        self.text.as_bytes().get(self.offset).copied()
    }

    fn origin(&mut self) -> Origin {
        self.peek();
        Origin::file(self.path, self.index.position(self.offset))
    }
}
