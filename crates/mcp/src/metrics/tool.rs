//! Per-tool metrics.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::duration_histogram::DurationHistogram;
use super::exposition::{escape_label, write_header};

/// Counters of one tool. Atomics only: used on the path of every call.
#[derive(Debug, Default)]
pub struct ToolStats {
    durations: DurationHistogram,
    failures: AtomicU64,
    /// Failures are rare enough for a lock.
    by_kind: Mutex<BTreeMap<String, u64>>,
}

/// Bounds the map for tools that generate error kinds.
const MAX_KINDS: usize = 64;

impl ToolStats {
    pub(crate) fn record_success(&self, took: Duration) {
        self.durations.observe(took);
    }

    pub(crate) fn record_failure(&self, took: Duration, kind: &str) {
        self.record_success(took);
        self.failures.fetch_add(1, Ordering::Relaxed);
        let mut by_kind = self.by_kind.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let kind = if by_kind.len() >= MAX_KINDS && !by_kind.contains_key(kind) { "other" } else { kind };
        *by_kind.entry(kind.to_owned()).or_default() += 1;
    }

    /// Calls, errors by kind and latencies, for users and agents (M-88).
    pub fn summary(&self) -> Value {
        let (calls, total) = (self.durations.count(), self.durations.total_ms());
        json!({
            "calls": calls,
            "errors": self.failures.load(Ordering::Relaxed),
            "errors_by_kind": *self.by_kind.lock().unwrap_or_else(|poisoned| poisoned.into_inner()),
            "total_ms": total,
            "mean_ms": if calls == 0 { 0.0 } else { total / calls as f64 },
            "max_ms": self.durations.max_ms(),
        })
    }
}

/// Writes tool metrics from per-tool atomics, so that a call touches no state shared between tools.
pub(super) fn encode<'a>(text: &mut String, tools: impl Iterator<Item = (&'a str, &'a ToolStats)> + Clone) {
    write_header(text, "corbie_tool_errors", "counter", "Failed tool calls by kind");
    for (name, stats) in tools.clone() {
        for (kind, count) in stats.by_kind.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).iter() {
            let kind = escape_label(kind);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "corbie_tool_errors_total{{tool=\"{name}\",kind=\"{kind}\"}} {count}");
        }
    }
    write_header(text, "corbie_tool_seconds", "histogram", "Duration of tool calls");
    for (name, stats) in tools {
        stats.durations.encode(text, "corbie_tool_seconds", &format!("tool=\"{name}\""));
    }
}
