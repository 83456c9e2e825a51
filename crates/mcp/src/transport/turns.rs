//! Whose turn it is on a connection, and how long a client may take over its own.
//!
//! A client that has begun a request has less time than one that keeps a connection for later, and while the server
//! works nobody is hurried.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::limits::Limits;

/// Whose turn it is on one connection. Shared by its stream, its answers, and whoever looks for room.
#[derive(Debug, Clone)]
pub(super) struct Turn(Arc<AtomicU64>);

/// A stream whose client takes its turn in time, or the connection fails.
pub(super) struct ReadDeadline<S> {
    stream: S,
    turn: Turn,
    for_head: Duration,
    for_next_request: Duration,
    /// Which turn is being timed, if one is.
    timed: Option<Wait>,
    /// Made once, and set anew for each turn.
    timer: Option<Pin<Box<Sleep>>>,
}

/// The body of an answer; when it has gone, it is the client's turn.
pub(super) struct Answer {
    body: Body,
    /// None after an upgrade: what follows is no HTTP, and has bounds of its own.
    turn: Option<Turn>,
}

/// What a client is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Head,
    NextRequest,
}

/// The client sends a head, or is expected to.
const HEAD: u64 = 0;
/// The server works on a request. Its body is the business of whoever reads it.
const SERVER: u64 = 1;
/// From here on: idle between requests since this many milliseconds after [`START`], and two.
const IDLE: u64 = 2;

/// What idle times are told from.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

// === impl Turn ===

impl Turn {
    /// A new connection owes its first request at once.
    pub(super) fn new() -> Turn {
        Turn(Arc::new(AtomicU64::new(HEAD)))
    }

    /// A head has come.
    pub(super) fn take(&self) {
        self.0.store(SERVER, Ordering::Relaxed);
    }

    /// Since when nothing was asked, comparable among connections; none while something is.
    pub(super) fn idle_since(&self) -> Option<u64> {
        let now = self.0.load(Ordering::Relaxed);
        (now >= IDLE).then_some(now)
    }

    fn give_back(&self) {
        let since = u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX - IDLE);
        self.0.store(IDLE + since, Ordering::Relaxed);
    }

    fn wait(&self) -> Option<Wait> {
        match self.0.load(Ordering::Relaxed) {
            HEAD => Some(Wait::Head),
            SERVER => None,
            _ => Some(Wait::NextRequest),
        }
    }
}

// === impl ReadDeadline ===

impl<S> ReadDeadline<S> {
    pub(super) fn new(stream: S, turn: Turn, limits: &Limits) -> ReadDeadline<S> {
        let (for_head, for_next_request) = (limits.request_read_timeout, limits.idle_timeout);
        ReadDeadline { stream, turn, for_head, for_next_request, timed: None, timer: None }
    }

    /// The first byte of a request; its head is due from now on.
    fn begun(&mut self) {
        if self.turn.wait() == Some(Wait::NextRequest) {
            self.turn.0.store(HEAD, Ordering::Relaxed);
            self.timed = None;
        }
    }

    /// Nothing has come: is the time over?
    fn overdue(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wait = self.turn.wait();
        let (limit, why) = match wait {
            Some(Wait::Head) => (self.for_head, "the client takes too long to send a request"),
            Some(Wait::NextRequest) => (self.for_next_request, "the client has asked nothing for too long"),
            None => {
                self.timed = None;
                return Poll::Pending;
            }
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        if self.timed != wait {
            timer.as_mut().reset(tokio::time::Instant::now() + limit);
            self.timed = wait;
        }
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReadDeadline<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Ready(done) => {
                if buffer.filled().len() > before {
                    self.begun();
                }
                Poll::Ready(done)
            }
            Poll::Pending => self.overdue(context),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReadDeadline<S> {
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
        // hyper does not read again after an answer when it has found nothing to read before; so the time is set here.
        match self.overdue(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

// === impl Answer ===

impl Answer {
    pub(super) fn to(turn: &Turn, response: axum::response::Response) -> http::Response<Answer> {
        let is_upgrade = response.status() == http::StatusCode::SWITCHING_PROTOCOLS;
        let turn = (!is_upgrade).then(|| turn.clone());
        response.map(|body| Answer { body, turn })
    }
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(turn) = &self.turn {
            turn.give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

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
        let turn = Turn::new();
        let mut stream = ReadDeadline::new(server, turn.clone(), &limits());
        let started = tokio::time::Instant::now();
        assert!(stream.read_u8().await.is_err());
        assert_eq!(started.elapsed().as_secs(), 30, "a new connection that sends nothing");

        turn.give_back();
        let started = tokio::time::Instant::now();
        assert!(stream.read_u8().await.is_err());
        assert_eq!(started.elapsed().as_secs(), 300, "a connection kept for later");

        client.write_u8(b'G').await.expect("room");
        stream.read_u8().await.expect("a byte");
        let started = tokio::time::Instant::now();
        assert!(stream.read_u8().await.is_err());
        assert_eq!(started.elapsed().as_secs(), 30, "a head that was begun");

        turn.take();
        let waited = tokio::time::timeout(Duration::from_secs(3600), stream.read_u8()).await;
        assert!(waited.is_err(), "nobody is hurried while the server works");
    }

    #[tokio::test(start_paused = true)]
    async fn s10_bytes_do_not_give_a_head_more_time() {
        let (mut client, server) = duplex(64);
        let mut stream = ReadDeadline::new(server, Turn::new(), &limits());
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
}
