//! Metrics of the router: attempts, latency, retries, decisions, tokens and cost.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::decision_record::{DecisionOutcome, DecisionRecord};

#[derive(Debug, Clone)]
pub(super) struct Metrics {
    attempts: Family<AttemptLabels, Counter>,
    latency: Family<AttemptLabels, Histogram>,
    retries: Family<ProviderLabel, Counter>,
    decisions: Family<DecisionLabels, Counter>,
    tokens: Family<TokenLabels, Counter>,
    cost: Family<ProviderLabel, Counter<f64, AtomicU64>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabels {
    provider: String,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderLabel {
    provider: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DecisionLabels {
    reason: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenLabels {
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
    pub(super) fn record_attempt(&self, provider: &str, result: &'static str, requests: usize, took: Duration) {
        let provider = provider.to_owned();
        let attempted = AttemptLabels { provider: provider.clone(), result };
        self.attempts.get_or_create(&attempted).inc();
        self.latency.get_or_create(&attempted).observe(took.as_secs_f64());
        let retries = self.retries.get_or_create(&ProviderLabel { provider });
        retries.inc_by(requests.saturating_sub(1) as u64);
    }

    pub(super) fn record_decision(&self, record: &DecisionRecord) {
        let outcome = match record.outcome {
            DecisionOutcome::Answered => "answered",
            DecisionOutcome::Failed => "failed",
            DecisionOutcome::Cancelled => "cancelled",
        };
        self.decisions.get_or_create(&DecisionLabels { reason: record.reason.clone(), outcome }).inc();
        let Some(provider) = &record.provider else { return };
        if let Some(usage) = record.usage {
            for (direction, number) in [("input", usage.prompt), ("output", usage.completion)] {
                self.tokens.get_or_create(&TokenLabels { provider: provider.clone(), direction }).inc_by(number);
            }
        }
        if let Some(cost) = record.cost {
            self.cost.get_or_create(&ProviderLabel { provider: provider.clone() }).inc_by(cost);
        }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("route");
        registry.register("attempts", "Upstream attempts by provider and result", self.attempts.clone());
        registry.register("latency_seconds", "Duration of upstream attempts", self.latency.clone());
        registry.register("retries", "Retries against the same provider", self.retries.clone());
        registry.register("decisions", "Routing decisions by reason and outcome", self.decisions.clone());
        registry.register("tokens", "Input and output tokens", self.tokens.clone());
        registry.register("cost", "Cost of responses by configured prices", self.cost.clone());
    }
}
