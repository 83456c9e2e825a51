//! Terminal-safe stdout: sanitizes text from documents, models and servers.

use std::io::{self, IsTerminal, Write};

use super::sanitize;

/// Passes printable characters, newlines and tabs, and only those escape sequences that corbie itself writes.
pub(super) struct SanitizedStdout<Out> {
    out: Out,
    /// An incomplete UTF-8 sequence at the end of the last write.
    partial_char: Vec<u8>,
}

pub(super) const BOLD: &str = "\u{1b}[1m";
pub(super) const DIM: &str = "\u{1b}[2m";
pub(super) const RESET: &str = "\u{1b}[0m";

/// Stdout, unchanged for pipes and files, sanitized for a terminal.
pub(super) fn stdout() -> Box<dyn Write> {
    let stdout = io::stdout().lock();
    match stdout.is_terminal() {
        true => Box::new(SanitizedStdout::new(stdout)),
        false => Box::new(stdout),
    }
}

impl<Out: Write> SanitizedStdout<Out> {
    fn new(out: Out) -> SanitizedStdout<Out> {
        SanitizedStdout { out, partial_char: Vec::new() }
    }
}

impl<Out: Write> Write for SanitizedStdout<Out> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = std::mem::take(&mut self.partial_char);
        all.extend_from_slice(bytes);
        let mut shown = String::with_capacity(all.len());
        for chunk in all.utf8_chunks() {
            shown.push_str(&sanitize_keeping_styles(chunk.valid()));
            match std::str::from_utf8(chunk.invalid()) {
                // An incomplete sequence can only be at the end.
                Err(error) if error.error_len().is_none() => self.partial_char = chunk.invalid().to_vec(),
                Err(_) => shown.push(char::REPLACEMENT_CHARACTER),
                Ok(_) => {}
            }
        }
        self.out.write_all(shown.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Sanitizes a text but keeps corbie's own style sequences.
fn sanitize_keeping_styles(text: &str) -> String {
    let mut pieces = text.split('\u{1b}');
    let mut shown = pieces.next().map(sanitize).unwrap_or_default().into_owned();
    for piece in pieces {
        let is_ours = [BOLD, DIM, RESET].iter().any(|mark| piece.starts_with(&mark[1..]));
        if is_ours {
            shown.push('\u{1b}');
        }
        shown.push_str(&sanitize(piece));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&[u8]]) -> String {
        let mut screen = SanitizedStdout::new(Vec::new());
        pieces.iter().for_each(|piece| screen.write_all(piece).unwrap());
        String::from_utf8(screen.out).unwrap()
    }

    #[test]
    fn nothing_but_letters_lines_and_our_own_marks_gets_through() {
        assert_eq!(shown(&["a\tb\nü – \u{1b}[1mbold\u{1b}[0m".as_bytes()]), "a\tb\nü – \u{1b}[1mbold\u{1b}[0m");
        assert_eq!(shown(&["\u{1b}[2J\u{1b}]0;title\u{7}a\r\u{9b}31m\u{202e}\u{1b}".as_bytes()]), "[2J]0;titlea31m");
        assert_eq!(shown(&[b"a\x9b31m\xffb"]), "a\u{fffd}31m\u{fffd}b");
    }

    #[test]
    fn letters_that_come_in_pieces_are_whole_in_the_end() {
        for text in ["ü–😀", "a\u{9b}b"] {
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(shown(&bytes), sanitize(text));
        }
    }
}
