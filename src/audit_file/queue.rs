//! Lines on their way to the file. Adding one takes a lock for a moment, and wakes the writer only if it sleeps.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Line;
use crate::locked::locked;

#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// There is something to do for the writer.
    news: Condvar,
    /// The writer has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<Line>,
    is_closed: bool,
    has_ended: bool,
}

/// What the writer is handed.
pub(super) struct Batch {
    pub(super) lines: Vec<Line>,
    /// Nothing comes after it.
    pub(super) is_last: bool,
}

/// Lines that wait at most; a disk that is slower than this for long loses some.
const MOST: usize = 16_384;
/// From so many on, the writer is not waited for.
const MANY: usize = MOST / 4;
/// How long lines are gathered before they are written together.
const GATHER: Duration = Duration::from_millis(20);

impl Queue {
    /// Tells whether there was room.
    pub(super) fn add(&self, line: Line) -> bool {
        let mut state = locked(&self.state);
        if state.lines.len() >= MOST || state.is_closed {
            return false;
        }
        state.lines.push(line);
        // The writer sleeps when nothing is there, and gathers when something is.
        if state.lines.len() == 1 || state.lines.len() == MANY {
            self.news.notify_one();
        }
        true
    }

    /// Waits for lines, and gathers those that follow. After `at_most`, it may be none.
    pub(super) fn take(&self, at_most: Duration) -> Batch {
        let recovered = PoisonError::into_inner;
        let until = Instant::now() + at_most;
        let mut state = locked(&self.state);
        while state.lines.is_empty() && !state.is_closed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.news.wait_timeout(state, left).unwrap_or_else(recovered).0;
        }
        let gathered = |state: &mut State| !state.is_closed && !state.lines.is_empty() && state.lines.len() < MANY;
        let (mut state, _) = self.news.wait_timeout_while(state, GATHER, gathered).unwrap_or_else(recovered);
        Batch { lines: std::mem::take(&mut state.lines), is_last: state.is_closed }
    }

    /// The writer is done.
    pub(super) fn end(&self) {
        locked(&self.state).has_ended = true;
        self.ended.notify_all();
    }

    /// Takes no more, and waits for the writer; false if that took too long.
    pub(super) fn finish(&self, patience: Duration) -> bool {
        let mut state = locked(&self.state);
        state.is_closed = true;
        self.news.notify_one();
        let going_on = |state: &mut State| !state.has_ended;
        let (state, _) =
            self.ended.wait_timeout_while(state, patience, going_on).unwrap_or_else(PoisonError::into_inner);
        state.has_ended
    }
}
