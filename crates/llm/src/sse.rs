//! Incremental parser for server-sent events.

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Event name; empty if absent.
    pub name: String,
    /// The `data` lines, joined.
    pub data: String,
}

/// Splits bytes into events. Input may be split anywhere, including inside a character.
#[derive(Debug, Default)]
pub struct SseParser {
    /// Bytes of the current incomplete line.
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    /// The last line ended with `\r`; an immediately following `\n` belongs to it.
    after_return: bool,
}

/// Maximum event size.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// The event exceeds the size limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stream event is larger than 16 MiB")]
pub struct EventTooLarge;

impl SseParser {
    /// Whether the parser is at an event boundary.
    pub fn is_at_boundary(&self) -> bool {
        self.line.is_empty() && !self.has_data && self.event.name.is_empty() && !self.after_return
    }

    /// Feeds bytes and returns the completed events.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, EventTooLarge> {
        let mut events = Vec::new();
        for byte in bytes {
            match byte {
                b'\n' if std::mem::take(&mut self.after_return) => {}
                b'\n' | b'\r' => {
                    self.after_return = *byte == b'\r';
                    events.extend(self.end_of_line());
                }
                byte => {
                    self.after_return = false;
                    self.line.push(*byte);
                    if self.line.len() + self.event.data.len() > MAX_EVENT_BYTES {
                        return Err(EventTooLarge);
                    }
                }
            }
        }
        Ok(events)
    }

    fn end_of_line(&mut self) -> Option<SseEvent> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.strip_prefix('\u{feff}').unwrap_or(&line);
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.event.name = value.to_owned(),
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.has_data = true;
                self.event.data.push_str(value);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STREAM: &str =
        "event: a\ndata: {\"x\":1}\n\n: a comment\ndata:two\r\ndata: lines ö\r\n\r\nid: 7\n\ndata: [DONE]\n\n";

    fn event(name: &str, data: &str) -> SseEvent {
        SseEvent { name: name.into(), data: data.into() }
    }

    #[test]
    fn events_have_names_and_lines_and_comments_are_none() {
        let events = SseParser::default().push(STREAM.as_bytes()).unwrap();
        assert_eq!(events, [event("a", "{\"x\":1}"), event("", "two\nlines ö"), event("", "[DONE]")]);
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut events = SseParser::default();
        let piece = vec![b'x'; 1 << 20];
        assert!((0..20).any(|_| events.push(&piece) == Err(EventTooLarge)));
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_the_bytes_are_cut(cuts in prop::collection::vec(0..STREAM.len(), 0..12)) {
            let mut cuts = cuts;
            cuts.extend([0, STREAM.len()]);
            cuts.sort_unstable();
            let mut events = SseParser::default();
            let mut found = Vec::new();
            for pair in cuts.windows(2) {
                found.extend(events.push(&STREAM.as_bytes()[pair[0]..pair[1]]).unwrap());
            }
            prop_assert_eq!(found, SseParser::default().push(STREAM.as_bytes()).unwrap());
        }
    }
}
