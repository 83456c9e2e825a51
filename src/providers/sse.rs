//! Server-sent events out of the bytes of a response, as they come.

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Its name; empty where it has none.
    pub name: String,
    /// Its data, the lines joined.
    pub data: String,
}

/// Cuts bytes into events. Bytes may be cut anywhere, also inside a character.
#[derive(Debug, Default)]
pub struct Events {
    /// What has come of a line.
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    /// A `\r` has ended a line; a `\n` right after it belongs to it.
    after_return: bool,
}

/// An event is larger than this only if something is wrong.
const MOST_BYTES: usize = 16 << 20;

/// An event without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than 16 MiB")]
pub struct TooLarge;

impl Events {
    /// Whether nothing of another event has come since the last.
    pub fn is_between(&self) -> bool {
        self.line.is_empty() && !self.has_data && self.event.name.is_empty() && !self.after_return
    }

    /// The events that are complete with these bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLarge> {
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
                    if self.line.len() + self.event.data.len() > MOST_BYTES {
                        return Err(TooLarge);
                    }
                }
            }
        }
        Ok(events)
    }

    fn end_of_line(&mut self) -> Option<Event> {
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

    fn event(name: &str, data: &str) -> Event {
        Event { name: name.into(), data: data.into() }
    }

    #[test]
    fn events_have_names_and_lines_and_comments_are_none() {
        let events = Events::default().push(STREAM.as_bytes()).unwrap();
        assert_eq!(events, [event("a", "{\"x\":1}"), event("", "two\nlines ö"), event("", "[DONE]")]);
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut events = Events::default();
        let piece = vec![b'x'; 1 << 20];
        assert!((0..20).any(|_| events.push(&piece) == Err(TooLarge)));
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_the_bytes_are_cut(cuts in prop::collection::vec(0..STREAM.len(), 0..12)) {
            let mut cuts = cuts;
            cuts.extend([0, STREAM.len()]);
            cuts.sort_unstable();
            let mut events = Events::default();
            let mut found = Vec::new();
            for pair in cuts.windows(2) {
                found.extend(events.push(&STREAM.as_bytes()[pair[0]..pair[1]]).unwrap());
            }
            prop_assert_eq!(found, Events::default().push(STREAM.as_bytes()).unwrap());
        }
    }
}
