//! Detects passthrough events by a byte scan: content only, without usage, finish reason, error or signature.
//!
//! Quotes inside a JSON string are escaped, so a quoted name is either a field name or a complete string. A false match
//! only causes an unnecessary parse.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::signed_fields;

static EVENT_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\n\n"));
static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"error\""));
static USAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"usage\""));
static FINISH_REASON: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"finish_reason\""));

/// The end of the first event, if it is complete.
pub fn first_event_end(bytes: &[u8]) -> Option<usize> {
    EVENT_END.find(bytes).map(|end| end + EVENT_END.needle().len())
}

/// Number of events.
pub fn count_events(bytes: &[u8]) -> u64 {
    EVENT_END.find_iter(bytes).count() as u64
}

/// Length of the leading run of complete passthrough events.
pub fn passthrough_len(bytes: &[u8]) -> usize {
    let mut end = 0;
    while let Some(length) = EVENT_END.find(&bytes[end..])
        && is_passthrough(&bytes[end..end + length])
    {
        end += length + 2;
    }
    end
}

fn is_passthrough(event: &[u8]) -> bool {
    event.starts_with(b"data: {")
        && event.ends_with(b"}")
        && memchr::memchr2(b'\n', b'\r', event).is_none()
        && ERROR.find(event).is_none()
        && is_null(event, &USAGE)
        && is_null(event, &FINISH_REASON)
        && !signed_fields::may_be_signed(event)
}

/// Whether every occurrence of a field is null.
fn is_null(event: &[u8], name: &Finder<'_>) -> bool {
    name.find_iter(event).all(|at| {
        let rest = event[at + name.needle().len()..].trim_ascii_start();
        rest.strip_prefix(b":").is_some_and(|value| value.trim_ascii_start().starts_with(b"null"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str =
        r#"data: {"id":"1","choices":[{"index":0,"delta":{"content":"h"},"finish_reason":null}],"usage":null}"#;

    #[test]
    fn words_go_on_as_they_came_and_everything_else_is_read() {
        let two = format!("{WORDS}\n\n{WORDS}\n\n");
        assert_eq!(passthrough_len(two.as_bytes()), two.len());
        assert_eq!(passthrough_len(format!("{two}{WORDS}\n").as_bytes()), two.len());
        assert_eq!(passthrough_len(format!("{two}data: [DONE]\n\n").as_bytes()), two.len());
        for other in [
            "",
            "\n\n",
            ": still there\n\n",
            "data: [DONE]\n\n",
            "event: error\ndata: {}\n\n",
            "data: {}\r\n\r\n",
            "data: {\ndata: }\n\n",
            "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n",
            "data: {\"usage\" : {\"prompt_tokens\":1}}\n\n",
            "data: {\"error\":{\"message\":\"no\"}}\n\n",
            "data: {\"delta\":{\"reasoning_details\":[]}}\n\n",
            "data: {\"delta\":{\"tool_calls\":[{\"extra_content\":{}}]}}\n\n",
            "data: {\"a\":{\"finish_reason\":null},\"finish_reason\":\"length\"}\n\n",
        ] {
            assert_eq!(passthrough_len(other.as_bytes()), 0, "{other}");
            assert_eq!(passthrough_len(format!("{WORDS}\n\n{other}").as_bytes()), WORDS.len() + 2, "{other}");
        }
        // Field names inside a string are escaped.
        let quoted = "data: {\"content\":\"\\\"usage\\\": {}, \\\"error\\\": 1\"}\n\n";
        assert_eq!(passthrough_len(quoted.as_bytes()), quoted.len());
    }
}
