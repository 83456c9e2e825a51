//! Metrics of the knowledge base. Computed from memory, without access to the store.

use prometheus_client::registry::Registry;

use super::Knowledge;
use super::finder::Held;
use crate::gauges::{self, Sample};

/// Maximum number of bases with a label, to bound the cardinality. Further bases count in the totals only.
const MOST_BASES: usize = 100;

impl Knowledge {
    /// Registers the metrics. They are zero until the knowledge base is open.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("knowledge");
        let total = |of: fn(&Held) -> usize| {
            let knowledge = self.clone();
            move || gauges::single(knowledge.held().iter().map(of).sum())
        };
        gauges::register(registry, "documents", "Documents in all knowledge bases", total(|held| held.documents));
        gauges::register(registry, "chunks", "Chunks in all knowledge bases", total(|held| held.chunks));
        gauges::register(registry, "index_bytes", "Memory used by the indexes", total(|held| held.memory));
        let of_bases = |of: fn(&Held) -> usize| {
            let knowledge = self.clone();
            let sample = move |held: &Held| (vec![("base", held.base.to_string())], of(held) as u64);
            move || knowledge.held().iter().take(MOST_BASES).map(sample).collect()
        };
        gauges::register(registry, "base_documents", "Documents in a knowledge base", of_bases(|held| held.documents));
        gauges::register(registry, "base_chunks", "Chunks in a knowledge base", of_bases(|held| held.chunks));
        let knowledge = self.clone();
        let bytes = move || vec![(Vec::new(), knowledge.opened().map_or(0, |open| open.store.known_size()))];
        gauges::register(registry, "store_bytes", "Size of the database on disk", bytes);
        let knowledge = self.clone();
        let tasks = move || {
            let (waiting, running) = knowledge.tasks_open();
            let sample = |state: &str, count: usize| -> Sample { (vec![("state", state.to_owned())], count as u64) };
            vec![sample("queued", waiting), sample("running", running)]
        };
        gauges::register(registry, "tasks", "Unfinished tasks of this process", tasks);
    }

    /// Number of waiting and of running tasks in this process.
    pub fn tasks_open(&self) -> (usize, usize) {
        self.opened().map_or((0, 0), |open| open.work.open())
    }

    /// Size of each base, largest first.
    fn held(&self) -> Vec<Held> {
        self.opened().map(|open| open.finder.held()).unwrap_or_default()
    }
}
