//! Fast JSON string writer.
//!
//! serde_json inspects every byte of a string, nine instructions each; for large texts that was more than a third of a
//! call (callgrind, 1 MB echo). Most texts need no escapes, which a vectorized pass can detect.

/// Appends the text as a JSON string.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    if needs_escapes(text.as_bytes()) {
        serde_json::to_writer(out, text).expect("a string can be written");
        return;
    }
    // Reserve room for the data after the text too: growing the buffer later would copy the text again.
    out.reserve(text.len() + 256);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

fn needs_escapes(bytes: &[u8]) -> bool {
    // Without an early exit inside a block, the compiler vectorizes the loop.
    bytes.chunks(256).any(|block| block.iter().fold(false, |found, byte| found | needs_escape(*byte)))
}

/// Bytes that must be escaped in a JSON string.
fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_text_is_what_serde_json_writes(text in ".{0,300}|[\u{0}-\u{20}\"\\\\]{0,9}[a-z]{250,260}[\"\\\\\n]?") {
            let mut out = Vec::new();
            write_string(&mut out, &text);
            prop_assert_eq!(out, serde_json::to_vec(&text).expect("a string can be written"));
        }
    }
}
