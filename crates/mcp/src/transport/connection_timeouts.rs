//! Read deadlines of a connection.
//!
//! The deadline of a client that has begun a request is shorter than that of an idle connection, and there is none
//! while the server processes a request.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::connection_phase::{AwaitedInput, ConnectionPhase, NOT_WAITED, Phase, milliseconds};
use super::lingering_close::LingeringClose;
use super::request_framing::RequestFraming;
use crate::limits::Limits;

/// A stream with read deadlines: the connection fails if the client misses one.
pub(super) struct ReadDeadline<S> {
    stream: S,
    phase: ConnectionPhase,
    head_timeout: Duration,
    idle_timeout: Duration,
    framing: RequestFraming,
    /// Bytes that are read and not passed on yet.
    first: Bytes,
    /// The deadline in effect, if any.
    timed_wait: Option<AwaitedInput>,
    /// Created once, and reset for each deadline.
    timer: Option<Pin<Box<Sleep>>>,
    /// `None` before the write side is closed.
    linger: Option<LingeringClose>,
}

/// Size of the first read. Nearly all first requests fit.
const FIRST_READ: usize = 2048;

// === impl ReadDeadline ===

impl<S> ReadDeadline<S> {
    pub(super) fn new(stream: S, phase: ConnectionPhase, head_timeout: Duration, limits: &Limits) -> ReadDeadline<S> {
        ReadDeadline {
            stream,
            phase,
            head_timeout,
            idle_timeout: limits.idle_timeout,
            framing: RequestFraming::new(limits.max_header_bytes),
            first: Bytes::new(),
            timed_wait: None,
            timer: None,
            linger: None,
        }
    }

    /// Records received bytes. The first byte of a request starts the deadline of its head.
    fn record_input(&mut self, bytes: &[u8]) {
        match self.phase.phase().0 {
            Phase::Silent => self.phase.enter(Phase::Head, NOT_WAITED),
            Phase::Idle => self.begin_head(NOT_WAITED),
            Phase::Head | Phase::Server | Phase::Flush => {}
            Phase::Linger | Phase::Upgraded => return,
        }
        self.framing.read(bytes);
        self.phase.record_framing(&self.framing);
    }

    /// Starts the deadline of the next head on a keep-alive connection.
    fn begin_head(&mut self, since: u64) {
        self.phase.enter(Phase::Head, since);
        self.timed_wait = None;
    }

    /// Checks the deadline while there is no input.
    fn poll_timeout(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The beginning of a pipelined head was read with the previous request.
        if self.phase.phase().0 == Phase::Idle && self.framing.is_in_head() {
            self.begin_head(milliseconds());
        }
        let wait = self.phase.awaited_input();
        let (limit, why) = match wait {
            Some(AwaitedInput::Head) => (self.head_timeout, "timed out while reading the request"),
            Some(AwaitedInput::NextRequest) => (self.idle_timeout, "idle connection timed out"),
            None => {
                self.timed_wait = None;
                return Poll::Pending;
            }
        };
        if self.phase.phase() == (Phase::Head, NOT_WAITED) {
            self.phase.enter(Phase::Head, milliseconds());
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        if self.timed_wait != wait {
            timer.as_mut().reset(tokio::time::Instant::now() + limit);
            self.timed_wait = wait;
        }
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
    }
}

impl<S: AsyncRead + Unpin> ReadDeadline<S> {
    /// Waits for the first bytes of the client; false if it closed the connection instead. Until then the connection can
    /// be evicted with a response, which hyper would not send.
    pub(super) async fn read_first(&mut self) -> io::Result<bool> {
        let mut first = BytesMut::with_capacity(FIRST_READ);
        self.read_buf(&mut first).await?;
        self.first = first.freeze();
        Ok(!self.first.is_empty())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReadDeadline<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.first.is_empty() {
            let count = self.first.len().min(buffer.remaining());
            buffer.put_slice(&self.first.split_to(count));
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Ready(done) => {
                if buffer.filled().len() > before {
                    self.record_input(&buffer.filled()[before..]);
                }
                Poll::Ready(done)
            }
            Poll::Pending => self.poll_timeout(context),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ReadDeadline<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        if self.phase.phase().0 == Phase::Flush {
            self.phase.set_idle();
        }
        // After a response hyper does not read again if its previous read found no input, so the deadline is set here.
        match self.poll_timeout(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            if !self.phase.has_unread_body() {
                return Poll::Ready(Ok(()));
            }
            self.phase.enter(Phase::Linger, milliseconds());
        }
        let ReadDeadline { stream, linger, .. } = &mut *self;
        linger.get_or_insert_with(LingeringClose::new).poll_discard(stream, context).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;
    use crate::transport::connection_bodies::ResponseBody;

    fn limits() -> Limits {
        Limits {
            request_read_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(300),
            ..Limits::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn s10_a_head_and_a_pause_have_a_time_each_and_work_has_none() {
        let (mut client, server) = duplex(64);
        let phase = ConnectionPhase::new();
        let mut stream = ReadDeadline::new(server, phase.clone(), limits().request_read_timeout, &limits());
        let started = tokio::time::Instant::now();
        assert!(stream.read_u8().await.is_err());
        assert_eq!(started.elapsed().as_secs(), 30, "a new connection that sends nothing");

        phase.set_idle();
        let started = tokio::time::Instant::now();
        assert!(stream.read_u8().await.is_err());
        assert_eq!(started.elapsed().as_secs(), 300, "a connection kept for later");

        client.write_u8(b'G').await.expect("room");
        stream.read_u8().await.expect("a byte");
        let started = tokio::time::Instant::now();
        assert!(stream.read_u8().await.is_err());
        assert_eq!(started.elapsed().as_secs(), 30, "a head that was begun");

        phase.start_request();
        let waited = tokio::time::timeout(Duration::from_secs(3600), stream.read_u8()).await;
        assert!(waited.is_err(), "nobody is hurried while the server works");
    }

    #[tokio::test(start_paused = true)]
    async fn s10_bytes_do_not_give_a_head_more_time() {
        let (mut client, server) = duplex(64);
        let mut stream = ReadDeadline::new(server, ConnectionPhase::new(), limits().request_read_timeout, &limits());
        let started = tokio::time::Instant::now();
        let dripping = tokio::spawn(async move {
            while client.write_u8(b'x').await.is_ok() {
                sleep(Duration::from_secs(1)).await;
            }
        });
        while stream.read_u8().await.is_ok() {}
        assert_eq!(started.elapsed().as_secs(), 30);
        drop(stream);
        dripping.await.expect("no panic");
    }

    #[tokio::test]
    async fn s10_the_first_bytes_are_read_once_and_passed_on() {
        let (mut client, server) = duplex(64);
        let phase = ConnectionPhase::new();
        let mut stream = ReadDeadline::new(server, phase.clone(), limits().request_read_timeout, &limits());
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("room");
        assert!(stream.read_first().await.expect("readable"));
        assert!(phase.has_clear_framing(0) && !phase.has_clear_framing(1));
        client.write_all(b"rest").await.expect("room");
        drop(client);
        let mut read = String::new();
        stream.read_to_string(&mut read).await.expect("readable");
        assert_eq!(read, "GET / HTTP/1.1\r\n\r\nrest");
        assert!(!phase.has_clear_framing(1));
    }

    #[tokio::test]
    async fn s10_a_connection_is_idle_when_its_response_is_sent() {
        let (_client, server) = duplex(64);
        let phase = ConnectionPhase::new();
        let mut stream = ReadDeadline::new(server, phase.clone(), limits().request_read_timeout, &limits());
        phase.start_request();
        stream.flush().await.expect("writable");
        assert_eq!(phase.phase().0, Phase::Server);
        drop(ResponseBody::wrap(&phase, None, axum::response::Response::default()));
        assert_eq!(phase.phase().0, Phase::Flush);
        stream.flush().await.expect("writable");
        assert_eq!(phase.phase().0, Phase::Idle);
    }

    #[tokio::test(start_paused = true)]
    async fn s10_a_head_that_was_begun_with_the_previous_request_has_the_time_of_a_head() {
        let (mut client, server) = duplex(1024);
        let phase = ConnectionPhase::new();
        let mut stream = ReadDeadline::new(server, phase.clone(), limits().request_read_timeout, &limits());
        let requests = b"GET / HTTP/1.1\r\nhost: a\r\n\r\nG";
        client.write_all(requests).await.expect("room");
        stream.read_exact(&mut [0; 30][..requests.len()]).await.expect("readable");
        assert_eq!((phase.start_request(), phase.has_arrived(), phase.has_clear_framing(0)), (0, true, true));
        phase.set_idle();
        let started = tokio::time::Instant::now();
        assert!(stream.read_u8().await.is_err());
        assert_eq!(started.elapsed().as_secs(), 30);
        assert!(!phase.has_clear_framing(1));
    }
}
