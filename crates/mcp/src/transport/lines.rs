//! Reads newline-delimited messages without ever holding much more than one message's bound.
//!
//! Messages are handed out as slices of the read buffer: none is copied, and all that came with one read can be taken
//! before the next.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// What the next stretch of input was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    Message(&'a [u8]),
    /// Longer than the bound; it was read past and is gone.
    TooLong,
}

/// A cancel-safe reader: what was read so far is kept between calls.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Where the first byte that was not handed out stands.
    start: usize,
    /// Up to here there is no newline after `start`: long messages are searched once.
    searched: usize,
    max: usize,
    /// The rest of a line that was too long is being read past.
    skipping: bool,
    ended: bool,
    spare: Spare,
}

/// Decides when the memory of a large message is given back.
///
/// Not at once: whoever sends one often sends more, and taking fresh memory for each costs more than all the copying
/// (1 MB echoes: half of the server's time went into page faults). Not never: a connection may live for months.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    small_uses: u8,
}

impl Spare {
    /// Empties a buffer after a use; after many small uses of a large buffer, its memory is given back.
    pub(crate) fn after(&mut self, buffer: &mut Vec<u8>) {
        let was_small = buffer.len() <= CHUNK;
        buffer.clear();
        if buffer.capacity() <= 4 * CHUNK {
            return;
        }
        self.small_uses = if was_small { self.small_uses.saturating_add(1) } else { 0 };
        if self.small_uses == u8::MAX {
            *buffer = Vec::with_capacity(CHUNK);
            self.small_uses = 0;
        }
    }
}

/// Room for one read; a pipe holds as much.
const CHUNK: usize = 64 * 1024;

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(reader: R, max: usize) -> Lines<R> {
        Lines {
            reader,
            buffer: Vec::with_capacity(CHUNK),
            start: 0,
            searched: 0,
            max,
            skipping: false,
            ended: false,
            spare: Spare::default(),
        }
    }

    /// Reads more; false at the end of the input.
    pub(crate) async fn fill(&mut self) -> io::Result<bool> {
        // What was handed out makes room. Only an incomplete message is moved, so this costs little.
        if self.start == self.buffer.len() {
            self.spare.after(&mut self.buffer);
        } else {
            self.buffer.drain(..self.start);
        }
        self.searched -= self.start;
        self.start = 0;
        if self.buffer.capacity() - self.buffer.len() < CHUNK / 4 {
            self.buffer.reserve(CHUNK.max(self.buffer.len()));
        }
        let read = self.reader.read_buf(&mut self.buffer).await?;
        self.ended = read == 0;
        Ok(!self.ended)
    }

    /// Whether it is worth reading on while answers are being written: not past the end, and never much more than one
    /// message's bound.
    pub(crate) fn can_read_ahead(&self) -> bool {
        !self.ended && self.buffer.len() - self.start <= self.max
    }

    /// The next message that is already here; blank lines are passed over.
    ///
    /// At the end of the input, a last line without its newline counts.
    pub(crate) fn take(&mut self) -> Option<Line<'_>> {
        loop {
            let newline = memchr::memchr(b'\n', &self.buffer[self.searched..]).map(|at| self.searched + at);
            let (start, end) = match newline {
                Some(at) => {
                    let start = std::mem::replace(&mut self.start, at + 1);
                    self.searched = at + 1;
                    (start, at)
                }
                None if self.ended && (self.skipping || self.start < self.buffer.len()) => {
                    let start = std::mem::replace(&mut self.start, self.buffer.len());
                    self.searched = self.buffer.len();
                    (start, self.buffer.len())
                }
                None => {
                    self.searched = self.buffer.len();
                    if self.skipping || self.buffer.len() - self.start > self.max {
                        // Given back at once: an attacker's line must not keep its memory.
                        self.skipping = true;
                        self.start = self.buffer.len();
                    }
                    return None;
                }
            };
            if std::mem::take(&mut self.skipping) || end - start > self.max {
                return Some(Line::TooLong);
            }
            if !self.buffer[start..end].trim_ascii().is_empty() {
                return Some(Line::Message(&self.buffer[start..end]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out a few bytes a read, as a slow writer would.
    struct Trickle<'a>(&'a [u8], usize);

    impl AsyncRead for Trickle<'_> {
        fn poll_read(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            buffer: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<io::Result<()>> {
            let (now, later) = self.0.split_at(self.1.min(self.0.len()));
            buffer.put_slice(now);
            self.0 = later;
            std::task::Poll::Ready(Ok(()))
        }
    }

    async fn read(input: &[u8], max: usize, at_once: usize) -> Vec<Option<String>> {
        let mut lines = Lines::new(Trickle(input, at_once), max);
        let mut all = Vec::new();
        loop {
            let more = lines.fill().await.expect("memory does not fail");
            while let Some(line) = lines.take() {
                all.push(match line {
                    Line::Message(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
                    Line::TooLong => None,
                });
            }
            if !more {
                return all;
            }
        }
    }

    #[tokio::test]
    async fn t04_blank_lines_are_ignored_and_long_ones_skipped() {
        for at_once in [1, 2, 3, 7, 1000] {
            let lines = read(b"one\n\n  \r\ntwo\n0123456789\nthree", 5, at_once).await;
            let expected = [Some("one".into()), Some("two".into()), None, Some("three".into())];
            assert_eq!(lines, expected, "{at_once} at once");
        }
    }

    #[tokio::test]
    async fn a_line_of_exactly_the_bound_is_taken() {
        for at_once in [1, 4, 100] {
            assert_eq!(read(b"12345\n123456", 5, at_once).await, [Some("12345".into()), None], "{at_once} at once");
        }
    }

    #[tokio::test]
    async fn a_line_without_end_keeps_no_memory() {
        let input = vec![b'x'; 3_000_000];
        let mut lines = Lines::new(&input[..], 1000);
        while lines.fill().await.expect("memory does not fail") {
            assert_eq!(lines.take(), None);
            assert!(lines.buffer.capacity() <= 8 * CHUNK, "{}", lines.buffer.capacity());
        }
        assert_eq!(lines.take(), Some(Line::TooLong));
        assert_eq!(lines.take(), None);
    }
}
