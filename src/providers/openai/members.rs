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
pub(super) struct Members {
    bytes: Bytes,
    /// In original order; new fields last.
    members: Vec<Member>,
    /// From the start of the object to the end of its last field.
    inside: Range<usize>,
    changed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    name: Box<str>,
    /// The bytes between the preceding field and this value; empty if the field is new.
    before: Range<usize>,
    value: Text,
}

/// The JSON text of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Text {
    Came(Range<usize>),
    New(String),
}

/// Why bytes could not be scanned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoMembers {
    /// The bytes are not a JSON object.
    NoObject,
    /// The object has too many fields.
    TooMany,
    /// A name occurs twice, and parsers may take either value.
    Twice,
}

/// Maximum number of fields. Each takes a hundred bytes of memory, however short it is in the JSON.
const MOST: usize = 1000;

impl Members {
    pub(super) fn read(bytes: Bytes) -> Result<Members, NoMembers> {
        let mut reader = serde_json::Deserializer::from_slice(&bytes);
        let found = reader.deserialize_map(Finder).and_then(|found| reader.end().map(|()| found));
        let found: Vec<(Cow<'_, str>, &RawValue)> = found.map_err(|_| NoMembers::NoObject)?;
        if found.len() > MOST {
            return Err(NoMembers::TooMany);
        }
        let begin = bytes.iter().position(|byte| *byte == b'{').ok_or(NoMembers::NoObject)?;
        let mut end = begin + 1;
        let members = found.into_iter().map(|(name, value)| {
            let start = value.get().as_ptr().addr() - bytes.as_ptr().addr();
            let value = start..start + value.get().len();
            let before = std::mem::replace(&mut end, value.end)..value.start;
            Member { name: name.into(), before, value: Text::Came(value) }
        });
        let members: Vec<Member> = members.collect();
        if has_twins(&members) {
            return Err(NoMembers::Twice);
        }
        Ok(Members { inside: begin..end, members, changed: false, bytes })
    }

    /// The fields of a parsed object.
    pub(super) fn of(tree: &Map<String, Value>) -> Members {
        let mut members = Members::default();
        tree.iter().for_each(|(name, value)| members.add(name, value.to_string()));
        members
    }

    /// The JSON text of a field, if present.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let member = self.members.iter().find(|member| *member.name == *name)?;
        Some(match &member.value {
            Text::New(text) => text,
            // The bytes were validated as UTF-8 during the scan.
            Text::Came(range) => str::from_utf8(&self.bytes[range.clone()]).unwrap_or_default(),
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
        match self.members.iter_mut().find(|member| *member.name == *name) {
            Some(member) => {
                member.value = Text::New(text);
                self.changed = true;
            }
            None => self.add(name, text),
        }
    }

    fn add(&mut self, name: &str, text: String) {
        self.changed = true;
        self.members.push(Member { name: name.into(), before: 0..0, value: Text::New(text) });
    }

    /// Removes a field and returns its JSON text.
    pub(super) fn remove(&mut self, name: &str) -> Option<String> {
        let text = self.get(name)?.to_owned();
        self.members.retain(|member| *member.name != *name);
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
        for (place, member) in self.members.iter().enumerate() {
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
                Text::Came(range) => &bytes[range.clone()],
                Text::New(text) => text.as_bytes(),
            });
        }
        out.extend_from_slice(&bytes[self.inside.end..]);
        out.into()
    }
}

impl Default for Members {
    /// An empty object.
    fn default() -> Members {
        Members { bytes: Bytes::from_static(b"{}"), members: Vec::new(), inside: 0..1, changed: false }
    }
}

fn has_twins(members: &[Member]) -> bool {
    let mut names: Vec<&str> = members.iter().map(|member| &*member.name).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

/// Collects names and values.
struct Finder;

/// A name. Most have no escapes and are borrowed.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Visitor<'de> for Finder {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::with_capacity(16);
        while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
            if found.len() <= MOST {
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

    fn read(text: &str) -> Members {
        Members::read(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    fn written(members: Members) -> String {
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
        let mut none = Members::default();
        none.set("a", &json!(1));
        assert_eq!(written(none), "{\"a\":1}");
    }

    #[test]
    fn no_object_and_two_of_a_name_are_refused() {
        for text in ["", "[]", "{", "{\"a\":1}}", "{\"a\":}", "1", "{\"a\":\"\u{1}\"}"] {
            assert_eq!(Members::read(text.to_owned().into()), Err(NoMembers::NoObject), "{text}");
        }
        let many: Map<String, Value> = (0..=MOST).map(|number| (number.to_string(), Value::Null)).collect();
        assert_eq!(Members::read(Value::Object(many).to_string().into()), Err(NoMembers::TooMany));
        let twice = "{\"model\":\"a\",\"x\":1,\"mod\\u0065l\":\"b\"}";
        assert_eq!(Members::read(twice.into()), Err(NoMembers::Twice));
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
