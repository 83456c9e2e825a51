//! Admission metrics: running and queued requests, queue times, shed requests by reason.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

#[derive(Debug)]
pub(super) struct Counts {
    running: Gauge,
    waiting: Gauge,
    waits: Histogram,
    shed: Family<Reason, Counter>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

/// Why a request was shed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    QueueFull,
    ExpectedWait,
    Waited,
    BodyMemory,
}

/// Upper bounds of the histogram buckets, in seconds.
const BOUNDS: [f64; 8] = [0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0];

impl Default for Counts {
    fn default() -> Counts {
        let waits = Histogram::new(BOUNDS);
        Counts { running: Gauge::default(), waiting: Gauge::default(), waits, shed: Family::default() }
    }
}

impl Counts {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("admission_running", "Requests currently executing", self.running.clone());
        registry.register("admission_waiting", "Requests queued for admission", self.waiting.clone());
        registry.register("admission_wait_seconds", "Queue time of admitted requests", self.waits.clone());
        registry.register("admission_shed", "Requests rejected by load shedding", self.shed.clone());
    }

    pub(super) fn show(&self, running: usize, waiting: usize) {
        self.running.set(running as i64);
        self.waiting.set(waiting as i64);
    }

    pub(super) fn waited(&self, wait: Duration) {
        self.waits.observe(wait.as_secs_f64());
    }

    pub(super) fn shed(&self, why: Why) {
        self.shed.get_or_create(&Reason { reason: why.as_str() }).inc();
    }
}

impl Why {
    fn as_str(self) -> &'static str {
        match self {
            Why::QueueFull => "queue_full",
            Why::ExpectedWait => "expected_wait",
            Why::Waited => "wait_timeout",
            Why::BodyMemory => "body_memory",
        }
    }
}
