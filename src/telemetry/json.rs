//! JSON log format: one object per line.

use serde_json::{Map, Value, json};

use super::log_event::LogEvent;
use crate::util::sanitize::sanitize_json;

/// `time`, `level` and `message` are always present, `fields` and `spans` only if not empty. Spans are keyed by name;
/// of two with the same name the inner one wins.
pub(super) fn line(entry: &LogEvent<'_>) -> String {
    let mut object = Map::new();
    object.insert("time".into(), json!(humantime::format_rfc3339_micros(entry.time).to_string()));
    object.insert("level".into(), json!(entry.level.as_str().to_ascii_lowercase()));
    object.insert("message".into(), json!(entry.fields.message));
    let fields = entry.fields.to_json();
    if !fields.is_empty() {
        object.insert("fields".into(), fields.into());
    }
    let spans: Map<String, Value> =
        entry.spans.iter().map(|(name, span)| ((*name).to_owned(), span.to_json().into())).collect();
    if !spans.is_empty() {
        object.insert("spans".into(), spans.into());
    }
    let line = Value::from(object).to_string();
    format!("{}\n", sanitize_json(&line))
}

#[cfg(test)]
mod tests {
    use super::super::layer::tests::logged;
    use super::*;
    use crate::util::sanitize::is_unsafe_char;

    #[test]
    fn a10_a_line_is_an_object_with_fields_and_the_spans_around_it() {
        let lines = logged(line, || {
            let _span = tracing::info_span!("request", request_id = "7", method = %"tools/call").entered();
            tracing::info!(url = %"http://localhost", count = 3, share = 0.5, ok = true, "listening");
        });
        let mut object: Value = serde_json::from_str(&lines[0]).unwrap();
        let time = object.as_object_mut().unwrap().remove("time").unwrap();
        assert!(humantime::parse_rfc3339(time.as_str().unwrap()).is_ok(), "{time}");
        let expected = json!({
            "level": "info",
            "message": "listening",
            "fields": { "url": "http://localhost", "count": 3, "share": 0.5, "ok": true },
            "spans": { "request": { "request_id": "7", "method": "tools/call" } },
        });
        assert_eq!(object, expected);
    }

    #[test]
    fn a10_a_line_stays_one_and_says_exactly_what_was_said() {
        let bad = "a\r\n{\"level\":\"error\"}\t\u{1b}[2J\u{9b}31m\u{202e}\u{2028}\u{7f}\"\\b";
        let lines = logged(line, || tracing::info!(shown = %bad, text = bad, "{bad}"));
        assert_eq!(lines.len(), 1);
        let written = lines[0].strip_suffix('\n').unwrap();
        assert!(!written.contains(is_unsafe_char), "{written}");
        let object: Value = serde_json::from_str(written).unwrap();
        assert_eq!(
            (&object["message"], &object["fields"]["shown"], &object["fields"]["text"]),
            (&json!(bad), &json!(bad), &json!(bad))
        );
    }
}
