//! Metrics of the knowledge base. Computed from memory, without access to the store.

use prometheus_client::registry::Registry;

use super::Knowledge;
use super::base_stats::BaseStats;
use corbie_util::lazy_gauge::{self, Sample};

/// Maximum number of bases with a label, to bound the cardinality. Further bases count in the totals only.
const MAX_LABELLED_BASES: usize = 100;

impl Knowledge {
    /// Registers the metrics. They are zero until the knowledge base is open.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("knowledge");
        let total = |of: fn(&BaseStats) -> usize| {
            let knowledge = self.clone();
            move || lazy_gauge::single(knowledge.base_stats().iter().map(of).sum())
        };
        lazy_gauge::register(registry, "documents", "Documents in all knowledge bases", total(|held| held.documents));
        lazy_gauge::register(registry, "chunks", "Chunks in all knowledge bases", total(|held| held.chunks));
        lazy_gauge::register(registry, "index_bytes", "Memory used by the indexes", total(|held| held.memory_bytes));
        let of_bases = |of: fn(&BaseStats) -> usize| {
            let knowledge = self.clone();
            let sample = move |held: &BaseStats| (vec![("base", held.base.to_string())], of(held) as u64);
            move || knowledge.base_stats().iter().take(MAX_LABELLED_BASES).map(sample).collect()
        };
        lazy_gauge::register(
            registry,
            "base_documents",
            "Documents in a knowledge base",
            of_bases(|held| held.documents),
        );
        lazy_gauge::register(registry, "base_chunks", "Chunks in a knowledge base", of_bases(|held| held.chunks));
        let knowledge = self.clone();
        let bytes = move || vec![(Vec::new(), knowledge.open_state().map_or(0, |open| open.store.cached_size()))];
        lazy_gauge::register(registry, "store_bytes", "Size of the database on disk", bytes);
        let knowledge = self.clone();
        let tasks = move || {
            let (waiting, running) = knowledge.task_counts();
            let sample = |state: &str, count: usize| -> Sample { (vec![("state", state.to_owned())], count as u64) };
            vec![sample("queued", waiting), sample("running", running)]
        };
        lazy_gauge::register(registry, "tasks", "Unfinished tasks of this process", tasks);
    }

    /// Number of waiting and of running tasks in this process.
    pub fn task_counts(&self) -> (usize, usize) {
        self.open_state().map_or((0, 0), |open| open.scheduler.job_counts())
    }

    /// Size of each base, largest first.
    fn base_stats(&self) -> Vec<BaseStats> {
        self.open_state().map(|open| open.retriever.base_stats()).unwrap_or_default()
    }
}
