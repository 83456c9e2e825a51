//! Phase of a connection (reading a head, processing a request, idle, lingering), shared by its stream, its bodies and
//! the connection limiter.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Instant;

use tokio_util::task::TaskTracker;

use super::request_framing::RequestFraming;

/// State of a connection. Shared by its stream, its bodies, and the connection limiter.
#[derive(Debug, Clone)]
pub(super) struct ConnectionPhase(Arc<Inner>);

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
    /// Requests in progress after an upgrade.
    running: OnceLock<TaskTracker>,
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
    /// Switched to another protocol, which has separate limits; since its last message.
    Upgraded,
}

/// Message that the client has to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AwaitedInput {
    Head,
    NextRequest,
}

/// Reference point of timestamps.
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

const PHASE_SHIFT: u32 = 56;
const SINCE_MASK: u64 = (1 << PHASE_SHIFT) - 1;
/// Timestamp of a head that was read without waiting.
pub(super) const NOT_WAITED: u64 = SINCE_MASK;

// === impl ConnectionPhase ===

impl ConnectionPhase {
    /// The deadline of the first request starts immediately.
    pub(super) fn new() -> ConnectionPhase {
        let inner = Inner {
            phase: AtomicU64::default(),
            requests: AtomicU64::default(),
            clear_heads: AtomicU64::default(),
            arrived: AtomicU64::default(),
            unread_body: AtomicBool::default(),
            aborted: AtomicBool::default(),
            running: OnceLock::new(),
        };
        let phase = ConnectionPhase(Arc::new(inner));
        phase.enter(Phase::Silent, milliseconds());
        phase
    }

    /// Records a complete head. Returns the number of requests before it on this connection.
    pub(super) fn start_request(&self) -> u64 {
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

    /// Records a request body that was dropped before its end.
    pub(super) fn set_unread_body(&self) {
        self.0.unread_body.store(true, Ordering::Relaxed);
    }

    /// Records how far the requests on this connection have arrived.
    pub(super) fn record_framing(&self, framing: &RequestFraming) {
        self.0.clear_heads.store(framing.heads(), Ordering::Relaxed);
        self.0.arrived.store(framing.requests(), Ordering::Relaxed);
    }

    /// Whether the current request has arrived completely.
    pub(super) fn has_arrived(&self) -> bool {
        self.0.arrived.load(Ordering::Relaxed) >= self.requests()
    }

    /// Evicts the connection even if a request is in progress.
    pub(super) fn abort(&self) {
        self.0.aborted.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_aborted(&self) -> bool {
        self.0.aborted.load(Ordering::Relaxed)
    }

    /// Records a message after an upgrade.
    pub(super) fn record_message(&self) {
        self.enter(Phase::Upgraded, milliseconds());
    }

    pub(super) fn is_upgraded(&self) -> bool {
        self.phase().0 == Phase::Upgraded
    }

    /// Sets the requests in progress after an upgrade.
    pub(super) fn set_running(&self, requests: TaskTracker) {
        let _ = self.0.running.set(requests);
    }

    /// Whether a request is in progress after an upgrade.
    pub(super) fn has_running(&self) -> bool {
        self.0.running.get().is_some_and(|requests| !requests.is_empty())
    }

    pub(super) fn set_idle(&self) {
        self.enter(Phase::Idle, milliseconds());
    }

    pub(super) fn awaited_input(&self) -> Option<AwaitedInput> {
        match self.phase().0 {
            Phase::Silent | Phase::Head => Some(AwaitedInput::Head),
            Phase::Server | Phase::Flush | Phase::Linger | Phase::Upgraded => None,
            Phase::Idle => Some(AwaitedInput::NextRequest),
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
    u64::try_from(EPOCH.elapsed().as_millis()).unwrap_or(SINCE_MASK) & SINCE_MASK
}
