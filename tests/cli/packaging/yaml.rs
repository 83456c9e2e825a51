//! Minimal YAML reader with every scalar as a string, for lookups in manifests.

use saphyr_parser::{Event, Parser};
use serde_json::{Map, Value};

/// Every document of a file. Panics on a syntax error.
pub(super) fn documents(text: &str) -> Vec<Value> {
    let mut events = Parser::new_from_str(text).map(|event| event.unwrap_or_else(|error| panic!("{error}")).0);
    let mut documents = Vec::new();
    while let Some(event) = events.next() {
        if let Event::DocumentStart(_) = event {
            let first = events.next().expect("a document has a value");
            documents.push(value(first, &mut events));
        }
    }
    documents
}

fn value<'a>(event: Event<'a>, events: &mut impl Iterator<Item = Event<'a>>) -> Value {
    match event {
        Event::Scalar(text, ..) => Value::String(text.into_owned()),
        Event::SequenceStart(..) => {
            let mut items = Vec::new();
            while let Some(event) = events.next().filter(|event| *event != Event::SequenceEnd) {
                items.push(value(event, events));
            }
            Value::Array(items)
        }
        Event::MappingStart(..) => {
            let mut members = Map::new();
            while let Some(Event::Scalar(name, ..)) = events.next() {
                let first = events.next().expect("a member has a value");
                let former = members.insert(name.to_string(), value(first, events));
                assert!(former.is_none(), "`{name}` is there twice");
            }
            Value::Object(members)
        }
        other => panic!("{other:?} is not expected here"),
    }
}
