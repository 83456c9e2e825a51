//! Reads newline-delimited messages without ever holding more than one message's bound.

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// What the next stretch of input was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Message(Vec<u8>),
    /// Longer than the bound; it was read past and is gone.
    TooLong,
    End,
}

/// A cancel-safe reader: what was read so far is kept between calls of [`Lines::next`].
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    max: usize,
    skipping: bool,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(crate) fn new(reader: R, max: usize) -> Lines<R> {
        Lines { reader, line: Vec::new(), max, skipping: false }
    }

    /// The next message; blank lines are passed over. A last line without its newline counts.
    pub(crate) async fn next(&mut self) -> std::io::Result<Line> {
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                let rest = std::mem::take(&mut self.line);
                return Ok(match (std::mem::take(&mut self.skipping), rest.trim_ascii().is_empty()) {
                    (true, _) => Line::TooLong,
                    (false, true) => Line::End,
                    (false, false) => Line::Message(rest),
                });
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let chunk = &available[..newline.unwrap_or(available.len())];
            if !self.skipping {
                if self.line.len() + chunk.len() > self.max {
                    self.skipping = true;
                    // Given back at once: an attacker's line must not keep its memory.
                    self.line = Vec::new();
                } else {
                    self.line.extend_from_slice(chunk);
                }
            }
            let used = chunk.len() + usize::from(newline.is_some());
            self.reader.consume(used);
            if newline.is_none() {
                continue;
            }
            if std::mem::take(&mut self.skipping) {
                return Ok(Line::TooLong);
            }
            let line = std::mem::take(&mut self.line);
            if !line.trim_ascii().is_empty() {
                return Ok(Line::Message(line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    async fn read(input: &[u8], max: usize) -> Vec<Line> {
        let mut lines = Lines::new(BufReader::with_capacity(4, input), max);
        let mut all = Vec::new();
        loop {
            match lines.next().await.expect("memory does not fail") {
                Line::End => return all,
                line => all.push(line),
            }
        }
    }

    fn message(text: &str) -> Line {
        Line::Message(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn t04_blank_lines_are_ignored_and_long_ones_skipped() {
        let lines = read(b"one\n\n  \r\ntwo\n0123456789\nthree", 5).await;
        assert_eq!(lines, [message("one"), message("two"), Line::TooLong, message("three")]);
    }

    #[tokio::test]
    async fn a_line_of_exactly_the_bound_is_taken() {
        assert_eq!(read(b"12345\n123456", 5).await, [message("12345"), Line::TooLong]);
    }
}
