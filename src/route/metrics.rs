//! Metrics of the router: attempts, latency, retries, decisions, tokens and cost.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::record::{Outcome, Record};

#[derive(Debug, Clone)]
pub(super) struct Metrics {
    attempts: Family<Attempted, Counter>,
    latency: Family<Attempted, Histogram>,
    retries: Family<OfProvider, Counter>,
    decisions: Family<Decided, Counter>,
    tokens: Family<Tokens, Counter>,
    cost: Family<OfProvider, Counter<f64, AtomicU64>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Attempted {
    provider: String,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfProvider {
    provider: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Decided {
    reason: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Tokens {
    provider: String,
    direction: &'static str,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let seconds = || Histogram::new([0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0]);
        Metrics {
            attempts: Family::default(),
            latency: Family::new_with_constructor(seconds),
            retries: Family::default(),
            decisions: Family::default(),
            tokens: Family::default(),
            cost: Family::default(),
        }
    }
}

impl Metrics {
    /// Counts one attempt, which may have sent several requests.
    pub(super) fn attempted(&self, provider: &str, result: &'static str, requests: usize, took: Duration) {
        let provider = provider.to_owned();
        let attempted = Attempted { provider: provider.clone(), result };
        self.attempts.get_or_create(&attempted).inc();
        self.latency.get_or_create(&attempted).observe(took.as_secs_f64());
        let retries = self.retries.get_or_create(&OfProvider { provider });
        retries.inc_by(requests.saturating_sub(1) as u64);
    }

    pub(super) fn ended(&self, record: &Record) {
        let outcome = match record.outcome {
            Outcome::Answered => "answered",
            Outcome::Failed => "failed",
            Outcome::Cancelled => "cancelled",
        };
        self.decisions.get_or_create(&Decided { reason: record.reason.clone(), outcome }).inc();
        let Some(provider) = &record.provider else { return };
        if let Some(usage) = record.usage {
            for (direction, number) in [("input", usage.prompt), ("output", usage.completion)] {
                self.tokens.get_or_create(&Tokens { provider: provider.clone(), direction }).inc_by(number);
            }
        }
        if let Some(cost) = record.cost {
            self.cost.get_or_create(&OfProvider { provider: provider.clone() }).inc_by(cost);
        }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("route");
        registry.register("attempts", "Attempts by provider and result", self.attempts.clone());
        registry.register("latency_seconds", "Duration of attempts", self.latency.clone());
        registry.register("retries", "Retries against the same provider", self.retries.clone());
        registry.register("decisions", "Routing decisions by reason and outcome", self.decisions.clone());
        registry.register("tokens", "Input and output tokens", self.tokens.clone());
        registry.register("cost", "Cost of responses by configured prices", self.cost.clone());
    }
}
