//! Value with source spans.
//!
//! Every source (file, variables, flags) becomes a tree. The trees are merged and validated as plain JSON. The tree
//! then maps the path of a validation error to its line.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Number, Value};
use zeroize::{Zeroize, Zeroizing};

use super::problem::{KeyPath, Origin, Segment};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) data: Data,
    pub(super) origin: Origin,
}

#[derive(Clone, PartialEq)]
pub(super) enum Data {
    Null,
    Bool(bool),
    Number(Number),
    /// Zeroed on drop, because it may be a key.
    String(Zeroizing<String>),
    List(Vec<Node>),
    Map(Map),
}

pub(super) type Map = BTreeMap<String, Entry>;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// Origin of the key; `node.origin` is that of the value.
    pub(super) key: Origin,
    pub(super) node: Node,
}

/// Shows only the types of values, because a tree contains secrets in plain text.
impl fmt::Debug for Data {
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

impl Data {
    pub(super) fn text(text: &str) -> Self {
        Self::String(text.to_owned().into())
    }
}

// === impl Node ===

impl Node {
    pub(super) fn empty(origin: Origin) -> Self {
        Self { data: Data::Map(Map::new()), origin }
    }

    pub(super) fn string(text: &str, origin: Origin) -> Self {
        Self { data: Data::text(text), origin }
    }

    /// Converts `value`, with the same origin for all parts.
    pub(super) fn from_json(value: Value, origin: Origin) -> Self {
        let data = match value {
            Value::Null => Data::Null,
            Value::Bool(truth) => Data::Bool(truth),
            Value::Number(number) => Data::Number(whole(number)),
            Value::String(text) => Data::String(text.into()),
            Value::Array(items) => {
                Data::List(items.into_iter().map(|item| Self::from_json(item, origin.clone())).collect())
            }
            Value::Object(members) => {
                let entry = |value| Entry { key: origin.clone(), node: Self::from_json(value, origin.clone()) };
                Data::Map(members.into_iter().map(|(key, value)| (key, entry(value))).collect())
            }
        };
        Self { data, origin }
    }

    /// A tree that contains only `leaf` at `path`.
    pub(super) fn nested(path: &KeyPath, leaf: Self) -> Self {
        path.0.iter().rev().fold(leaf, |node, segment| {
            let origin = node.origin.clone();
            let data = match segment {
                Segment::Key(key) => Data::Map(Map::from([(key.clone(), Entry { key: origin.clone(), node })])),
                Segment::Index(_) => Data::List(vec![node]),
            };
            Self { data, origin }
        })
    }

    pub(super) fn to_json(&self) -> Value {
        match &self.data {
            Data::Null => Value::Null,
            Data::Bool(truth) => Value::Bool(*truth),
            Data::Number(number) => Value::Number(number.clone()),
            Data::String(text) => Value::String(text.to_string()),
            Data::List(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            Data::Map(entries) => {
                Value::Object(entries.iter().map(|(key, entry)| (key.clone(), entry.node.to_json())).collect())
            }
        }
    }

    /// Merges `over` into this tree: maps key by key, all other values are replaced.
    pub(super) fn merge(&mut self, over: Self) {
        match (&mut self.data, over) {
            (Data::Map(below), Self { data: Data::Map(above), .. }) => {
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
            Data::Map(entries) => {
                entries.retain(|_, entry| entry.node.data != Data::Null);
                entries.values_mut().for_each(|entry| entry.node.drop_nulls());
            }
            Data::List(items) => items.iter_mut().for_each(Self::drop_nulls),
            _ => {}
        }
    }

    pub(super) fn get(&self, path: &[Segment]) -> Option<&Self> {
        path.iter().try_fold(self, |node, segment| match (&node.data, segment) {
            (Data::Map(entries), Segment::Key(key)) => entries.get(key).map(|entry| &entry.node),
            (Data::List(items), Segment::Index(index)) => items.get(*index),
            _ => None,
        })
    }

    /// Removes a key. Returns whether it existed.
    pub(super) fn remove(&mut self, path: &[Segment]) -> bool {
        match (&mut self.data, path) {
            (Data::Map(entries), [Segment::Key(key)]) => entries.remove(key).is_some(),
            (Data::Map(entries), [Segment::Key(key), rest @ ..]) => {
                entries.get_mut(key).is_some_and(|entry| entry.node.remove(rest))
            }
            (Data::List(items), [Segment::Index(index), rest @ ..]) => {
                items.get_mut(*index).is_some_and(|item| item.remove(rest))
            }
            _ => false,
        }
    }

    /// Zeroes all values and keeps their origins.
    pub(super) fn forget_values(&mut self) {
        match &mut self.data {
            Data::String(text) => text.zeroize(),
            Data::List(items) => items.iter_mut().for_each(Self::forget_values),
            Data::Map(entries) => entries.values_mut().for_each(|entry| entry.node.forget_values()),
            Data::Null | Data::Bool(_) | Data::Number(_) => {}
        }
    }

    /// Origin of the key at the end of `path`, or of its nearest existing ancestor.
    pub(super) fn key_origin(&self, path: &KeyPath) -> Origin {
        let mut node = self;
        let mut origin = &self.origin;
        for segment in &path.0 {
            match (&node.data, segment) {
                (Data::Map(entries), Segment::Key(key)) if entries.contains_key(key) => {
                    origin = &entries[key].key;
                    node = &entries[key].node;
                }
                (Data::List(items), Segment::Index(index)) if *index < items.len() => {
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
pub(super) fn wipe(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(items) => items.iter_mut().for_each(wipe),
        Value::Object(members) => members.values_mut().for_each(wipe),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Converts whole floats to integers, so that the schema and serde agree: `5.0` is an integer for the schema and a
/// float for serde.
pub(super) fn whole(number: Number) -> Number {
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
        let mut tree = Node::from_json(written, Origin::command_line());
        tree.forget_values();
        let left = tree.to_json();
        assert_eq!(left, serde_json::json!({ "token": "", "keys": ["", { "more": "" }], "port": 80 }));
        assert!(tree.get(&KeyPath::dotted("token").0).is_some());
    }

    #[test]
    fn s01_a_copy_that_was_looked_at_is_wiped() {
        let mut copy = serde_json::json!({ "keys": ["sk-2", { "more": "sk-3" }], "port": 80 });
        wipe(&mut copy);
        assert_eq!(copy, serde_json::json!({ "keys": ["", { "more": "" }], "port": 80 }));
    }
}
