//! Classifier metrics: confidence and entropy by category (C-57).

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::method::Prediction;
use super::taxonomy::Taxonomy;

#[derive(Debug, Clone)]
pub(super) struct Metrics {
    confidence: Family<CategoryLabel, Histogram>,
    entropy: Family<CategoryLabel, Histogram>,
    decided: Family<PredictionSourceLabel, Counter>,
    seconds: Histogram,
    cache_hits: Counter,
    reloads: Family<OutcomeLabel, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CategoryLabel {
    category: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PredictionSourceLabel {
    method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let confidence = || Histogram::new([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99]);
        let entropy = || Histogram::new([0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0]);
        Metrics {
            confidence: Family::new_with_constructor(confidence),
            entropy: Family::new_with_constructor(entropy),
            decided: Family::default(),
            seconds: Histogram::new([0.0001, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0]),
            cache_hits: Counter::default(),
            reloads: Family::default(),
        }
    }
}

impl Metrics {
    pub(super) fn observe(&self, taxonomy: &Taxonomy, verdict: &Prediction) {
        let category = CategoryLabel { category: taxonomy.categories[verdict.class()].name.clone() };
        self.confidence.get_or_create(&category).observe(verdict.confidence().into());
        self.entropy.get_or_create(&category).observe(verdict.entropy());
        self.decided.get_or_create(&PredictionSourceLabel { method: verdict.source.as_str() }).inc();
    }

    /// Records the duration of one call.
    pub(super) fn record_duration(&self, took: Duration) {
        self.seconds.observe(took.as_secs_f64());
    }

    pub(super) fn record_cache_hit(&self) {
        self.cache_hits.inc();
    }

    /// Counts a reload and removes the labels of deleted categories, so that labels do not accumulate.
    pub(super) fn record_snapshot_change(&self, before: &Taxonomy, now: &Taxonomy) {
        self.record_reload("published");
        let active = |taxonomy: &Taxonomy, name: &str| {
            taxonomy.categories.iter().any(|category| category.name == name && !category.retired)
        };
        for name in before.names().filter(|name| !active(now, name)) {
            let category = CategoryLabel { category: name.to_owned() };
            self.confidence.remove(&category);
            self.entropy.remove(&category);
        }
    }

    pub(super) fn record_reload(&self, outcome: &'static str) {
        self.reloads.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("classification");
        registry.register("confidence", "Confidence of predictions", self.confidence.clone());
        registry.register("entropy", "Entropy of predictions in bits", self.entropy.clone());
        registry.register("predictions", "Predictions by deciding method", self.decided.clone());
        registry.register("seconds", "Classification time per text or batch", self.seconds.clone());
        registry.register("cache_hits", "Predictions served from the cache", self.cache_hits.clone());
        registry.register("reloads", "Taxonomy reloads", self.reloads.clone());
    }
}
