//! An event as it is written down: when, how important, what, and within which spans.

use std::fmt;
use std::time::SystemTime;

use serde_json::{Map, Value};
use tracing::Level;
use tracing::field::{Field, Visit};

/// One line of the log.
pub(super) struct Entry<'a> {
    pub(super) time: SystemTime,
    pub(super) level: Level,
    pub(super) fields: Fields,
    /// Those that are open, the outermost first.
    pub(super) spans: Vec<(&'static str, &'a Fields)>,
}

/// What an event or a span says.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    /// The sentence of an event.
    pub(super) message: String,
    /// In their order. Texts that were given as such are told apart from what was only shown.
    pub(super) named: Vec<(&'static str, Said)>,
}

/// The value of a field.
#[derive(Debug, Clone)]
pub(super) enum Said {
    /// Numbers and truth values, and texts, which stand in quotes.
    Value(Value),
    /// What was shown with `%` or `?`.
    Shown(String),
}

/// Says to collectors what `trace_id` says to people.
const TRACEPARENT: &str = "traceparent";

impl Fields {
    /// A later value of the same field takes the place of the first.
    fn set(&mut self, field: &Field, said: Said) {
        let name = field.name();
        if name == TRACEPARENT {
            return;
        }
        match self.named.iter_mut().find(|(known, _)| *known == name) {
            Some((_, before)) => *before = said,
            None => self.named.push((name, said)),
        }
    }

    /// As an object.
    pub(super) fn to_json(&self) -> Map<String, Value> {
        let value = |said: &Said| match said {
            Said::Value(value) => value.clone(),
            Said::Shown(text) => Value::from(text.as_str()),
        };
        self.named.iter().map(|(name, said)| ((*name).to_owned(), value(said))).collect()
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            _ => self.set(field, Said::Shown(format!("{value:?}"))),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message = value.to_owned(),
            _ => self.set(field, Said::Value(value.into())),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, Said::Value(value.into()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, Said::Value(value.into()));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, Said::Value(value.into()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, Said::Value(value.into()));
    }
}
