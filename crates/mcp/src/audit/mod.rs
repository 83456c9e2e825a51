//! Audit log: caller, target and outcome of every call (M-98). Arguments are recorded only as a keyed hash.

mod entry;

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

pub use entry::{AuditEntry, AuditEvent, AuditOutcome};

use crate::error::Error;
use crate::error_code::ErrorCode;
use crate::trace::RequestId;
use crate::trust::{Caller, Effect};

/// Ring of the latest calls and events, oldest first; every record also goes to the sink, if configured.
#[derive(Debug)]
pub struct AuditLog {
    capacity: usize,
    /// Keyed per process, so that a hash only reveals repeated arguments. The standard library's hasher would take a
    /// millisecond for a megabyte of arguments.
    hasher: foldhash::quality::RandomState,
    entries: Mutex<VecDeque<AuditEntry>>,
    events: Mutex<VecDeque<AuditEvent>>,
    rejections: Mutex<RejectionWindow>,
    recorded: AtomicU64,
    sink: Option<Arc<dyn AuditSink>>,
}

/// Persistent destination, such as a file. Called on the path of every call, so it must not block.
pub trait AuditSink: std::fmt::Debug + Send + Sync + 'static {
    fn record_call(&self, entry: &AuditEntry);

    fn record_event(&self, event: &AuditEvent);

    /// Entries lost since the start.
    fn lost(&self) -> u64;

    /// Why the sink cannot store entries at present, if so.
    fn error(&self) -> Option<String>;

    /// Whether mutating and destructive calls are rejected while the sink fails.
    fn is_required(&self) -> bool {
        false
    }
}

/// Maximum rejection events recorded per second. Token guessing must not fill the disk.
const MAX_REJECTIONS_PER_SECOND: u32 = 20;
/// Maximum number of events in memory.
const MAX_EVENTS: usize = 1000;

/// Rejection events in the current second.
#[derive(Debug)]
struct RejectionWindow {
    since: Instant,
    recorded: u32,
    omitted: u64,
}

/// A finished call.
pub(crate) struct FinishedCall<'a> {
    pub(crate) tool: &'a Arc<str>,
    /// See [`AuditLog::hash`]; `None` where the arguments were not read.
    pub(crate) arguments_hash: Option<u64>,
    pub(crate) caller: &'a Caller,
    pub(crate) request: &'a RequestId,
    pub(crate) outcome: AuditOutcome,
    pub(crate) duration: Duration,
}

impl AuditLog {
    pub(crate) fn new(capacity: usize, sink: Option<Arc<dyn AuditSink>>) -> AuditLog {
        AuditLog {
            capacity,
            hasher: foldhash::quality::RandomState::default(),
            entries: Mutex::default(),
            events: Mutex::default(),
            rejections: Mutex::new(RejectionWindow { since: Instant::now(), recorded: 0, omitted: 0 }),
            recorded: AtomicU64::new(0),
            sink,
        }
    }

    /// Keyed hash of arguments.
    pub(crate) fn hash(&self, arguments: &str) -> u64 {
        self.hasher.hash_one(arguments)
    }

    pub(crate) fn record(&self, ended: FinishedCall<'_>) {
        let entry = AuditEntry {
            time: SystemTime::now(),
            request_id: ended.request.clone(),
            tool: ended.tool.clone(),
            arguments_hash: ended.arguments_hash,
            outcome: ended.outcome,
            trust: ended.caller.trust,
            via: ended.caller.transport,
            caller: ended.caller.identity.clone(),
            duration_us: ended.duration.as_micros().try_into().unwrap_or(u64::MAX),
        };
        self.recorded.fetch_add(1, Ordering::Relaxed);
        if let Some(sink) = &self.sink {
            sink.record_call(&entry);
        }
        push_bounded(&mut lock(&self.entries), entry, self.capacity);
    }

    /// Records an event that is not a call: an action of the operator, such as a start or a revoked token.
    pub fn record_event(&self, event: AuditEvent) {
        self.recorded.fetch_add(1, Ordering::Relaxed);
        if let Some(sink) = &self.sink {
            sink.record_event(&event);
        }
        push_bounded(&mut lock(&self.events), event, self.capacity.min(MAX_EVENTS));
    }

    /// Records a rejection event, subject to the rate limit.
    pub(crate) fn record_rejection(&self, mut event: AuditEvent) {
        {
            let mut strangers = lock(&self.rejections);
            if strangers.since.elapsed() >= Duration::from_secs(1) {
                (strangers.since, strangers.recorded) = (Instant::now(), 0);
            }
            if strangers.recorded >= MAX_REJECTIONS_PER_SECOND {
                strangers.omitted += 1;
                return;
            }
            strangers.recorded += 1;
            event.omitted = std::mem::take(&mut strangers.omitted);
        }
        self.record_event(event);
    }

    /// The newest `count` entries, newest first.
    pub fn latest(&self, count: usize) -> Vec<AuditEntry> {
        lock(&self.entries).iter().rev().take(count).cloned().collect()
    }

    /// The newest `count` events, newest first.
    pub fn latest_events(&self, count: usize) -> Vec<AuditEvent> {
        lock(&self.events).iter().rev().take(count).cloned().collect()
    }

    pub fn len(&self) -> usize {
        lock(&self.entries).len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls and events since the start, including those no longer in memory.
    pub fn recorded(&self) -> u64 {
        self.recorded.load(Ordering::Relaxed)
    }

    /// Entries the sink lost.
    pub fn lost(&self) -> u64 {
        self.sink.as_ref().map_or(0, |sink| sink.lost())
    }

    /// Why the sink cannot store entries at present, if configured and failing.
    pub fn sink_error(&self) -> Option<String> {
        self.sink.as_ref().and_then(|sink| sink.error())
    }

    /// Whether a sink is configured.
    pub fn has_sink(&self) -> bool {
        self.sink.is_some()
    }

    /// Rejects mutating calls while a required sink cannot record them.
    pub(crate) fn check_writable(&self, effect: Effect) -> Result<(), Error> {
        let Some(sink) = self.sink.as_ref().filter(|sink| effect != Effect::Reads && sink.is_required()) else {
            return Ok(());
        };
        match sink.error() {
            None => Ok(()),
            Some(_) => Err(Error::Other {
                code: ErrorCode::Configuration,
                message: "the audit log is not writable, so calls that change state are refused; see the server log \
                    for the reason"
                    .into(),
                error_type: "AuditUnavailable",
                data: None,
            }),
        }
    }
}

/// Hold for a push and a pop only, never across an await.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn push_bounded<T>(kept: &mut VecDeque<T>, new: T, most: usize) {
    if kept.len() >= most {
        kept.pop_front();
    }
    kept.push_back(new);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::{Transport, TrustLevel};

    fn record(log: &AuditLog, arguments: &str) {
        log.record(FinishedCall {
            tool: &"echo".into(),
            arguments_hash: Some(log.hash(arguments)),
            caller: &Caller::new(Transport::Stdio, "stdio", TrustLevel::Trusted),
            request: &RequestId::new(),
            outcome: AuditOutcome::Success,
            duration: Duration::from_micros(7),
        });
    }

    #[test]
    fn m98_the_log_is_bounded_and_hides_arguments() {
        let log = AuditLog::new(2, None);
        for text in ["first", "second", "second"] {
            record(&log, text);
        }
        let latest = log.latest(10);
        assert_eq!((latest.len(), log.recorded()), (2, 3));
        assert_eq!(latest[0].arguments_hash, latest[1].arguments_hash);
        assert!(!serde_json::to_string(&latest).expect("json").contains("second"));
    }

    #[test]
    fn m98_strangers_are_kept_up_to_a_rate_and_counted_beyond() {
        let log = AuditLog::new(10_000, None);
        for _ in 0..1000 {
            log.record_rejection(AuditEvent::new("authentication_failed").by("192.0.2.1"));
        }
        let kept = log.latest_events(1000);
        assert!(kept.len() < 500, "{}", kept.len());
        let omitted: u64 = kept.iter().map(|event| event.omitted).sum();
        assert_eq!(kept.len() as u64 + omitted + lock(&log.rejections).omitted, 1000);
    }

    #[test]
    fn m98_what_strangers_say_is_cut_short() {
        let event = AuditEvent::new("origin_refused").detail("ä".repeat(300));
        assert!(event.detail.is_some_and(|detail| detail.len() <= 256));
    }
}
