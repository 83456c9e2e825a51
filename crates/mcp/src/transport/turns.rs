//! State of a connection and its read deadlines.
//!
//! The deadline of a client that has begun a request is shorter than that of an idle connection, and there is none
//! while the server processes a request. A connection that is closed before the client has sent a whole body is read
//! for some more time, so that the response is not lost.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use bytes::BytesMut;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::places::Place;
use super::request_framing::RequestFraming;
use crate::limits::Limits;

/// State of a connection. Shared by its stream, its bodies, and the connection limiter.
#[derive(Debug, Clone)]
pub(super) struct Turn(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// A [`Phase`] in the upper bits, and its start time in the lower ones.
    phase: AtomicU64,
    /// Requests that hyper has parsed.
    requests: AtomicU64,
    /// [`RequestFraming::heads`] and [`RequestFraming::requests`], as of the last read.
    clear_heads: AtomicU64,
    arrived: AtomicU64,
    /// The body of the current request was dropped, and hyper cannot skip the rest of it.
    unread_body: AtomicBool,
    /// The connection is evicted with its request.
    aborted: AtomicBool,
}

/// Phase of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The client has sent nothing, or has not finished its TLS handshake.
    Silent,
    /// The client sends a head.
    Head,
    /// The server processes a request. The reader of its body enforces a separate deadline.
    Server,
    /// The response is complete, and its last bytes are being sent.
    Flush,
    /// Idle between requests.
    Idle,
    /// The reply is sent; input is discarded.
    Linger,
    /// Switched to another protocol, which has separate limits.
    Upgraded,
}

/// A stream with read deadlines: the connection fails if the client misses one.
pub(super) struct ReadDeadline<S> {
    stream: S,
    turn: Turn,
    for_head: Duration,
    for_next_request: Duration,
    framing: RequestFraming,
    /// Bytes that are read and not passed on yet.
    first: Bytes,
    /// The deadline in effect, if any.
    timed: Option<Wait>,
    /// Created once, and reset for each deadline.
    timer: Option<Pin<Box<Sleep>>>,
    /// Bytes that may still be discarded; `None` before the write side is closed.
    linger: Option<usize>,
}

/// Body of a request; records when it is dropped before its end.
pub(super) struct RequestBody {
    body: Incoming,
    turn: Turn,
    ended: bool,
}

/// Body of a response. After it is dropped, the connection becomes idle with the next flush.
pub(super) struct Answer {
    body: Body,
    /// `None` after an upgrade: the following bytes are not HTTP and have separate limits.
    turn: Option<Turn>,
    /// The connection of a proxy, which is assigned to one client until this response is complete.
    forwarded: Option<Place>,
}

/// Message that the client has to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Head,
    NextRequest,
}

/// Reference point of timestamps.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

const PHASE_SHIFT: u32 = 56;
const SINCE_MASK: u64 = (1 << PHASE_SHIFT) - 1;
/// Timestamp of a head that was read without waiting.
pub(super) const NOT_WAITED: u64 = SINCE_MASK;

/// Size of the first read. Nearly all first requests fit.
const FIRST_READ: usize = 2048;

/// Limits of reading after a response, for clients that send the whole body before they read.
const LINGER_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_LINGER_BYTES: usize = 64 << 20;

// === impl Turn ===

impl Turn {
    /// The deadline of the first request starts immediately.
    pub(super) fn new() -> Turn {
        let inner = Inner {
            phase: AtomicU64::default(),
            requests: AtomicU64::default(),
            clear_heads: AtomicU64::default(),
            arrived: AtomicU64::default(),
            unread_body: AtomicBool::default(),
            aborted: AtomicBool::default(),
        };
        let turn = Turn(Arc::new(inner));
        turn.enter(Phase::Silent, milliseconds());
        turn
    }

    /// Records a complete head. Returns the number of requests before it on this connection.
    pub(super) fn take(&self) -> u64 {
        self.enter(Phase::Server, 0);
        if self.has_unread_body() {
            self.0.unread_body.store(false, Ordering::Relaxed);
        }
        self.0.requests.fetch_add(1, Ordering::Relaxed)
    }

    /// The number of requests so far.
    pub(super) fn requests(&self) -> u64 {
        self.0.requests.load(Ordering::Relaxed)
    }

    /// Whether no two readers could disagree on the length of this request and of those before it.
    pub(super) fn has_clear_framing(&self, request: u64) -> bool {
        request < self.0.clear_heads.load(Ordering::Relaxed)
    }

    /// Whether the current request was answered before its body has arrived, so that the connection has to close.
    pub(super) fn has_unread_body(&self) -> bool {
        self.0.unread_body.load(Ordering::Relaxed)
    }

    /// Whether the current request has arrived completely.
    fn has_arrived(&self) -> bool {
        self.0.arrived.load(Ordering::Relaxed) >= self.requests()
    }

    /// Evicts the connection even if a request is in progress.
    pub(super) fn abort(&self) {
        self.0.aborted.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_aborted(&self) -> bool {
        self.0.aborted.load(Ordering::Relaxed)
    }

    fn give_back(&self) {
        self.enter(Phase::Idle, milliseconds());
    }

    fn wait(&self) -> Option<Wait> {
        match self.phase().0 {
            Phase::Silent | Phase::Head => Some(Wait::Head),
            Phase::Server | Phase::Flush | Phase::Linger | Phase::Upgraded => None,
            Phase::Idle => Some(Wait::NextRequest),
        }
    }

    pub(super) fn enter(&self, phase: Phase, since: u64) {
        self.0.phase.store(((phase as u64) << PHASE_SHIFT) | (since & SINCE_MASK), Ordering::Relaxed);
    }

    /// The phase and its start time.
    pub(super) fn phase(&self) -> (Phase, u64) {
        let word = self.0.phase.load(Ordering::Relaxed);
        let phase = match word >> PHASE_SHIFT {
            0 => Phase::Silent,
            1 => Phase::Head,
            2 => Phase::Server,
            3 => Phase::Flush,
            4 => Phase::Idle,
            5 => Phase::Linger,
            _ => Phase::Upgraded,
        };
        (phase, word & SINCE_MASK)
    }
}

/// The current time in the format of phases.
pub(super) fn milliseconds() -> u64 {
    u64::try_from(START.elapsed().as_millis()).unwrap_or(SINCE_MASK) & SINCE_MASK
}

// === impl ReadDeadline ===

impl<S> ReadDeadline<S> {
    pub(super) fn new(stream: S, turn: Turn, for_head: Duration, limits: &Limits) -> ReadDeadline<S> {
        let (for_next_request, framing) = (limits.idle_timeout, RequestFraming::new(limits.max_header_bytes));
        ReadDeadline {
            stream,
            turn,
            for_head,
            for_next_request,
            framing,
            first: Bytes::new(),
            timed: None,
            timer: None,
            linger: None,
        }
    }

    /// Records received bytes. The first byte of a request starts the deadline of its head.
    fn came(&mut self, bytes: &[u8]) {
        match self.turn.phase().0 {
            Phase::Silent => self.turn.enter(Phase::Head, NOT_WAITED),
            Phase::Idle => self.begin_head(NOT_WAITED),
            Phase::Head | Phase::Server | Phase::Flush => {}
            Phase::Linger | Phase::Upgraded => return,
        }
        self.framing.read(bytes);
        self.turn.0.clear_heads.store(self.framing.heads(), Ordering::Relaxed);
        self.turn.0.arrived.store(self.framing.requests(), Ordering::Relaxed);
    }

    /// Starts the deadline of the next head on a keep-alive connection.
    fn begin_head(&mut self, since: u64) {
        self.turn.enter(Phase::Head, since);
        self.timed = None;
    }

    /// Checks the deadline while there is no input.
    fn overdue(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The beginning of a pipelined head was read with the previous request.
        if self.turn.phase().0 == Phase::Idle && self.framing.is_in_head() {
            self.begin_head(milliseconds());
        }
        let wait = self.turn.wait();
        let (limit, why) = match wait {
            Some(Wait::Head) => (self.for_head, "the client takes too long to send a request"),
            Some(Wait::NextRequest) => (self.for_next_request, "the client has asked nothing for too long"),
            None => {
                self.timed = None;
                return Poll::Pending;
            }
        };
        if self.turn.phase() == (Phase::Head, NOT_WAITED) {
            self.turn.enter(Phase::Head, milliseconds());
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        if self.timed != wait {
            timer.as_mut().reset(tokio::time::Instant::now() + limit);
            self.timed = wait;
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

    /// Discards the rest of a body whose request was answered before its end. Closing a socket with unread input resets
    /// the connection, and the client may lose the reply.
    fn discard(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut scratch = [0; 8192];
        while let Some(left @ 1..) = self.linger {
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    self.linger = Some(left.saturating_sub(buffer.filled().len()));
                }
                Poll::Ready(_) => break,
                Poll::Pending => match &mut self.timer {
                    Some(timer) => {
                        ready!(timer.as_mut().poll(context));
                        break;
                    }
                    None => break,
                },
            }
        }
        Poll::Ready(())
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
                    self.came(&buffer.filled()[before..]);
                }
                Poll::Ready(done)
            }
            Poll::Pending => self.overdue(context),
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
        if self.turn.phase().0 == Phase::Flush {
            self.turn.give_back();
        }
        // After a response hyper does not read again if its previous read found no input, so the deadline is set here.
        match self.overdue(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            if !self.turn.has_unread_body() {
                return Poll::Ready(Ok(()));
            }
            self.turn.enter(Phase::Linger, milliseconds());
            self.linger = Some(MAX_LINGER_BYTES);
            self.timer = Some(Box::pin(sleep(LINGER_TIMEOUT)));
        }
        self.discard(context).map(Ok)
    }
}

// === impl RequestBody ===

impl RequestBody {
    /// The body of a request on this connection.
    pub(super) fn of(turn: &Turn, body: Incoming) -> Body {
        match body.is_end_stream() {
            true => Body::empty(),
            false => Body::new(RequestBody { body, turn: turn.clone(), ended: false }),
        }
    }
}

impl hyper::body::Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.ended = !matches!(frame, Some(Ok(_)));
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        // hyper skips what has arrived of a body with a length, and keeps the connection if that is all of it. It skips no
        // more than one chunk of others.
        let is_skipped = || self.body.size_hint().exact().is_some() && self.turn.has_arrived();
        if !self.ended && !self.body.is_end_stream() && !is_skipped() {
            self.turn.0.unread_body.store(true, Ordering::Relaxed);
        }
    }
}

// === impl Answer ===

impl Answer {
    pub(super) fn to(
        turn: &Turn,
        forwarded: Option<Place>,
        response: axum::response::Response,
    ) -> http::Response<Answer> {
        let is_upgrade = response.status() == http::StatusCode::SWITCHING_PROTOCOLS;
        if is_upgrade {
            turn.enter(Phase::Upgraded, 0);
        }
        let turn = (!is_upgrade).then(|| turn.clone());
        response.map(|body| Answer { body, turn, forwarded })
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
            turn.enter(Phase::Flush, 0);
            if let Some(place) = &self.forwarded {
                place.release_client();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, duplex};

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
        let mut stream = ReadDeadline::new(server, turn.clone(), limits().request_read_timeout, &limits());
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
        let mut stream = ReadDeadline::new(server, Turn::new(), limits().request_read_timeout, &limits());
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
        let turn = Turn::new();
        let mut stream = ReadDeadline::new(server, turn.clone(), limits().request_read_timeout, &limits());
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("room");
        assert!(stream.read_first().await.expect("readable"));
        assert!(turn.has_clear_framing(0) && !turn.has_clear_framing(1));
        client.write_all(b"rest").await.expect("room");
        drop(client);
        let mut read = String::new();
        stream.read_to_string(&mut read).await.expect("readable");
        assert_eq!(read, "GET / HTTP/1.1\r\n\r\nrest");
        assert!(!turn.has_clear_framing(1));
    }

    #[tokio::test]
    async fn s10_a_connection_is_idle_when_its_response_is_sent() {
        let (_client, server) = duplex(64);
        let turn = Turn::new();
        let mut stream = ReadDeadline::new(server, turn.clone(), limits().request_read_timeout, &limits());
        turn.take();
        stream.flush().await.expect("writable");
        assert_eq!(turn.phase().0, Phase::Server);
        drop(Answer::to(&turn, None, axum::response::Response::default()));
        assert_eq!(turn.phase().0, Phase::Flush);
        stream.flush().await.expect("writable");
        assert_eq!(turn.phase().0, Phase::Idle);
    }

    #[tokio::test(start_paused = true)]
    async fn s10_a_head_that_was_begun_with_the_previous_request_has_the_time_of_a_head() {
        let (mut client, server) = duplex(1024);
        let turn = Turn::new();
        let mut stream = ReadDeadline::new(server, turn.clone(), limits().request_read_timeout, &limits());
        let requests = b"GET / HTTP/1.1\r\nhost: a\r\n\r\nG";
        client.write_all(requests).await.expect("room");
        stream.read_exact(&mut [0; 30][..requests.len()]).await.expect("readable");
        assert_eq!((turn.take(), turn.has_arrived(), turn.has_clear_framing(0)), (0, true, true));
        turn.give_back();
        let started = tokio::time::Instant::now();
        assert!(stream.read_u8().await.is_err());
        assert_eq!(started.elapsed().as_secs(), 30);
        assert!(!turn.has_clear_framing(1));
    }
}
