//! Maps the fields of a span to OpenTelemetry attributes.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};

use super::proto::{AnyValue, ArrayValue, KeyValue, Span, SpanKind, Status, StatusCode, Value};
use super::span_context::SpanContext;
use crate::telemetry::REQUEST_SPAN;

/// The fields of a span, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct SpanAttributes(Vec<(&'static str, Value)>);

/// Maximum bytes of a string attribute: callers and providers choose some of these texts.
const MAX_ATTRIBUTE_BYTES: usize = 256;
/// Fields that set the name, kind or context of the span; not exported as attributes.
const SKIPPED_FIELDS: [&str; 5] = ["otel.name", "otel.kind", "traceparent", "tracestate", "trace_id"];
/// A comma-separated list, exported as an array.
const LIST_FIELD: &str = "gen_ai.response.finish_reasons";

impl SpanAttributes {
    fn set(&mut self, field: &Field, value: Value) {
        let name = field.name();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, before)) => *before = value,
            None => self.0.push((name, value)),
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).and_then(|(_, value)| match value {
            Value::StringValue(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// The OTLP span. `name` is its name in the code.
    pub(super) fn into_span(
        self,
        name: &'static str,
        place: &SpanContext,
        began: SystemTime,
        ended: SystemTime,
    ) -> Span {
        let is_request = name == REQUEST_SPAN;
        let kind = match self.text("otel.kind") {
            _ if is_request => SpanKind::Server,
            Some("client") => SpanKind::Client,
            _ => SpanKind::Internal,
        };
        let shown = match (is_request, self.text("method"), self.text("tool")) {
            (true, Some(method), Some(tool)) => format!("{method} {tool}"),
            (true, Some(method), None) => method.to_owned(),
            _ => self.text("otel.name").unwrap_or(name).to_owned(),
        };
        let failed = self.text("error.type").is_some();
        Span {
            trace_id: place.trace_id.to_be_bytes().into(),
            span_id: place.span_id.to_be_bytes().into(),
            parent_span_id: place.parent_span_id.map(|parent| parent.to_be_bytes().into()).unwrap_or_default(),
            name: shown,
            kind: kind.into(),
            start_time_unix_nano: nanoseconds(began),
            // The clock may have been set back.
            end_time_unix_nano: nanoseconds(ended.max(began)),
            status: failed.then(|| Status { code: StatusCode::Error.into() }),
            flags: place.flags(),
            attributes: self.attributes(is_request),
        }
    }

    fn attributes(self, is_request: bool) -> Vec<KeyValue> {
        let said = self.0.into_iter().filter(|(name, _)| !SKIPPED_FIELDS.contains(name));
        let attribute = |(name, value): (&'static str, Value)| match (name, value) {
            // HTTP routes other than `/mcp` are requests too.
            ("method", Value::StringValue(path)) if is_request && path.starts_with('/') => {
                KeyValue::new("url.path", Value::StringValue(path))
            }
            ("method", method) if is_request => KeyValue::new("mcp.method.name", method),
            ("session_id", session) if is_request => KeyValue::new("mcp.session.id", session),
            ("tool", tool) if is_request => KeyValue::new("gen_ai.tool.name", tool),
            (LIST_FIELD, Value::StringValue(words)) => {
                let word = |word: &str| AnyValue { value: Some(Value::StringValue(word.to_owned())) };
                KeyValue::new(
                    LIST_FIELD,
                    Value::ArrayValue(ArrayValue { values: words.split(',').map(word).collect() }),
                )
            }
            // Names with a dot belong to a semantic convention; all other names get the prefix `corbie.`.
            (name, value) if name.contains('.') => KeyValue::new(name, value),
            (name, value) => KeyValue::new(format!("corbie.{name}"), value),
        };
        said.map(attribute).collect()
    }
}

impl Visit for SpanAttributes {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, Value::StringValue(truncate_text(format!("{value:?}"))));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, Value::StringValue(truncate_text(value.to_owned())));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, Value::IntValue(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, Value::IntValue(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, Value::DoubleValue(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, Value::BoolValue(value));
    }
}

fn truncate_text(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_ATTRIBUTE_BYTES));
    text
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
