//! Fair queue: running and queued requests, order, and expected wait. No clock, no wakers.
//!
//! Each caller has its own FIFO queue. Callers are served round-robin, one request each, so that a caller with a
//! thousand queued requests does not delay one with a single request.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Admission limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueLimits {
    /// Concurrently executing requests.
    pub(super) running: usize,
    /// Concurrently executing requests of one caller.
    pub(super) running_per_caller: usize,
    /// Queued requests of all callers.
    pub(super) waiting: usize,
}

/// All running and queued requests; `W` is the waker of a queued one.
#[derive(Debug)]
pub(super) struct FairQueue<W> {
    limits: QueueLimits,
    running: usize,
    waiting: usize,
    /// Callers with running or queued requests only.
    callers: HashMap<Arc<str>, CallerQueue<W>, foldhash::fast::RandomState>,
    /// Callers with a queued request that may run once a slot is free, in round-robin order.
    round_robin: VecDeque<Arc<str>>,
    last_ticket: u64,
    /// Moving average of how long a request holds its slot.
    mean_hold_time: Option<Duration>,
}

/// The requests of one caller.
#[derive(Debug)]
struct CallerQueue<W> {
    running: usize,
    waiting: VecDeque<(Ticket, W)>,
}

/// Identifies a queued request. Later ones are larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// The result for a new request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AcquireResult {
    /// It has a slot.
    Acquired,
    /// No slot yet; it should wait.
    MustWait,
    /// The queue is full.
    QueueFull,
    /// Its expected wait is too long.
    WaitTooLong,
}

/// Weight of the newest sample in the moving average: the last few dozen dominate.
const EWMA_WINDOW: u32 = 16;

impl<W> FairQueue<W> {
    pub(super) fn new(bounds: QueueLimits) -> FairQueue<W> {
        let at_least_one = |bound: usize| bound.max(1);
        let running = at_least_one(bounds.running);
        let running_per_caller = at_least_one(bounds.running_per_caller).min(running);
        FairQueue {
            limits: QueueLimits { running, running_per_caller, ..bounds },
            running: 0,
            waiting: 0,
            callers: HashMap::default(),
            round_robin: VecDeque::new(),
            last_ticket: 0,
            mean_hold_time: None,
        }
    }

    pub(super) fn limits(&self) -> QueueLimits {
        self.limits
    }

    pub(super) fn running(&self) -> usize {
        self.running
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Takes a slot for this caller if one is free; otherwise returns whether to wait.
    pub(super) fn try_acquire(&mut self, caller: &Arc<str>, patience: Duration) -> AcquireResult {
        // While a slot is free, no queued request is eligible for it: it would have been granted already.
        if self.running < self.limits.running {
            match self.callers.get_mut(caller) {
                Some(line) if line.running >= self.limits.running_per_caller => {}
                Some(line) => {
                    line.running += 1;
                    self.running += 1;
                    return AcquireResult::Acquired;
                }
                None => {
                    self.callers.insert(caller.clone(), CallerQueue { running: 1, waiting: VecDeque::new() });
                    self.running += 1;
                    return AcquireResult::Acquired;
                }
            }
        }
        if self.waiting >= self.limits.waiting {
            return AcquireResult::QueueFull;
        }
        match self.expected_wait(caller).is_some_and(|wait| wait > patience) {
            true => AcquireResult::WaitTooLong,
            false => AcquireResult::MustWait,
        }
    }

    /// Expected wait of a request of this caller; `None` before the first request has ended.
    ///
    /// Slots become free one after the other, so the n-th becomes free after n times the mean hold time divided by
    /// their number. Ahead of the request are the requests in the same queue and, from every other queue, one per
    /// round-robin round.
    pub(super) fn expected_wait(&self, caller: &Arc<str>) -> Option<Duration> {
        let usual = self.mean_hold_time?;
        let own = self.callers.get(caller);
        let rounds = own.map_or(0, |line| line.waiting.len()) + 1;
        let lines =
            self.round_robin.iter().filter(|other| *other != caller).filter_map(|other| self.callers.get(other));
        let before: usize = lines.map(|line| line.waiting.len().min(rounds)).sum();
        let place_by_place = |turns: usize, places: usize| usual.mul_f64(turns as f64 / places as f64);
        let among_all = match self.running < self.limits.running {
            // Only the per-caller limit delays it.
            true => Duration::ZERO,
            false => place_by_place(before + rounds, self.limits.running),
        };
        let is_at_its_bound = own.is_some_and(|line| line.running >= self.limits.running_per_caller);
        let among_its_own = match is_at_its_bound {
            true => place_by_place(rounds, self.limits.running_per_caller),
            false => Duration::ZERO,
        };
        Some(among_all.max(among_its_own))
    }

    /// Queues a request for which [`FairQueue::try_acquire`] had no slot.
    pub(super) fn enqueue(&mut self, caller: &Arc<str>, waker: W) -> Ticket {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        let line =
            self.callers.entry(caller.clone()).or_insert_with(|| CallerQueue { running: 0, waiting: VecDeque::new() });
        line.waiting.push_back((ticket, waker));
        self.waiting += 1;
        if line.waiting.len() == 1 && line.running < self.limits.running_per_caller {
            self.round_robin.push_back(caller.clone());
        }
        ticket
    }

    /// Releases a slot and grants it to the next request, which the caller has to wake.
    ///
    /// `held` is how long the slot was held; `None` for a request that never started.
    pub(super) fn release(&mut self, caller: &Arc<str>, held: Option<Duration>) -> Option<W> {
        if let Some(held) = held {
            self.mean_hold_time =
                Some(self.mean_hold_time.map_or(held, |usual| (usual * (EWMA_WINDOW - 1) + held) / EWMA_WINDOW));
        }
        let line = self.callers.get_mut(caller)?;
        line.running -= 1;
        self.running -= 1;
        let was_at_its_bound = line.running + 1 == self.limits.running_per_caller;
        if line.waiting.is_empty() {
            self.remove_idle(caller);
        } else if was_at_its_bound {
            self.round_robin.push_back(caller.clone());
        }
        self.grant_next()
    }

    /// Removes a queued request. False if it was granted a slot already, which it then has to release.
    pub(super) fn cancel(&mut self, caller: &Arc<str>, ticket: Ticket) -> bool {
        let Some(line) = self.callers.get_mut(caller) else { return false };
        let Ok(place) = line.waiting.binary_search_by_key(&ticket, |(ticket, _)| *ticket) else { return false };
        line.waiting.remove(place);
        self.waiting -= 1;
        if line.waiting.is_empty() {
            self.round_robin.retain(|other| other != caller);
            self.remove_idle(caller);
        }
        true
    }

    fn grant_next(&mut self) -> Option<W> {
        if self.running >= self.limits.running {
            return None;
        }
        let caller = self.round_robin.pop_front()?;
        let line = self.callers.get_mut(&caller)?;
        let (_, waker) = line.waiting.pop_front()?;
        line.running += 1;
        self.running += 1;
        self.waiting -= 1;
        if !line.waiting.is_empty() && line.running < self.limits.running_per_caller {
            self.round_robin.push_back(caller);
        }
        Some(waker)
    }

    fn remove_idle(&mut self, caller: &Arc<str>) {
        if self.callers.get(caller).is_some_and(|line| line.running == 0 && line.waiting.is_empty()) {
            self.callers.remove(caller);
        }
    }
}

#[cfg(test)]
mod tests;
