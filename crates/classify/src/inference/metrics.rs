//! Inference metrics.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, Default)]
pub(super) struct Metrics {
    pub(super) texts: Counter,
    pub(super) tokens: Counter,
    pub(super) truncated: Counter,
    pub(super) abandoned: Counter,
    pub(super) busy_seconds: Counter<f64, AtomicU64>,
    pub(super) waiting: Gauge,
    pub(super) batch_seconds: BatchDuration,
}

/// Duration of a batch.
#[derive(Debug, Clone)]
pub(super) struct BatchDuration(pub(super) Histogram);

impl Default for BatchDuration {
    fn default() -> BatchDuration {
        BatchDuration(Histogram::new([0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0]))
    }
}

impl Metrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("texts", "Texts embedded", self.texts.clone());
        registry.register("tokens", "Tokens processed by the embedding model", self.tokens.clone());
        registry.register("truncated", "Texts truncated to the input length of the model", self.truncated.clone());
        registry.register("abandoned", "Requests cancelled before their vectors were ready", self.abandoned.clone());
        registry.register("busy_seconds", "Time the models spent running", self.busy_seconds.clone());
        registry.register("batch_seconds", "Duration of a batch", self.batch_seconds.0.clone());
        registry.register("waiting", "Requests waiting for vectors", self.waiting.clone());
    }
}
