//! Summary of a run as text and JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use super::clients::CallCounts;
use super::faults::Fault;
use super::leak_detection::ResourceHistory;

#[derive(Debug, Default)]
pub(crate) struct ChaosReport {
    pub(crate) rounds: u64,
    /// Chunks in the fixed corpus.
    pub(crate) chunks: usize,
    pub(crate) faults: BTreeMap<String, u64>,
    pub(crate) workers_killed: u64,
    /// Stdio clients killed during a call.
    pub(crate) clients_killed: u64,
    /// How often the server ended for lack of memory.
    pub(crate) out_of_memory_exits: u64,
    /// Times from a start after a fault to the first reply.
    pub(crate) recoveries: Vec<Duration>,
    /// Faults that could not be injected here, with counts.
    skipped: BTreeMap<String, u64>,
    pub(crate) calls: CallCounts,
    pub(crate) soak: ResourceHistory,
}

/// Recovery times after a fault.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecoveryTimes {
    /// From the end of the fault to the first correct reply.
    pub(crate) first_answer: Duration,
    /// From the last call until the server is idle.
    pub(crate) idle: Duration,
}

impl ChaosReport {
    pub(crate) fn record_skipped(&mut self, what: &str) {
        *self.skipped.entry(what.to_owned()).or_default() += 1;
    }

    /// One line per round, with the duration of each start and of the recovery.
    pub(crate) fn round_line(
        &self,
        fault: Fault,
        starts: usize,
        RecoveryTimes { first_answer: answers, idle: rests }: RecoveryTimes,
    ) -> String {
        let took = |took: &Duration| format!(", answers {:.2} s after its start", took.as_secs_f64());
        let recoveries: String = self.recoveries[starts..].iter().map(took).collect();
        let (answers, rests) = (answers.as_secs_f64(), rests.as_secs_f64());
        let (round, fault) = (self.rounds, fault.name());
        format!(
            "round {round}: {fault}{recoveries}, answers {answers:.2} s after it has healed, at rest in {rests:.2} s"
        )
    }

    /// Progress line.
    pub(crate) fn progress_line(&self, after: Duration) -> String {
        let CallCounts { answered: said, refused, lost, .. } = &self.calls;
        let memory = self.soak.memory().map_or(0, |[_, _, last]| last);
        format!(
            "{} rounds after {} s: {said} calls answered, {refused} refused, {lost} lost, {memory} MiB held",
            self.rounds,
            after.as_secs()
        )
    }

    pub(crate) fn to_json(&self, seed: u64, took: Duration) -> Value {
        let mut recoveries = self.recoveries.clone();
        recoveries.sort();
        let at =
            |share: usize| recoveries.get(recoveries.len().saturating_sub(1) * share / 100).map(Duration::as_secs_f64);
        let tools = self.calls.successes.keys().map(|(tool, _)| tool).collect::<BTreeSet<_>>().len();
        let faces = self.calls.successes.keys().map(|(_, face)| face).collect::<BTreeSet<_>>().len();
        json!({
            "seed": seed,
            "seconds": took.as_secs(),
            "rounds": self.rounds,
            "chunks": self.chunks,
            "faults": self.faults,
            "workers_killed": self.workers_killed,
            "clients_killed": self.clients_killed,
            "ended_for_want_of_memory": self.out_of_memory_exits,
            "calls": { "answered": self.calls.answered, "refused": self.calls.refused, "lost": self.calls.lost },
            "tools": tools,
            "faces": faces,
            "done": self.calls.table(),
            "documents_compared": self.calls.compared,
            "words_searched_in_vain": self.calls.dead_version_searches,
            "recovery_seconds": { "count": recoveries.len(), "median": at(50), "p99": at(99), "most": at(100) },
            "memory_mib_first_most_last": self.soak.memory(),
            "skipped": self.skipped,
            "refusals": self.calls.refusals,
        })
    }
}
