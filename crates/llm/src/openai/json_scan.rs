//! Lazy field scan of a JSON object: unchanged fields are copied byte for byte.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use serde::Deserializer;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// An object in its original form, and the changes made to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LazyObject {
    bytes: Bytes,
    /// In original order; new fields last.
    fields: Vec<LazyField>,
    /// From the start of the object to the end of its last field.
    inside: Range<usize>,
    changed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct LazyField {
    name: Box<str>,
    /// The bytes between the preceding field and this value; empty if the field is new.
    before: Range<usize>,
    value: FieldJson,
}

/// The JSON text of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FieldJson {
    Original(Range<usize>),
    New(String),
}

/// Why bytes could not be scanned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ScanError {
    /// The bytes are not a JSON object.
    NotAnObject,
    /// The object has too many fields.
    TooManyFields,
    /// A name occurs twice, and parsers may take either value.
    DuplicateField,
}

/// Maximum number of fields. Each takes a hundred bytes of memory, however short it is in the JSON.
const MAX_FIELDS: usize = 1000;

impl LazyObject {
    pub(super) fn read(bytes: Bytes) -> Result<LazyObject, ScanError> {
        let mut reader = serde_json::Deserializer::from_slice(&bytes);
        let found = reader.deserialize_map(FieldVisitor).and_then(|found| reader.end().map(|()| found));
        let found: Vec<(Cow<'_, str>, &RawValue)> = found.map_err(|_| ScanError::NotAnObject)?;
        if found.len() > MAX_FIELDS {
            return Err(ScanError::TooManyFields);
        }
        let begin = bytes.iter().position(|byte| *byte == b'{').ok_or(ScanError::NotAnObject)?;
        let mut end = begin + 1;
        let members = found.into_iter().map(|(name, value)| {
            let start = value.get().as_ptr().addr() - bytes.as_ptr().addr();
            let value = start..start + value.get().len();
            let before = std::mem::replace(&mut end, value.end)..value.start;
            LazyField { name: name.into(), before, value: FieldJson::Original(value) }
        });
        let members: Vec<LazyField> = members.collect();
        if has_duplicates(&members) {
            return Err(ScanError::DuplicateField);
        }
        Ok(LazyObject { inside: begin..end, fields: members, changed: false, bytes })
    }

    /// The fields of a parsed object.
    pub(super) fn of(tree: &Map<String, Value>) -> LazyObject {
        let mut members = LazyObject::default();
        tree.iter().for_each(|(name, value)| members.add(name, value.to_string()));
        members
    }

    /// The JSON text of a field, if present.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let member = self.fields.iter().find(|member| *member.name == *name)?;
        Some(match &member.value {
            FieldJson::New(text) => text,
            // The bytes were validated as UTF-8 during the scan.
            FieldJson::Original(range) => str::from_utf8(&self.bytes[range.clone()]).unwrap_or_default(),
        })
    }

    /// Sets or adds a field.
    pub(super) fn set(&mut self, name: &str, value: &Value) {
        self.set_text(name, value.to_string());
    }

    /// Sets a field to JSON text.
    pub(super) fn set_text(&mut self, name: &str, text: String) {
        if self.get(name) == Some(&text) {
            return;
        }
        match self.fields.iter_mut().find(|member| *member.name == *name) {
            Some(member) => {
                member.value = FieldJson::New(text);
                self.changed = true;
            }
            None => self.add(name, text),
        }
    }

    fn add(&mut self, name: &str, text: String) {
        self.changed = true;
        self.fields.push(LazyField { name: name.into(), before: 0..0, value: FieldJson::New(text) });
    }

    /// Removes a field and returns its JSON text.
    pub(super) fn remove(&mut self, name: &str) -> Option<String> {
        let text = self.get(name)?.to_owned();
        self.fields.retain(|member| *member.name != *name);
        self.changed = true;
        Some(text)
    }

    /// Serializes the object.
    pub(super) fn into_bytes(self) -> Bytes {
        if !self.changed {
            return self.bytes;
        }
        let bytes = &self.bytes;
        let mut out = Vec::with_capacity(bytes.len() + 64);
        out.extend_from_slice(&bytes[..=self.inside.start]);
        for (place, member) in self.fields.iter().enumerate() {
            let before = &bytes[member.before.clone()];
            let name = before.iter().position(|byte| *byte == b'"');
            match name {
                // The separator belonged to a removed field.
                Some(name) if place == 0 && member.before.start > self.inside.start + 1 => {
                    out.extend_from_slice(&before[name..])
                }
                Some(_) => out.extend_from_slice(before),
                None => {
                    let comma = if place == 0 { "" } else { "," };
                    let name = Value::from(&*member.name);
                    out.extend_from_slice(format!("{comma}{name}:").as_bytes());
                }
            }
            out.extend_from_slice(match &member.value {
                FieldJson::Original(range) => &bytes[range.clone()],
                FieldJson::New(text) => text.as_bytes(),
            });
        }
        out.extend_from_slice(&bytes[self.inside.end..]);
        out.into()
    }
}

impl Default for LazyObject {
    /// An empty object.
    fn default() -> LazyObject {
        LazyObject { bytes: Bytes::from_static(b"{}"), fields: Vec::new(), inside: 0..1, changed: false }
    }
}

fn has_duplicates(members: &[LazyField]) -> bool {
    let mut names: Vec<&str> = members.iter().map(|member| &*member.name).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

/// Collects names and values.
struct FieldVisitor;

/// A name. Most have no escapes and are borrowed.
#[derive(serde::Deserialize)]
struct FieldName<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Visitor<'de> for FieldVisitor {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::with_capacity(16);
        while let Some((FieldName(name), value)) = map.next_entry::<FieldName<'de>, &'de RawValue>()? {
            if found.len() <= MAX_FIELDS {
                found.push((name, value));
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read(text: &str) -> LazyObject {
        LazyObject::read(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    fn written(members: LazyObject) -> String {
        String::from_utf8(members.into_bytes().to_vec()).unwrap()
    }

    #[test]
    fn what_is_not_changed_keeps_every_byte() {
        let came = " { \"a\" : 1.50 ,\n\t\"mod\\u0065l\": \"x\", \"c\":[1 , {\"d\":1e2}] } \n";
        assert_eq!(written(read(came)), came);
        let mut members = read(came);
        assert_eq!((members.get("model"), members.get("c")), (Some("\"x\""), Some("[1 , {\"d\":1e2}]")));
        members.set("model", &json!("y"));
        members.set("e", &json!(null));
        assert_eq!(
            written(members),
            " { \"a\" : 1.50 ,\n\t\"mod\\u0065l\": \"y\", \"c\":[1 , {\"d\":1e2}],\"e\":null } \n"
        );
    }

    #[test]
    fn members_go_from_every_place() {
        for (gone, expected) in [
            ("a", "{\"b\":2, \"c\":3}"),
            ("b", "{\"a\":1, \"c\":3}"),
            ("c", "{\"a\":1, \"b\":2}"),
            ("ab", "{\"c\":3}"),
            ("abc", "{}"),
        ] {
            let mut members = read("{\"a\":1, \"b\":2, \"c\":3}");
            gone.chars().for_each(|name| drop(members.remove(&name.to_string())));
            assert_eq!(written(members), expected, "{gone}");
        }
        let mut none = LazyObject::default();
        none.set("a", &json!(1));
        assert_eq!(written(none), "{\"a\":1}");
    }

    #[test]
    fn no_object_and_two_of_a_name_are_refused() {
        for text in ["", "[]", "{", "{\"a\":1}}", "{\"a\":}", "1", "{\"a\":\"\u{1}\"}"] {
            assert_eq!(LazyObject::read(text.to_owned().into()), Err(ScanError::NotAnObject), "{text}");
        }
        let many: Map<String, Value> = (0..=MAX_FIELDS).map(|number| (number.to_string(), Value::Null)).collect();
        assert_eq!(LazyObject::read(Value::Object(many).to_string().into()), Err(ScanError::TooManyFields));
        let twice = "{\"model\":\"a\",\"x\":1,\"mod\\u0065l\":\"b\"}";
        assert_eq!(LazyObject::read(twice.into()), Err(ScanError::DuplicateField));
    }

    proptest! {
        /// The parsed tree is the oracle.
        #[test]
        fn changes_are_those_of_a_tree(
            names in prop::collection::btree_set("[a-e]", 0..5),
            changes in prop::collection::vec(("[a-g]", prop::option::of(0..9)), 0..8),
        ) {
            let mut tree: Map<String, Value> = names.iter().map(|name| (name.clone(), json!({ name: [1, 2] }))).collect();
            let mut members = read(&Value::Object(tree.clone()).to_string());
            for (name, change) in &changes {
                match change {
                    Some(number) => {
                        tree.insert(name.clone(), json!(number));
                        members.set(name, &json!(number));
                    }
                    None => prop_assert_eq!(
                        members.remove(name), tree.shift_remove(name).map(|value| value.to_string())
                    ),
                }
            }
            prop_assert_eq!(written(members), Value::Object(tree).to_string());
        }
    }
}
