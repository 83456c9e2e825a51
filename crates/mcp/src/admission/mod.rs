//! Admission control: a bounded number of requests executes concurrently, further ones are queued fairly, and requests
//! that would wait too long are shed immediately with a retry hint (S-09).
//!
//! Early load shedding keeps an overloaded server useful: it answers admitted requests in time. `turns` decides the
//! order; this module implements the waiting and releases slots however a request ends.

mod counts;
mod turns;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use self::counts::{Counts, Why};
use self::turns::{Asked, Bounds, Ticket, Turns};
use crate::error::Error;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::server::Server;
use crate::trust::{Caller, Via};

/// Admission control of a server. Cheap to clone; all clones share their state.
#[derive(Debug, Clone)]
pub(crate) struct Admission(Arc<Door>);

#[derive(Debug)]
struct Door {
    /// Held for a few lookups, never across an await.
    turns: Mutex<Turns<oneshot::Sender<()>>>,
    max_queue_wait: Duration,
    counts: Counts,
}

/// The permit of an executing request. Dropping it admits the next one.
#[derive(Debug)]
pub struct Slot {
    admission: Admission,
    caller: Arc<str>,
    since: Instant,
}

/// The result of requesting a slot.
pub(crate) enum Entered {
    Runs(Slot),
    Waits(Waiting),
}

/// A queued request. Dropping it leaves the queue.
pub(crate) struct Waiting {
    admission: Admission,
    caller: Arc<str>,
    ticket: Ticket,
    woken: oneshot::Receiver<()>,
    since: Instant,
    /// The slot was taken over by a [`Slot`].
    is_over: bool,
}

/// Range of retry hints: with a shorter one nothing would have changed; after a longer one the server may have been
/// restarted.
const SHORTEST_HINT: Duration = Duration::from_millis(100);
const LONGEST_HINT: Duration = Duration::from_secs(60);

impl Server {
    /// Acquires a slot, waiting in the queue if necessary, for routes that a program serves. In-process calls need
    /// none: the request they belong to has one.
    pub async fn admit(&self, caller: &Caller) -> Result<Option<Slot>, Error> {
        match self.enter(caller)? {
            None => Ok(None),
            Some(Entered::Runs(slot)) => Ok(Some(slot)),
            Some(Entered::Waits(waiting)) => waiting.turn().await.map(Some),
        }
    }

    /// Acquires or queues without waiting, so that requests with a free slot take a short path.
    pub(crate) fn enter(&self, caller: &Caller) -> Result<Option<Entered>, Error> {
        match caller.via {
            Via::Internal => Ok(None),
            _ => self.inner().admission.enter(&caller.identity).map(Some),
        }
    }
}

impl Admission {
    pub(crate) fn new(limits: &Limits, metrics: &Metrics) -> Admission {
        let bounds = Bounds {
            running: limits.max_concurrent,
            running_per_caller: limits.max_concurrent_per_caller,
            waiting: limits.max_queued,
        };
        let counts = Counts::default();
        metrics.register(|registry| counts.register(registry));
        Admission(Arc::new(Door {
            turns: Mutex::new(Turns::new(bounds)),
            max_queue_wait: limits.max_queue_wait,
            counts,
        }))
    }

    fn enter(&self, caller: &Arc<str>) -> Result<Entered, Error> {
        let mut turns = self.turns();
        match turns.ask(caller, self.0.max_queue_wait) {
            Asked::Runs => {
                self.show(&turns);
                drop(turns);
                Ok(Entered::Runs(Slot { admission: self.clone(), caller: caller.clone(), since: Instant::now() }))
            }
            Asked::MayWait => {
                let (wake, woken) = oneshot::channel();
                let ticket = turns.wait(caller, wake);
                self.show(&turns);
                drop(turns);
                let (admission, caller) = (self.clone(), caller.clone());
                Ok(Entered::Waits(Waiting { admission, caller, ticket, woken, since: Instant::now(), is_over: false }))
            }
            Asked::QueueFull => Err(self.shed(&turns, caller, Why::QueueFull)),
            Asked::TooLate => Err(self.shed(&turns, caller, Why::ExpectedWait)),
        }
    }

    /// Counts a request shed for lack of body memory, which is accounted elsewhere.
    pub(crate) fn out_of_body_memory(&self) {
        self.0.counts.shed(Why::BodyMemory);
    }

    fn shed(&self, turns: &Turns<oneshot::Sender<()>>, caller: &Arc<str>, why: Why) -> Error {
        self.0.counts.shed(why);
        let (bounds, most) = (turns.bounds(), self.0.max_queue_wait.as_secs_f64());
        let message = match why {
            Why::QueueFull => format!(
                "the server is busy: {} requests are worked on and {} wait already",
                turns.running(),
                turns.waiting()
            ),
            _ => format!(
                "the server is busy: no turn within {most} s, with {} requests worked on of {}, at most {} of one caller",
                turns.running(),
                bounds.running,
                bounds.running_per_caller
            ),
        };
        let wait = turns.expected_wait(caller).unwrap_or(self.0.max_queue_wait);
        Error::busy(message, wait.clamp(SHORTEST_HINT, LONGEST_HINT))
    }

    /// Passes a slot on. A receiver that was dropped passes it on in turn.
    fn leave(&self, caller: &Arc<str>, held: Option<Duration>) {
        let mut turns = self.turns();
        let next = turns.leave(caller, held);
        self.show(&turns);
        drop(turns);
        if let Some(wake) = next {
            let _ = wake.send(());
        }
    }

    fn turns(&self) -> MutexGuard<'_, Turns<oneshot::Sender<()>>> {
        self.0.turns.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn show(&self, turns: &Turns<oneshot::Sender<()>>) {
        self.0.counts.show(turns.running(), turns.waiting());
    }
}

impl Waiting {
    /// Waits for a slot, at most `max_queue_wait`.
    pub(crate) async fn turn(mut self) -> Result<Slot, Error> {
        let door = self.admission.0.clone();
        let woken = tokio::time::timeout(door.max_queue_wait, &mut self.woken).await;
        door.counts.waited(self.since.elapsed());
        if !matches!(woken, Ok(Ok(()))) {
            let turns = self.admission.turns();
            return Err(self.admission.shed(&turns, &self.caller, Why::Waited));
        }
        self.is_over = true;
        Ok(Slot { admission: self.admission.clone(), caller: self.caller.clone(), since: Instant::now() })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut turns = self.admission.turns();
        let gave_up = turns.give_up(&self.caller, self.ticket);
        self.admission.show(&turns);
        drop(turns);
        // The slot was granted while the request was being dropped.
        if !gave_up {
            self.admission.leave(&self.caller, None);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.admission.leave(&self.caller, Some(self.since.elapsed()));
    }
}

#[cfg(test)]
mod tests;
