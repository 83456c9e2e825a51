//! Newline-delimited message reader with bounded memory.
//!
//! Messages are slices of the read buffer: none is copied, and all messages of one read can be taken before the next.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The next part of the input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InputLine<'a> {
    Message(&'a [u8]),
    /// Longer than the limit; it was skipped.
    TooLong,
}

/// A cancel-safe reader: partial input is retained between calls.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Offset of the first byte not yet returned.
    start: usize,
    /// There is no newline between `start` and this offset: long messages are searched once.
    searched: usize,
    max: usize,
    /// Skipping the rest of an overlong line.
    skipping: bool,
    ended: bool,
    spare: BufferRecycler,
}

/// Decides when to free the memory of a large message.
///
/// Not immediately: a client that sends one large message often sends more, and allocating fresh memory for each costs
/// more than all the copying (1 MB echoes: half of the server's time went into page faults). But eventually: a
/// connection may live for months.
#[derive(Debug, Default)]
pub(crate) struct BufferRecycler {
    small_uses: u8,
}

impl BufferRecycler {
    /// Clears a buffer after use; after many small uses of a large buffer, frees its memory.
    pub(crate) fn recycle(&mut self, buffer: &mut Vec<u8>) {
        let was_small = buffer.len() <= READ_CHUNK_BYTES;
        buffer.clear();
        if buffer.capacity() <= 4 * READ_CHUNK_BYTES {
            return;
        }
        self.small_uses = if was_small { self.small_uses.saturating_add(1) } else { 0 };
        if self.small_uses == u8::MAX {
            *buffer = Vec::with_capacity(READ_CHUNK_BYTES);
            self.small_uses = 0;
        }
    }
}

/// Size of one read; the capacity of a pipe.
const READ_CHUNK_BYTES: usize = 64 * 1024;

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(reader: R, max: usize) -> LineReader<R> {
        LineReader {
            reader,
            buffer: Vec::with_capacity(READ_CHUNK_BYTES),
            start: 0,
            searched: 0,
            max,
            skipping: false,
            ended: false,
            spare: BufferRecycler::default(),
        }
    }

    /// Reads more; false at the end of the input.
    pub(crate) async fn fill(&mut self) -> io::Result<bool> {
        // Discard returned messages. Only an incomplete message is moved, so this is cheap.
        if self.start == self.buffer.len() {
            self.spare.recycle(&mut self.buffer);
        } else {
            self.buffer.drain(..self.start);
        }
        self.searched -= self.start;
        self.start = 0;
        if self.buffer.capacity() - self.buffer.len() < READ_CHUNK_BYTES / 4 {
            self.buffer.reserve(READ_CHUNK_BYTES.max(self.buffer.len()));
        }
        let read = self.reader.read_buf(&mut self.buffer).await?;
        self.ended = read == 0;
        Ok(!self.ended)
    }

    /// Whether to read ahead while replies are being written: not past the end, and never much more than one message's
    /// limit.
    pub(crate) fn can_read_ahead(&self) -> bool {
        !self.ended && self.buffer.len() - self.start <= self.max
    }

    /// The next complete message in the buffer; skips blank lines.
    ///
    /// At the end of the input, a last line without newline counts.
    pub(crate) fn take(&mut self) -> Option<InputLine<'_>> {
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
                        // Discard it immediately: an attacker's line must not occupy memory.
                        self.skipping = true;
                        self.start = self.buffer.len();
                    }
                    return None;
                }
            };
            if std::mem::take(&mut self.skipping) || end - start > self.max {
                return Some(InputLine::TooLong);
            }
            if !self.buffer[start..end].trim_ascii().is_empty() {
                return Some(InputLine::Message(&self.buffer[start..end]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a few bytes per read, like a slow writer.
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
        let mut lines = LineReader::new(Trickle(input, at_once), max);
        let mut all = Vec::new();
        loop {
            let more = lines.fill().await.expect("memory does not fail");
            while let Some(line) = lines.take() {
                all.push(match line {
                    InputLine::Message(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
                    InputLine::TooLong => None,
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
        let mut lines = LineReader::new(&input[..], 1000);
        while lines.fill().await.expect("memory does not fail") {
            assert_eq!(lines.take(), None);
            assert!(lines.buffer.capacity() <= 8 * READ_CHUNK_BYTES, "{}", lines.buffer.capacity());
        }
        assert_eq!(lines.take(), Some(InputLine::TooLong));
        assert_eq!(lines.take(), None);
    }
}
