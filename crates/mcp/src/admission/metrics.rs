//! Admission metrics: running and queued requests, queue times, shed requests by reason.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

#[derive(Debug)]
pub(super) struct AdmissionMetrics {
    running: Gauge,
    waiting: Gauge,
    wait_seconds: Histogram,
    shed: Family<ShedReasonLabel, Counter>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ShedReasonLabel {
    reason: &'static str,
}

/// Why a request was shed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShedReason {
    QueueFull,
    ExpectedWait,
    WaitTimeout,
    BodyMemory,
}

/// Upper bounds of the histogram buckets, in seconds.
const WAIT_BUCKETS: [f64; 8] = [0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0];

impl Default for AdmissionMetrics {
    fn default() -> AdmissionMetrics {
        let waits = Histogram::new(WAIT_BUCKETS);
        AdmissionMetrics {
            running: Gauge::default(),
            waiting: Gauge::default(),
            wait_seconds: waits,
            shed: Family::default(),
        }
    }
}

impl AdmissionMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("admission_running", "Requests currently executing", self.running.clone());
        registry.register("admission_waiting", "Requests queued for admission", self.waiting.clone());
        registry.register("admission_wait_seconds", "Queue time of admitted requests", self.wait_seconds.clone());
        registry.register("admission_shed", "Requests rejected by load shedding", self.shed.clone());
    }

    pub(super) fn set_gauges(&self, running: usize, waiting: usize) {
        self.running.set(running as i64);
        self.waiting.set(waiting as i64);
    }

    pub(super) fn observe_wait(&self, wait: Duration) {
        self.wait_seconds.observe(wait.as_secs_f64());
    }

    pub(super) fn count_shed(&self, why: ShedReason) {
        self.shed.get_or_create(&ShedReasonLabel { reason: why.as_str() }).inc();
    }
}

impl ShedReason {
    fn as_str(self) -> &'static str {
        match self {
            ShedReason::QueueFull => "queue_full",
            ShedReason::ExpectedWait => "expected_wait",
            ShedReason::WaitTimeout => "wait_timeout",
            ShedReason::BodyMemory => "body_memory",
        }
    }
}
