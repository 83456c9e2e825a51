//! Whose turn it is. Pure: who runs, who waits, who is next and when waiting is pointless; no clock, no waking.
//!
//! Each caller has a line of its own, first come first served. Callers take turns, one request each, so that one with a
//! thousand in its line holds up nobody who has one.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// How much is taken on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Requests that are worked on at once.
    pub(super) running: usize,
    /// The same of one caller.
    pub(super) running_per_caller: usize,
    /// Requests that wait, of all callers.
    pub(super) waiting: usize,
}

/// All that run and all that wait; `W` is how one that waits is woken.
#[derive(Debug)]
pub(super) struct Turns<W> {
    bounds: Bounds,
    running: usize,
    waiting: usize,
    /// Those of whom something runs or waits, and nobody else.
    callers: HashMap<Arc<str>, Line<W>, foldhash::fast::RandomState>,
    /// Callers whose first in line may run as soon as there is a place, the next one first.
    round: VecDeque<Arc<str>>,
    last_ticket: u64,
    /// How long a request holds its place, lately.
    usual: Option<Duration>,
}

/// What one caller has.
#[derive(Debug)]
struct Line<W> {
    running: usize,
    waiting: VecDeque<(Ticket, W)>,
}

/// Names one that waits. Later ones are larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// What becomes of a request that comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// It has a place.
    Runs,
    /// It has none yet, and waiting is worth while.
    MayWait,
    /// Too many wait already.
    QueueFull,
    /// Its turn would come too late.
    TooLate,
}

/// The weight of the newest among recent times: the last few dozen decide.
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

    /// Gives a request its place if there is one for this caller; else says whether it should wait.
    pub(super) fn ask(&mut self, caller: &Arc<str>, patience: Duration) -> Asked {
        // Whenever there is a place, nobody waits who could have it: it would have been given away before.
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

    /// How long a request of this caller would wait; none where nothing has ended yet to tell by.
    ///
    /// The places become free one after the other, so the n-th that becomes free does so after n times the usual time
    /// divided by their number. Before it come those of its own line and, of every other line, as many as rounds pass.
    pub(super) fn expected_wait(&self, caller: &Arc<str>) -> Option<Duration> {
        let usual = self.usual?;
        let own = self.callers.get(caller);
        let rounds = own.map_or(0, |line| line.waiting.len()) + 1;
        let lines = self.round.iter().filter(|other| *other != caller).filter_map(|other| self.callers.get(other));
        let before: usize = lines.map(|line| line.waiting.len().min(rounds)).sum();
        let place_by_place = |turns: usize, places: usize| usual.mul_f64(turns as f64 / places as f64);
        let among_all = match self.running < self.bounds.running {
            // Only its own bound holds it up.
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

    /// Lets a request wait that [`Turns::ask`] had no place for.
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

    /// Takes a place back and gives it to whoever is next, who has to be woken.
    ///
    /// `held` is how long it was held; none for a place whose request was never begun.
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

    /// Somebody stops waiting. False if it has got its place meanwhile, which is then its own to give back.
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
