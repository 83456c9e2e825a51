//! Text log format: `2026-01-02T03:04:05.678901Z  INFO request{method=tools/call}: routed model=small`.

use tracing::Level;

use super::log_event::{Fields, LogEvent, LogValue};
use crate::util::sanitize::escape_unsafe;

const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

pub(super) fn plain(entry: &LogEvent<'_>) -> String {
    format!("{} {:>5} {}\n", time(entry), entry.level, format_event(entry))
}

/// The same with ANSI colours, for a terminal.
pub(super) fn with_colours(entry: &LogEvent<'_>) -> String {
    let colour = match entry.level {
        Level::ERROR => "\u{1b}[31m",
        Level::WARN => "\u{1b}[33m",
        Level::INFO => "\u{1b}[32m",
        _ => "\u{1b}[34m",
    };
    format!("{DIM}{}{PLAIN} {colour}{:>5}{PLAIN} {}\n", time(entry), entry.level, format_event(entry))
}

fn time(entry: &LogEvent<'_>) -> humantime::Rfc3339Timestamp {
    humantime::format_rfc3339_micros(entry.time)
}

/// Spans, message and fields, sanitized to a single line without control characters.
fn format_event(entry: &LogEvent<'_>) -> String {
    let spans = entry.spans.iter().map(|(name, span)| format!("{name}{{{}}}:", format_fields(span)));
    let message = Some(entry.fields.message.clone()).filter(|message| !message.is_empty());
    let fields = Some(format_fields(&entry.fields)).filter(|fields| !fields.is_empty());
    let parts: Vec<String> = spans.chain(message).chain(fields).collect();
    escape_unsafe(&parts.join(" ")).into_owned()
}

fn format_fields(fields: &Fields) -> String {
    let shown = fields.named.iter().map(|(name, said)| match said {
        // Quoted, so that its end is visible.
        LogValue::Value(value) => match value.as_str() {
            Some(text) => format!("{name}={text:?}"),
            None => format!("{name}={value}"),
        },
        LogValue::Formatted(text) => format!("{name}={text}"),
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::layer::tests::logged;
    use super::*;
    use crate::util::sanitize::is_unsafe_char;

    /// The line without the timestamp.
    fn after_time(line: &str) -> &str {
        line.split_once("Z ").map_or(line, |(_, rest)| rest)
    }

    #[test]
    fn a10_a_line_has_its_level_its_message_and_its_fields() {
        let lines = logged(plain, || {
            tracing::info!(url = %"http://localhost", name = "a b", count = 3, ok = true, "listening");
            tracing::warn!("careful");
        });
        let lines: Vec<&str> = lines.iter().map(|line| after_time(line)).collect();
        assert_eq!(lines, [" INFO listening url=http://localhost name=\"a b\" count=3 ok=true\n", " WARN careful\n"]);
    }

    #[test]
    fn a10_open_spans_are_told_with_their_fields_also_those_that_come_late() {
        let lines = logged(plain, || {
            let fields = tracing::field::Empty;
            let outer = tracing::info_span!("request", request_id = 7, method = %"tools/call", caller = fields);
            outer.record("caller", "operator");
            let _outer = outer.entered();
            let _inner = tracing::info_span!("tool", name = "echo").entered();
            tracing::info!(model = %"small", "routed");
        });
        let expected =
            "request{request_id=7 method=tools/call caller=\"operator\"}: tool{name=\"echo\"}: routed model=small\n";
        assert_eq!(after_time(&lines[0]), format!(" INFO {expected}"));
    }

    #[test]
    fn a10_nothing_that_is_said_ends_a_line_or_controls_a_terminal() {
        let bad = "a\r\n2026 ERROR forged\t\u{1b}[2J\u{9b}31m\u{202e}\u{2028}\u{7f}b";
        let lines = logged(plain, || {
            let _span = tracing::info_span!("request", method = %bad, caller = bad).entered();
            tracing::info!(shown = %bad, debugged = ?bad, text = bad, "{bad}");
        });
        assert_eq!(lines.len(), 1);
        let line = lines[0].strip_suffix('\n').unwrap();
        assert!(!line.contains(is_unsafe_char), "{line}");
        assert!(line.contains("shown=a\\r\\n2026 ERROR forged\\t\\u{1b}[2J"), "{line}");
    }

    #[test]
    fn a10_colours_are_the_only_escapes_on_a_terminal() {
        let lines = logged(with_colours, || tracing::error!("\u{1b}[2J"));
        assert_eq!(lines[0].matches('\u{1b}').count(), 4, "{:?}", lines[0]);
        assert!(lines[0].ends_with("\u{1b}[0m \\u{1b}[2J\n"), "{:?}", lines[0]);
    }
}
