//! Bounded queue of audit entries. Adding an entry holds a lock briefly, and wakes the writer only if it sleeps.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::AuditLine;
use crate::util::lock::lock;

#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// Notified when the writer has work.
    work_available: Condvar,
    /// Notified when the writer has ended.
    writer_ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<AuditLine>,
    is_closed: bool,
    has_ended: bool,
}

/// Entries for one write.
pub(super) struct Batch {
    pub(super) lines: Vec<AuditLine>,
    /// Whether the queue is closed and empty afterwards.
    pub(super) is_last: bool,
}

/// Capacity. If the disk is slower for long, entries are lost.
const MAX_QUEUED_LINES: usize = 16_384;
/// Number of entries that wakes the writer before the interval ends.
const FLUSH_THRESHOLD: usize = MAX_QUEUED_LINES / 4;
/// Interval in which entries are collected into one write.
const BATCH_DELAY: Duration = Duration::from_millis(20);

impl Queue {
    /// Returns false if the queue is full or closed.
    pub(super) fn add(&self, line: AuditLine) -> bool {
        let mut state = lock(&self.state);
        if state.lines.len() >= MAX_QUEUED_LINES || state.is_closed {
            return false;
        }
        state.lines.push(line);
        // The writer sleeps while the queue is empty, and collects otherwise.
        if state.lines.len() == 1 || state.lines.len() == FLUSH_THRESHOLD {
            self.work_available.notify_one();
        }
        true
    }

    /// Waits for entries and collects the ones that follow. May return none after `at_most`.
    pub(super) fn next_batch(&self, at_most: Duration) -> Batch {
        let recovered = PoisonError::into_inner;
        let until = Instant::now() + at_most;
        let mut state = lock(&self.state);
        while state.lines.is_empty() && !state.is_closed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.work_available.wait_timeout(state, left).unwrap_or_else(recovered).0;
        }
        let gathered =
            |state: &mut State| !state.is_closed && !state.lines.is_empty() && state.lines.len() < FLUSH_THRESHOLD;
        let (mut state, _) =
            self.work_available.wait_timeout_while(state, BATCH_DELAY, gathered).unwrap_or_else(recovered);
        Batch { lines: std::mem::take(&mut state.lines), is_last: state.is_closed }
    }

    /// Marks the writer as ended.
    pub(super) fn mark_ended(&self) {
        lock(&self.state).has_ended = true;
        self.writer_ended.notify_all();
    }

    /// Closes the queue and waits for the writer. Returns false on timeout.
    pub(super) fn finish(&self, patience: Duration) -> bool {
        let mut state = lock(&self.state);
        state.is_closed = true;
        self.work_available.notify_one();
        let going_on = |state: &mut State| !state.has_ended;
        let (state, _) =
            self.writer_ended.wait_timeout_while(state, patience, going_on).unwrap_or_else(PoisonError::into_inner);
        state.has_ended
    }
}
