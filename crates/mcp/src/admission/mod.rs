//! Admission control: a bounded number of requests executes concurrently, further ones are queued fairly, and requests
//! that would wait too long are shed immediately with a retry hint (S-09).
//!
//! Early load shedding keeps an overloaded server useful: it answers admitted requests in time. `fair_queue` decides
//! the order; this module implements the waiting and releases slots however a request ends.

mod fair_queue;
mod metrics;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use self::fair_queue::{AcquireResult, FairQueue, QueueLimits, Ticket};
use self::metrics::{AdmissionMetrics, ShedReason};
use crate::error::Error;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::server::Server;
use crate::trust::{Caller, Transport};

/// Admission control of a server. Cheap to clone; all clones share their state.
#[derive(Debug, Clone)]
pub(crate) struct Admission(Arc<AdmissionState>);

#[derive(Debug)]
struct AdmissionState {
    /// Held for a few lookups, never across an await.
    queue: Mutex<FairQueue<oneshot::Sender<()>>>,
    max_queue_wait: Duration,
    metrics: AdmissionMetrics,
}

/// The permit of an executing request. Dropping it admits the next one.
#[derive(Debug)]
pub struct AdmissionPermit {
    admission: Admission,
    caller: Arc<str>,
    since: Instant,
}

/// The result of requesting a slot.
pub(crate) enum AdmissionResult {
    Admitted(AdmissionPermit),
    Queued(QueuedRequest),
}

/// A queued request. Dropping it leaves the queue.
pub(crate) struct QueuedRequest {
    admission: Admission,
    caller: Arc<str>,
    ticket: Ticket,
    granted: oneshot::Receiver<()>,
    since: Instant,
    /// The slot was taken over by a [`AdmissionPermit`].
    is_granted: bool,
}

/// Range of retry hints: with a shorter one nothing would have changed; after a longer one the server may have been
/// restarted.
const MIN_RETRY_AFTER: Duration = Duration::from_millis(100);
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

impl Server {
    /// Whether a method does work that needs an admission slot. The rest are lookups or have their own bound, so a full
    /// server still answers pings and lists, and accepts cancellations.
    pub(crate) fn needs_admission(&self, method: &str) -> bool {
        matches!(method, "tools/call" | "resources/read" | "prompts/get" | "completion/complete")
            || self.inner().methods.contains_key(method)
    }

    /// Acquires a slot, waiting in the queue if necessary, for routes that a program serves. In-process calls need
    /// none: the request they belong to has one.
    pub async fn admit(&self, caller: &Caller) -> Result<Option<AdmissionPermit>, Error> {
        match self.try_admit(caller)? {
            None => Ok(None),
            Some(AdmissionResult::Admitted(slot)) => Ok(Some(slot)),
            Some(AdmissionResult::Queued(waiting)) => waiting.wait().await.map(Some),
        }
    }

    /// Acquires or queues without waiting, so that requests with a free slot take a short path.
    pub(crate) fn try_admit(&self, caller: &Caller) -> Result<Option<AdmissionResult>, Error> {
        match caller.transport {
            Transport::Internal => Ok(None),
            _ => self.inner().admission.try_admit(&caller.identity).map(Some),
        }
    }
}

impl Admission {
    pub(crate) fn new(limits: &Limits, metrics: &Metrics) -> Admission {
        let bounds = QueueLimits {
            running: limits.max_concurrent,
            running_per_caller: limits.max_concurrent_per_caller,
            waiting: limits.max_queued,
        };
        let counts = AdmissionMetrics::default();
        metrics.register(|registry| counts.register(registry));
        Admission(Arc::new(AdmissionState {
            queue: Mutex::new(FairQueue::new(bounds)),
            max_queue_wait: limits.max_queue_wait,
            metrics: counts,
        }))
    }

    fn try_admit(&self, caller: &Arc<str>) -> Result<AdmissionResult, Error> {
        let mut turns = self.lock_queue();
        match turns.try_acquire(caller, self.0.max_queue_wait) {
            AcquireResult::Acquired => {
                self.update_gauges(&turns);
                drop(turns);
                Ok(AdmissionResult::Admitted(AdmissionPermit {
                    admission: self.clone(),
                    caller: caller.clone(),
                    since: Instant::now(),
                }))
            }
            AcquireResult::MustWait => {
                let (wake, woken) = oneshot::channel();
                let ticket = turns.enqueue(caller, wake);
                self.update_gauges(&turns);
                drop(turns);
                let (admission, caller) = (self.clone(), caller.clone());
                Ok(AdmissionResult::Queued(QueuedRequest {
                    admission,
                    caller,
                    ticket,
                    granted: woken,
                    since: Instant::now(),
                    is_granted: false,
                }))
            }
            AcquireResult::QueueFull => Err(self.shed(&turns, caller, ShedReason::QueueFull)),
            AcquireResult::WaitTooLong => Err(self.shed(&turns, caller, ShedReason::ExpectedWait)),
        }
    }

    /// Counts a request shed for lack of body memory, which is accounted elsewhere.
    pub(crate) fn count_body_memory_shed(&self) {
        self.0.metrics.count_shed(ShedReason::BodyMemory);
    }

    fn shed(&self, turns: &FairQueue<oneshot::Sender<()>>, caller: &Arc<str>, why: ShedReason) -> Error {
        self.0.metrics.count_shed(why);
        let (bounds, most) = (turns.limits(), self.0.max_queue_wait.as_secs_f64());
        let message = match why {
            ShedReason::QueueFull => format!(
                "server is overloaded: {} requests are running and {} are queued",
                turns.running(),
                turns.waiting()
            ),
            _ => format!(
                "server is overloaded: timed out after {most} s in the queue; {} of {} requests are running, with a \
                 maximum of {} for one caller",
                turns.running(),
                bounds.running,
                bounds.running_per_caller
            ),
        };
        let wait = turns.expected_wait(caller).unwrap_or(self.0.max_queue_wait);
        Error::busy(message, wait.clamp(MIN_RETRY_AFTER, MAX_RETRY_AFTER))
    }

    /// Passes a slot on. A receiver that was dropped passes it on in turn.
    fn release(&self, caller: &Arc<str>, held: Option<Duration>) {
        let mut turns = self.lock_queue();
        let next = turns.release(caller, held);
        self.update_gauges(&turns);
        drop(turns);
        if let Some(wake) = next {
            let _ = wake.send(());
        }
    }

    fn lock_queue(&self) -> MutexGuard<'_, FairQueue<oneshot::Sender<()>>> {
        self.0.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn update_gauges(&self, turns: &FairQueue<oneshot::Sender<()>>) {
        self.0.metrics.set_gauges(turns.running(), turns.waiting());
    }
}

impl QueuedRequest {
    /// Waits for a slot, at most `max_queue_wait`.
    pub(crate) async fn wait(mut self) -> Result<AdmissionPermit, Error> {
        let door = self.admission.0.clone();
        let woken = tokio::time::timeout(door.max_queue_wait, &mut self.granted).await;
        door.metrics.observe_wait(self.since.elapsed());
        if !matches!(woken, Ok(Ok(()))) {
            let turns = self.admission.lock_queue();
            return Err(self.admission.shed(&turns, &self.caller, ShedReason::WaitTimeout));
        }
        self.is_granted = true;
        Ok(AdmissionPermit { admission: self.admission.clone(), caller: self.caller.clone(), since: Instant::now() })
    }
}

impl Drop for QueuedRequest {
    fn drop(&mut self) {
        if self.is_granted {
            return;
        }
        let mut turns = self.admission.lock_queue();
        let gave_up = turns.cancel(&self.caller, self.ticket);
        self.admission.update_gauges(&turns);
        drop(turns);
        // The slot was granted while the request was being dropped.
        if !gave_up {
            self.admission.release(&self.caller, None);
        }
    }
}

impl Drop for AdmissionPermit {
    fn drop(&mut self) {
        self.admission.release(&self.caller, Some(self.since.elapsed()));
    }
}

#[cfg(test)]
mod tests;
