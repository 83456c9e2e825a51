//! Log record of a tracing event: time, level, message, fields and enclosing spans.

use std::fmt;
use std::time::SystemTime;

use serde_json::{Map, Value};
use tracing::Level;
use tracing::field::{Field, Visit};

/// One log line.
pub(super) struct LogEvent<'a> {
    pub(super) time: SystemTime,
    pub(super) level: Level,
    pub(super) fields: Fields,
    /// The open spans, outermost first.
    pub(super) spans: Vec<(&'static str, &'a Fields)>,
}

/// Fields of an event or a span.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    /// The message of an event.
    pub(super) message: String,
    /// In order of recording. Strings recorded as strings are kept distinct from values formatted with `%` or `?`.
    pub(super) named: Vec<(&'static str, LogValue)>,
}

/// Value of a field.
#[derive(Debug, Clone)]
pub(super) enum LogValue {
    /// Numbers, booleans and strings; strings are printed in quotes.
    Value(Value),
    /// A value formatted with `%` or `?`.
    Formatted(String),
}

/// Carries the same information as `trace_id`, for collectors only; not logged.
const TRACEPARENT: &str = "traceparent";

impl Fields {
    /// A later value replaces an earlier one of the same field.
    fn set(&mut self, field: &Field, said: LogValue) {
        let name = field.name();
        if name == TRACEPARENT {
            return;
        }
        match self.named.iter_mut().find(|(known, _)| *known == name) {
            Some((_, before)) => *before = said,
            None => self.named.push((name, said)),
        }
    }

    /// The fields as a JSON object.
    pub(super) fn to_json(&self) -> Map<String, Value> {
        let value = |said: &LogValue| match said {
            LogValue::Value(value) => value.clone(),
            LogValue::Formatted(text) => Value::from(text.as_str()),
        };
        self.named.iter().map(|(name, said)| ((*name).to_owned(), value(said))).collect()
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            _ => self.set(field, LogValue::Formatted(format!("{value:?}"))),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message = value.to_owned(),
            _ => self.set(field, LogValue::Value(value.into())),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, LogValue::Value(value.into()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, LogValue::Value(value.into()));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, LogValue::Value(value.into()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, LogValue::Value(value.into()));
    }
}
