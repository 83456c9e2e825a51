//! Invariants of SSE parsing: any split of the bytes gives the same events, equal to those of a reference parser.

use corbie::providers::{SseEvent, SseParser};

/// The first two bytes seed the splits.
pub(super) fn check_invariants(bytes: &[u8]) {
    let Some((seed, bytes)) = bytes.split_first_chunk::<2>() else { return };
    let whole = SseParser::default().push(bytes).expect("no event is larger than an input");
    assert_eq!(whole, reference_parser(bytes));

    let mut events = SseParser::default();
    let mut found = Vec::new();
    for piece in split_randomly(bytes, u16::from_le_bytes(*seed)) {
        // Between events there is no state, so a new parser can continue.
        if events.is_at_boundary() {
            events = SseParser::default();
        }
        found.extend(events.push(piece).expect("no event is larger than an input"));
    }
    assert_eq!(found, whole, "it does not matter where bytes are cut");
}

/// Pieces of one to sixteen bytes.
fn split_randomly(mut bytes: &[u8], seed: u16) -> Vec<&[u8]> {
    let mut state = u32::from(seed) + 1;
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (piece, rest) = bytes.split_at((state >> 28) as usize % bytes.len() + 1);
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

/// Reference parser with all lines available.
fn reference_parser(bytes: &[u8]) -> Vec<SseEvent> {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n");
    let Some((lines, _unfinished)) = text.rsplit_once('\n') else { return Vec::new() };
    let (mut events, mut name, mut data) = (Vec::new(), String::new(), Vec::new());
    for line in lines.split('\n') {
        let marked = line.strip_prefix('\u{feff}').unwrap_or(line);
        let (field, value) = marked.split_once(':').unwrap_or((marked, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            _ if line.is_empty() => {
                let event = SseEvent { name: std::mem::take(&mut name), data: data.join("\n") };
                if !std::mem::take(&mut data).is_empty() {
                    events.push(event);
                }
            }
            "event" => name = value.to_owned(),
            "data" => data.push(value.to_owned()),
            _ => {}
        }
    }
    events
}
