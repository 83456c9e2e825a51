//! Fair queue: running and queued requests, order, and expected wait. No clock, no wakers.
//!
//! Each caller has its own FIFO queue. Callers are served round-robin, one request each, so that a caller with a
//! thousand queued requests does not delay one with a single request.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Admission limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Concurrently executing requests.
    pub(super) running: usize,
    /// Concurrently executing requests of one caller.
    pub(super) running_per_caller: usize,
    /// Queued requests of all callers.
    pub(super) waiting: usize,
}

/// All running and queued requests; `W` is the waker of a queued one.
#[derive(Debug)]
pub(super) struct Turns<W> {
    bounds: Bounds,
    running: usize,
    waiting: usize,
    /// Callers with running or queued requests only.
    callers: HashMap<Arc<str>, Line<W>, foldhash::fast::RandomState>,
    /// Callers with a queued request that may run once a slot is free, in round-robin order.
    round: VecDeque<Arc<str>>,
    last_ticket: u64,
    /// Moving average of how long a request holds its slot.
    usual: Option<Duration>,
}

/// The requests of one caller.
#[derive(Debug)]
struct Line<W> {
    running: usize,
    waiting: VecDeque<(Ticket, W)>,
}

/// Identifies a queued request. Later ones are larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// The result for a new request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// It has a slot.
    Runs,
    /// No slot yet; it should wait.
    MayWait,
    /// The queue is full.
    QueueFull,
    /// Its expected wait is too long.
    TooLate,
}

/// Weight of the newest sample in the moving average: the last few dozen dominate.
const NEWEST: u32 = 16;

impl<W> Turns<W> {
    pub(super) fn new(bounds: Bounds) -> Turns<W> {
        let at_least_one = |bound: usize| bound.max(1);
        let running = at_least_one(bounds.running);
        let running_per_caller = at_least_one(bounds.running_per_caller).min(running);
        Turns {
            bounds: Bounds { running, running_per_caller, ..bounds },
            running: 0,
            waiting: 0,
            callers: HashMap::default(),
            round: VecDeque::new(),
            last_ticket: 0,
            usual: None,
        }
    }

    pub(super) fn bounds(&self) -> Bounds {
        self.bounds
    }

    pub(super) fn running(&self) -> usize {
        self.running
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Takes a slot for this caller if one is free; otherwise returns whether to wait.
    pub(super) fn ask(&mut self, caller: &Arc<str>, patience: Duration) -> Asked {
        // While a slot is free, no queued request is eligible for it: it would have been granted already.
        if self.running < self.bounds.running {
            match self.callers.get_mut(caller) {
                Some(line) if line.running >= self.bounds.running_per_caller => {}
                Some(line) => {
                    line.running += 1;
                    self.running += 1;
                    return Asked::Runs;
                }
                None => {
                    self.callers.insert(caller.clone(), Line { running: 1, waiting: VecDeque::new() });
                    self.running += 1;
                    return Asked::Runs;
                }
            }
        }
        if self.waiting >= self.bounds.waiting {
            return Asked::QueueFull;
        }
        match self.expected_wait(caller).is_some_and(|wait| wait > patience) {
            true => Asked::TooLate,
            false => Asked::MayWait,
        }
    }

    /// Expected wait of a request of this caller; `None` before the first request has ended.
    ///
    /// Slots become free one after the other, so the n-th becomes free after n times the mean hold time divided by
    /// their number. Ahead of the request are the requests in the same queue and, from every other queue, one per
    /// round-robin round.
    pub(super) fn expected_wait(&self, caller: &Arc<str>) -> Option<Duration> {
        let usual = self.usual?;
        let own = self.callers.get(caller);
        let rounds = own.map_or(0, |line| line.waiting.len()) + 1;
        let lines = self.round.iter().filter(|other| *other != caller).filter_map(|other| self.callers.get(other));
        let before: usize = lines.map(|line| line.waiting.len().min(rounds)).sum();
        let place_by_place = |turns: usize, places: usize| usual.mul_f64(turns as f64 / places as f64);
        let among_all = match self.running < self.bounds.running {
            // Only the per-caller limit delays it.
            true => Duration::ZERO,
            false => place_by_place(before + rounds, self.bounds.running),
        };
        let is_at_its_bound = own.is_some_and(|line| line.running >= self.bounds.running_per_caller);
        let among_its_own = match is_at_its_bound {
            true => place_by_place(rounds, self.bounds.running_per_caller),
            false => Duration::ZERO,
        };
        Some(among_all.max(among_its_own))
    }

    /// Queues a request for which [`Turns::ask`] had no slot.
    pub(super) fn wait(&mut self, caller: &Arc<str>, waker: W) -> Ticket {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        let line = self.callers.entry(caller.clone()).or_insert_with(|| Line { running: 0, waiting: VecDeque::new() });
        line.waiting.push_back((ticket, waker));
        self.waiting += 1;
        if line.waiting.len() == 1 && line.running < self.bounds.running_per_caller {
            self.round.push_back(caller.clone());
        }
        ticket
    }

    /// Releases a slot and grants it to the next request, which the caller has to wake.
    ///
    /// `held` is how long the slot was held; `None` for a request that never started.
    pub(super) fn leave(&mut self, caller: &Arc<str>, held: Option<Duration>) -> Option<W> {
        if let Some(held) = held {
            self.usual = Some(self.usual.map_or(held, |usual| (usual * (NEWEST - 1) + held) / NEWEST));
        }
        let line = self.callers.get_mut(caller)?;
        line.running -= 1;
        self.running -= 1;
        let was_at_its_bound = line.running + 1 == self.bounds.running_per_caller;
        if line.waiting.is_empty() {
            self.forget_idle(caller);
        } else if was_at_its_bound {
            self.round.push_back(caller.clone());
        }
        self.begin_next()
    }

    /// Removes a queued request. False if it was granted a slot already, which it then has to release.
    pub(super) fn give_up(&mut self, caller: &Arc<str>, ticket: Ticket) -> bool {
        let Some(line) = self.callers.get_mut(caller) else { return false };
        let Ok(place) = line.waiting.binary_search_by_key(&ticket, |(ticket, _)| *ticket) else { return false };
        line.waiting.remove(place);
        self.waiting -= 1;
        if line.waiting.is_empty() {
            self.round.retain(|other| other != caller);
            self.forget_idle(caller);
        }
        true
    }

    fn begin_next(&mut self) -> Option<W> {
        if self.running >= self.bounds.running {
            return None;
        }
        let caller = self.round.pop_front()?;
        let line = self.callers.get_mut(&caller)?;
        let (_, waker) = line.waiting.pop_front()?;
        line.running += 1;
        self.running += 1;
        self.waiting -= 1;
        if !line.waiting.is_empty() && line.running < self.bounds.running_per_caller {
            self.round.push_back(caller);
        }
        Some(waker)
    }

    fn forget_idle(&mut self, caller: &Arc<str>) {
        if self.callers.get(caller).is_some_and(|line| line.running == 0 && line.waiting.is_empty()) {
            self.callers.remove(caller);
        }
    }
}

#[cfg(test)]
mod tests;
