//! Value with source spans.
//!
//! Every source (file, variables, flags) becomes a tree. The trees are merged and validated as plain JSON. The tree
//! then maps the path of a validation error to its line.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Number, Value};
use zeroize::{Zeroize, Zeroizing};

use super::diagnostic::{KeyPath, Origin, Segment};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct SpannedValue {
    pub(super) data: ValueData,
    pub(super) origin: Origin,
}

#[derive(Clone, PartialEq)]
pub(super) enum ValueData {
    Null,
    Bool(bool),
    Number(Number),
    /// Zeroed on drop, because it may be a key.
    String(Zeroizing<String>),
    List(Vec<SpannedValue>),
    Map(SpannedMap),
}

pub(super) type SpannedMap = BTreeMap<String, SpannedEntry>;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct SpannedEntry {
    /// Origin of the key; `node.origin` is that of the value.
    pub(super) key: Origin,
    pub(super) node: SpannedValue,
}

/// Shows only the types of values, because a tree contains secrets in plain text.
impl fmt::Debug for ValueData {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("Null"),
            Self::Bool(_) => out.write_str("Bool"),
            Self::Number(_) => out.write_str("Number"),
            Self::String(_) => out.write_str("String"),
            Self::List(items) => items.fmt(out),
            Self::Map(entries) => entries.fmt(out),
        }
    }
}

impl ValueData {
    pub(super) fn text(text: &str) -> Self {
        Self::String(text.to_owned().into())
    }
}

// === impl Node ===

impl SpannedValue {
    pub(super) fn empty(origin: Origin) -> Self {
        Self { data: ValueData::Map(SpannedMap::new()), origin }
    }

    pub(super) fn string(text: &str, origin: Origin) -> Self {
        Self { data: ValueData::text(text), origin }
    }

    /// Converts `value`, with the same origin for all parts.
    pub(super) fn from_json(value: Value, origin: Origin) -> Self {
        let data = match value {
            Value::Null => ValueData::Null,
            Value::Bool(truth) => ValueData::Bool(truth),
            Value::Number(number) => ValueData::Number(to_integer_if_exact(number)),
            Value::String(text) => ValueData::String(text.into()),
            Value::Array(items) => {
                ValueData::List(items.into_iter().map(|item| Self::from_json(item, origin.clone())).collect())
            }
            Value::Object(members) => {
                let entry = |value| SpannedEntry { key: origin.clone(), node: Self::from_json(value, origin.clone()) };
                ValueData::Map(members.into_iter().map(|(key, value)| (key, entry(value))).collect())
            }
        };
        Self { data, origin }
    }

    /// A tree that contains only `leaf` at `path`.
    pub(super) fn nested(path: &KeyPath, leaf: Self) -> Self {
        path.0.iter().rev().fold(leaf, |node, segment| {
            let origin = node.origin.clone();
            let data = match segment {
                Segment::Key(key) => {
                    ValueData::Map(SpannedMap::from([(key.clone(), SpannedEntry { key: origin.clone(), node })]))
                }
                Segment::Index(_) => ValueData::List(vec![node]),
            };
            Self { data, origin }
        })
    }

    pub(super) fn to_json(&self) -> Value {
        match &self.data {
            ValueData::Null => Value::Null,
            ValueData::Bool(truth) => Value::Bool(*truth),
            ValueData::Number(number) => Value::Number(number.clone()),
            ValueData::String(text) => Value::String(text.to_string()),
            ValueData::List(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            ValueData::Map(entries) => {
                Value::Object(entries.iter().map(|(key, entry)| (key.clone(), entry.node.to_json())).collect())
            }
        }
    }

    /// Merges `over` into this tree: maps key by key, all other values are replaced.
    pub(super) fn merge(&mut self, over: Self) {
        match (&mut self.data, over) {
            (ValueData::Map(below), Self { data: ValueData::Map(above), .. }) => {
                for (key, entry) in above {
                    match below.get_mut(&key) {
                        Some(old) => {
                            old.key = entry.key;
                            old.node.merge(entry.node);
                        }
                        None => {
                            below.insert(key, entry);
                        }
                    }
                }
            }
            (_, over) => *self = over,
        }
    }

    /// Removes keys without a value, such as `server:` with every line below it commented out.
    pub(super) fn drop_nulls(&mut self) {
        match &mut self.data {
            ValueData::Map(entries) => {
                entries.retain(|_, entry| entry.node.data != ValueData::Null);
                entries.values_mut().for_each(|entry| entry.node.drop_nulls());
            }
            ValueData::List(items) => items.iter_mut().for_each(Self::drop_nulls),
            _ => {}
        }
    }

    pub(super) fn get(&self, path: &[Segment]) -> Option<&Self> {
        path.iter().try_fold(self, |node, segment| match (&node.data, segment) {
            (ValueData::Map(entries), Segment::Key(key)) => entries.get(key).map(|entry| &entry.node),
            (ValueData::List(items), Segment::Index(index)) => items.get(*index),
            _ => None,
        })
    }

    /// Removes a key. Returns whether it existed.
    pub(super) fn remove(&mut self, path: &[Segment]) -> bool {
        match (&mut self.data, path) {
            (ValueData::Map(entries), [Segment::Key(key)]) => entries.remove(key).is_some(),
            (ValueData::Map(entries), [Segment::Key(key), rest @ ..]) => {
                entries.get_mut(key).is_some_and(|entry| entry.node.remove(rest))
            }
            (ValueData::List(items), [Segment::Index(index), rest @ ..]) => {
                items.get_mut(*index).is_some_and(|item| item.remove(rest))
            }
            _ => false,
        }
    }

    /// Zeroes all values and keeps their origins.
    pub(super) fn wipe_values(&mut self) {
        match &mut self.data {
            ValueData::String(text) => text.zeroize(),
            ValueData::List(items) => items.iter_mut().for_each(Self::wipe_values),
            ValueData::Map(entries) => entries.values_mut().for_each(|entry| entry.node.wipe_values()),
            ValueData::Null | ValueData::Bool(_) | ValueData::Number(_) => {}
        }
    }

    /// Origin of the key at the end of `path`, or of its nearest existing ancestor.
    pub(super) fn key_origin(&self, path: &KeyPath) -> Origin {
        let mut node = self;
        let mut origin = &self.origin;
        for segment in &path.0 {
            match (&node.data, segment) {
                (ValueData::Map(entries), Segment::Key(key)) if entries.contains_key(key) => {
                    origin = &entries[key].key;
                    node = &entries[key].node;
                }
                (ValueData::List(items), Segment::Index(index)) if *index < items.len() => {
                    origin = &items[*index].origin;
                    node = &items[*index];
                }
                _ => break,
            }
        }
        origin.clone()
    }
}

/// Zeroes the strings of a temporary JSON value.
pub(super) fn wipe_strings(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(items) => items.iter_mut().for_each(wipe_strings),
        Value::Object(members) => members.values_mut().for_each(wipe_strings),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Converts whole floats to integers, so that the schema and serde agree: `5.0` is an integer for the schema and a
/// float for serde.
pub(super) fn to_integer_if_exact(number: Number) -> Number {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < EXACT => Number::from(float as i64),
        _ => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree lives as long as the process, to report the origins of settings.
    #[test]
    fn s01_a_tree_forgets_its_values_and_not_where_they_were() {
        let written = serde_json::json!({ "token": "sk-1", "keys": ["sk-2", { "more": "sk-3" }], "port": 80 });
        let mut tree = SpannedValue::from_json(written, Origin::command_line());
        tree.wipe_values();
        let left = tree.to_json();
        assert_eq!(left, serde_json::json!({ "token": "", "keys": ["", { "more": "" }], "port": 80 }));
        assert!(tree.get(&KeyPath::dotted("token").0).is_some());
    }

    #[test]
    fn s01_a_copy_that_was_looked_at_is_wiped() {
        let mut copy = serde_json::json!({ "keys": ["sk-2", { "more": "sk-3" }], "port": 80 });
        wipe_strings(&mut copy);
        assert_eq!(copy, serde_json::json!({ "keys": ["", { "more": "" }], "port": 80 }));
    }
}
