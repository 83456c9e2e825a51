//! Whose turn it is on a connection, and how long a client may take over its own.
//!
//! A client that has begun a request has less time than one that keeps a connection for later, and while the server
//! works nobody is hurried. A connection that is closed before its client has sent a whole body is read a while longer,
//! so that the reply is not lost.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::places::Place;
use crate::limits::Limits;

/// Whose turn it is on one connection. Shared by its stream, its bodies, and the connection limiter.
#[derive(Debug, Clone)]
pub(super) struct Turn(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// A [`Phase`] in the upper bits, and since when in the lower ones.
    phase: AtomicU64,
    /// `head` has a head that no request was made of yet.
    has_head: AtomicBool,
    /// The body of the current request was dropped before its end.
    unread_body: AtomicBool,
    head: Mutex<RawHead>,
}

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The client has sent nothing, or has not finished its TLS handshake.
    Silent,
    /// The client sends a head.
    Head,
    /// The server works on a request. Its body is the business of whoever reads it.
    Server,
    /// Idle between requests.
    Idle,
    /// The reply is sent; input is discarded.
    Linger,
}

/// Eviction order of a connection: by kind, then by age. Smaller values are evicted first.
pub(super) type EvictionRank = (u8, u64);

/// The bytes of a request's head as they came. hyper drops a `Content-Length` beside a `Transfer-Encoding`.
#[derive(Debug, Default)]
struct RawHead {
    bytes: Vec<u8>,
    is_complete: bool,
}

/// A stream whose client takes its turn in time, or the connection fails.
pub(super) struct ReadDeadline<S> {
    stream: S,
    turn: Turn,
    for_head: Duration,
    for_next_request: Duration,
    max_head: usize,
    /// Which turn is being timed, if one is.
    timed: Option<Wait>,
    /// Made once, and set anew for each turn.
    timer: Option<Pin<Box<Sleep>>>,
    /// Bytes that may still be discarded; `None` before the write side is closed.
    linger: Option<usize>,
}

/// The body of a request; tells when it is dropped before its end.
pub(super) struct RequestBody {
    body: Incoming,
    turn: Turn,
    ended: bool,
}

/// The body of an answer; when it has gone, it is the client's turn.
pub(super) struct Answer {
    body: Body,
    /// None after an upgrade: what follows is no HTTP, and has bounds of its own.
    turn: Option<Turn>,
    /// The connection of a proxy, which works for one client until this reply has gone.
    forwarded: Option<Place>,
}

/// What a client is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Head,
    NextRequest,
}

/// What times are told from.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

const PHASE_SHIFT: u32 = 56;
const SINCE_MASK: u64 = (1 << PHASE_SHIFT) - 1;
/// A head whose reading did not have to wait.
const NOT_WAITED: u64 = SINCE_MASK;

/// Time in which a new client usually sends its first bytes, and any client the rest of a head. Nearly all heads arrive
/// in one packet.
pub(super) const FRESH: Duration = Duration::from_millis(200);

/// Bounds of reading after a reply: a client that sends a body and only then reads needs both.
const LINGER_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_LINGER_BYTES: usize = 64 << 20;

// === impl Turn ===

impl Turn {
    /// A new connection owes its first request at once.
    pub(super) fn new() -> Turn {
        let inner = Inner {
            phase: AtomicU64::default(),
            has_head: AtomicBool::default(),
            unread_body: AtomicBool::default(),
            head: Mutex::default(),
        };
        let turn = Turn(Arc::new(inner));
        turn.enter(Phase::Silent, milliseconds());
        turn
    }

    /// A head has come. Returns whether its bytes are known: those of a pipelined request are not.
    pub(super) fn take(&self) -> bool {
        self.enter(Phase::Server, 0);
        if self.0.unread_body.load(Ordering::Relaxed) {
            self.0.unread_body.store(false, Ordering::Relaxed);
        }
        self.0.has_head.swap(false, Ordering::Relaxed)
    }

    /// Whether the head that came last has a `Content-Length`.
    pub(super) fn head_has_length(&self) -> bool {
        let head = self.head();
        head.bytes.split(|byte| *byte == b'\n').skip(1).any(|line| {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            name.trim_ascii().eq_ignore_ascii_case(b"content-length")
        })
    }

    /// How early this connection is evicted; `None` while it is in use. In the reserve, an incomplete head gains nothing
    /// over silence, and the order is that of arrival.
    pub(super) fn eviction_rank(&self, is_provisional: bool) -> Option<EvictionRank> {
        match self.phase() {
            (Phase::Server, _) | (Phase::Head, NOT_WAITED) => None,
            (Phase::Linger, since) => Some((0, since)),
            (Phase::Silent | Phase::Head, _) if is_provisional => Some((1, 0)),
            (Phase::Silent, since) => Some((1, since)),
            (Phase::Head, since) => Some((2, since)),
            (Phase::Idle, since) => Some((3, since)),
        }
    }

    /// Whether the client has connected or begun a head just now, and may have sent bytes that are not read yet.
    pub(super) fn is_fresh(&self, now: u64) -> bool {
        let (phase, since) = self.phase();
        matches!(phase, Phase::Silent | Phase::Head) && Duration::from_millis(now.saturating_sub(since)) < FRESH
    }

    /// Whether the connection can be dropped at once: it has no request to answer, and hyper would wait for its client.
    pub(super) fn is_stalled(&self, is_provisional: bool) -> bool {
        match self.phase() {
            (Phase::Linger, _) => true,
            (Phase::Head, NOT_WAITED) => false,
            (Phase::Head, _) => is_provisional || !self.is_fresh(milliseconds()),
            _ => false,
        }
    }

    fn give_back(&self) {
        self.enter(Phase::Idle, milliseconds());
    }

    fn wait(&self) -> Option<Wait> {
        match self.phase().0 {
            Phase::Silent | Phase::Head => Some(Wait::Head),
            Phase::Server | Phase::Linger => None,
            Phase::Idle => Some(Wait::NextRequest),
        }
    }

    fn enter(&self, phase: Phase, since: u64) {
        self.0.phase.store(((phase as u64) << PHASE_SHIFT) | (since & SINCE_MASK), Ordering::Relaxed);
    }

    fn phase(&self) -> (Phase, u64) {
        let word = self.0.phase.load(Ordering::Relaxed);
        let phase = match word >> PHASE_SHIFT {
            0 => Phase::Silent,
            1 => Phase::Head,
            2 => Phase::Server,
            3 => Phase::Idle,
            _ => Phase::Linger,
        };
        (phase, word & SINCE_MASK)
    }

    /// Locked by the connection's own task alone, and never across an await.
    fn head(&self) -> MutexGuard<'_, RawHead> {
        self.0.head.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The time, as phases tell it.
pub(super) fn milliseconds() -> u64 {
    u64::try_from(START.elapsed().as_millis()).unwrap_or(SINCE_MASK) & SINCE_MASK
}

// === impl RawHead ===

impl RawHead {
    fn clear(&mut self) {
        self.bytes.clear();
        self.is_complete = false;
    }

    fn add(&mut self, bytes: &[u8], most: usize) {
        if self.is_complete {
            return;
        }
        // Empty lines before a request are allowed.
        let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let leading = if self.bytes.is_empty() { bytes.iter().take_while(|byte| is_line_end(byte)).count() } else { 0 };
        let seen = self.bytes.len().saturating_sub(3);
        self.bytes.extend_from_slice(&bytes[leading..]);
        let end = memchr::memchr_iter(b'\n', &self.bytes[seen..]).find(|at| {
            let rest = &self.bytes[seen + at + 1..];
            rest.starts_with(b"\n") || rest.starts_with(b"\r\n")
        });
        match end {
            Some(at) => self.bytes.truncate(seen + at + 1),
            None if self.bytes.len() > most => {}
            None => return,
        }
        self.is_complete = true;
    }
}

// === impl ReadDeadline ===

impl<S> ReadDeadline<S> {
    pub(super) fn new(stream: S, turn: Turn, for_head: Duration, limits: &Limits) -> ReadDeadline<S> {
        let (for_next_request, max_head) = (limits.idle_timeout, limits.max_header_bytes);
        ReadDeadline { stream, turn, for_head, for_next_request, max_head, timed: None, timer: None, linger: None }
    }

    /// Bytes have come. The first of a request begin its head, which is due from now on.
    fn came(&mut self, bytes: &[u8]) {
        let phase = self.turn.phase().0;
        match phase {
            Phase::Silent | Phase::Idle => {
                self.turn.enter(Phase::Head, NOT_WAITED);
                if phase == Phase::Idle {
                    self.timed = None;
                }
                let mut head = self.turn.head();
                head.clear();
                head.add(bytes, self.max_head);
                self.turn.0.has_head.store(true, Ordering::Relaxed);
            }
            Phase::Head => self.turn.head().add(bytes, self.max_head),
            Phase::Server | Phase::Linger => {}
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
        // hyper does not read again after an answer when it has found nothing to read before; so the time is set here.
        match self.overdue(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            if !self.turn.0.unread_body.load(Ordering::Relaxed) {
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
    /// The body of a request on a connection.
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
        if !self.ended && !self.body.is_end_stream() {
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
            turn.give_back();
            if let Some(place) = &self.forwarded {
                place.release_client();
            }
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

    #[test]
    fn s10_silent_connections_go_first_then_stalled_heads_then_idle_ones() {
        let (silent, stalled, idle, lingering) = (Turn::new(), Turn::new(), Turn::new(), Turn::new());
        for (turn, phase) in [(&stalled, Phase::Head), (&idle, Phase::Idle), (&lingering, Phase::Linger)] {
            turn.enter(phase, 0);
        }
        let ranks = [&lingering, &silent, &stalled, &idle].map(|turn| turn.eviction_rank(false).expect("evictable"));
        assert!(ranks.is_sorted(), "{ranks:?}");
        let (begun, busy) = (Turn::new(), Turn::new());
        begun.enter(Phase::Head, NOT_WAITED);
        busy.take();
        for is_provisional in [false, true] {
            assert_eq!((begun.eviction_rank(is_provisional), busy.eviction_rank(is_provisional)), (None, None));
        }
        assert_eq!(silent.eviction_rank(true), stalled.eviction_rank(true), "in the order of arrival");
    }

    #[test]
    fn s10_a_begun_head_is_fresh_for_as_long_as_a_new_connection() {
        let (begun, idle) = (Turn::new(), Turn::new());
        begun.enter(Phase::Head, 1000);
        idle.enter(Phase::Idle, 1000);
        assert!(begun.is_fresh(1199) && !begun.is_fresh(1200) && !idle.is_fresh(1000));
        begun.enter(Phase::Head, NOT_WAITED);
        assert!(begun.is_fresh(5000) && !begun.is_stalled(false) && !begun.is_stalled(true));
        begun.enter(Phase::Head, milliseconds());
        assert!(begun.is_stalled(true) && !idle.is_stalled(true), "no grace in the reserve");
    }

    #[test]
    fn s10_a_length_is_seen_in_a_head_however_it_is_cut() {
        let head = b"\r\nPOST / HTTP/1.1\r\nhost: a\r\nCONTENT-LENGTH : 3\r\n\r\nbody";
        for cut in 0..head.len() {
            let turn = Turn::new();
            for part in [&head[..cut], &head[cut..]] {
                turn.head().add(part, 1000);
            }
            assert!(turn.head_has_length(), "{cut}");
            assert!(turn.head().bytes.ends_with(b"3\r\n"), "{cut}");
        }
        for other in ["GET /\nx: content-length: 1\n\n", "POST /\r\nx: y\r\n\r\ncontent-length: 3\r\n"] {
            let turn = Turn::new();
            turn.head().add(other.as_bytes(), 1000);
            assert!(!turn.head_has_length(), "{other}");
        }
    }
}
