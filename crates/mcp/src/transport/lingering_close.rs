//! Lingering close (RFC 9112, section 9.6): the rest of a body whose request was answered before its end is read and
//! discarded. Closing a socket with unread input resets the connection, and the client may lose the response.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Discards input after the write side is closed, bounded in time and bytes.
pub(super) struct LingeringClose {
    remaining_bytes: usize,
    timer: Pin<Box<Sleep>>,
}

/// Limits for clients that send the whole body before they read.
const LINGER_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_LINGER_BYTES: usize = 64 << 20;

impl LingeringClose {
    pub(super) fn new() -> LingeringClose {
        LingeringClose { remaining_bytes: MAX_LINGER_BYTES, timer: Box::pin(sleep(LINGER_TIMEOUT)) }
    }

    /// Ready when the client has closed, or a limit is reached.
    pub(super) fn poll_discard(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let mut scratch = [0; 8192];
        while self.remaining_bytes > 0 {
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut *stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    self.remaining_bytes = self.remaining_bytes.saturating_sub(buffer.filled().len());
                }
                Poll::Ready(_) => break,
                Poll::Pending => {
                    ready!(self.timer.as_mut().poll(context));
                    break;
                }
            }
        }
        Poll::Ready(())
    }
}
