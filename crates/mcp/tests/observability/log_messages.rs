//! Log output of the program.

use std::fmt::Write;
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::fixture;
use crate::fixture::peer::{call, request_over_stdio, text_of};

/// A subscriber that records every log line as text.
#[derive(Clone, Default)]
struct LogCapture(Arc<Mutex<Vec<String>>>);

struct FieldText(String);

impl tracing::field::Visit for FieldText {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl tracing::Subscriber for LogCapture {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut words = FieldText(event.metadata().level().to_string());
        event.record(&mut words);
        self.0.lock().expect("unpoisoned").push(words.0);
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn m71_a_deprecated_tool_works_warns_and_says_so() {
    let lines = LogCapture::default();
    let _listening = tracing::subscriber::set_default(lines.clone());
    let server = fixture::server();
    let answer = request_over_stdio(&server, &call(1, "old", json!({}))).await;
    assert_eq!((text_of(&answer), &answer["result"]["isError"]), ("still here", &json!(false)));
    let note = &answer["result"]["_meta"]["deprecated"];
    assert_eq!(note["since"], "1.1.0");
    assert!(note["message"].as_str().is_some_and(|text| text.contains("`old`")), "{note}");
    let warned = |lines: &LogCapture| {
        let lines = lines.0.lock().expect("unpoisoned");
        lines.iter().filter(|line| line.starts_with("WARN") && line.contains("old")).count()
    };
    assert_eq!(warned(&lines), 1);
    request_over_stdio(&server, &call(1, "picture", json!({}))).await;
    assert_eq!(warned(&lines), 1, "a tool that is not deprecated does not warn");
}

#[tokio::test]
async fn m86_what_a_panic_was_is_for_the_operator_and_what_was_said_is_for_nobody() {
    let lines = LogCapture::default();
    let _listening = tracing::subscriber::set_default(lines.clone());
    request_over_stdio(&fixture::server(), &call(1, "panic", json!({ "text": "my secret" }))).await;
    let lines = lines.0.lock().expect("unpoisoned");
    assert!(lines.iter().any(|line| line.starts_with("ERROR") && line.contains("panic")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("my secret")), "{lines:?}");
}
