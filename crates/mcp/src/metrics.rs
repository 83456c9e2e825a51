//! Counting what happens: per tool, per method, per connection; shown as Prometheus text and as a resource.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry as Prometheus;
use serde_json::{Value, json};

/// The server's own measurements; programs add theirs to `prometheus`.
#[derive(Debug)]
pub struct Metrics {
    prometheus: Mutex<Prometheus>,
    /// One counter a method, looked up without a lock: it sits on the path of every request.
    requests: HashMap<String, Counter>,
    unknown_method: Counter,
    pub(crate) errors: Family<CodeLabel, Counter>,
    pub(crate) connections: Gauge,
    pub(crate) rejected_connections: Counter,
    pub(crate) failed_handshakes: Counter,
    pub(crate) in_flight: Gauge,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct MethodLabel {
    pub(crate) method: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct CodeLabel {
    pub(crate) error_type: String,
}

/// One tool's counts. Atomics only: it sits on the path of every call.
#[derive(Debug, Default)]
pub struct ToolStats {
    calls: AtomicU64,
    failures: AtomicU64,
    total_ns: AtomicU64,
    max_ns: AtomicU64,
    buckets: [AtomicU64; BUCKETS.len()],
    /// Failures are rare enough for a lock.
    by_kind: Mutex<BTreeMap<String, u64>>,
}

/// Upper bounds of the latency histogram, in seconds.
const BUCKETS: [f64; 10] = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0];
/// A tool that invents error kinds must not grow the map without end.
const MAX_KINDS: usize = 64;

impl Metrics {
    /// Only methods that are served become labels: a peer must not grow the metrics by inventing names.
    pub(crate) fn new<'a>(methods: impl Iterator<Item = &'a str>) -> Metrics {
        let mut prometheus = Prometheus::with_prefix("corbie");
        let requests = Family::<MethodLabel, Counter>::default();
        let counter = |method: &str| requests.get_or_create(&MethodLabel { method: method.to_owned() }).clone();
        let metrics = Metrics {
            requests: methods.map(|method| (method.to_owned(), counter(method))).collect(),
            unknown_method: counter("unknown"),
            errors: Family::default(),
            connections: Gauge::default(),
            rejected_connections: Counter::default(),
            failed_handshakes: Counter::default(),
            in_flight: Gauge::default(),
            prometheus: Mutex::default(),
        };
        prometheus.register("requests", "Requests by method", requests);
        prometheus.register("errors", "JSON-RPC errors by type", metrics.errors.clone());
        prometheus.register("connections", "Open HTTP and WebSocket connections", metrics.connections.clone());
        prometheus.register(
            "connections_rejected",
            "Connections refused because too many were open, or of another user",
            metrics.rejected_connections.clone(),
        );
        prometheus.register(
            "tls_handshakes_failed",
            "Connections that did not get as far as HTTP over TLS",
            metrics.failed_handshakes.clone(),
        );
        prometheus.register("requests_in_flight", "Requests being worked on", metrics.in_flight.clone());
        Metrics { prometheus: Mutex::new(prometheus), ..metrics }
    }

    pub(crate) fn count_request(&self, method: &str) {
        self.requests.get(method).unwrap_or(&self.unknown_method).inc();
    }

    /// Lets a part of the program add metrics of its own.
    pub fn register(&self, add: impl FnOnce(&mut Prometheus)) {
        add(&mut self.prometheus.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    }

    /// The whole of it in Prometheus' text form.
    pub(crate) fn encode<'a>(&self, tools: impl Iterator<Item = (&'a str, &'a ToolStats)> + Clone) -> String {
        let mut text = String::new();
        let prometheus = self.prometheus.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // Writing into a String cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &prometheus);
        let end = "# EOF\n";
        let mut text = text.strip_suffix(end).unwrap_or(&text).to_owned();
        encode_tools(&mut text, tools);
        text.push_str(end);
        text
    }
}

impl ToolStats {
    pub(crate) fn succeeded(&self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.total_ns.fetch_add(ns, Ordering::Relaxed);
        self.max_ns.fetch_max(ns, Ordering::Relaxed);
        if let Some(index) = BUCKETS.iter().position(|bound| took.as_secs_f64() <= *bound) {
            self.buckets[index].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn failed(&self, took: Duration, kind: &str) {
        self.succeeded(took);
        self.failures.fetch_add(1, Ordering::Relaxed);
        let mut by_kind = self.by_kind.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let kind = if by_kind.len() >= MAX_KINDS && !by_kind.contains_key(kind) { "other" } else { kind };
        *by_kind.entry(kind.to_owned()).or_default() += 1;
    }

    /// Calls, errors by kind and latencies, for people and agents (M-88).
    pub fn summary(&self) -> Value {
        let calls = self.calls.load(Ordering::Relaxed);
        let total = self.total_ns.load(Ordering::Relaxed) as f64 / 1e6;
        json!({
            "calls": calls,
            "errors": self.failures.load(Ordering::Relaxed),
            "errors_by_kind": *self.by_kind.lock().unwrap_or_else(|poisoned| poisoned.into_inner()),
            "total_ms": total,
            "mean_ms": if calls == 0 { 0.0 } else { total / calls as f64 },
            "max_ms": self.max_ns.load(Ordering::Relaxed) as f64 / 1e6,
        })
    }
}

/// Tool metrics are written from the tools' own atomics, so that a call touches nothing shared between tools.
fn encode_tools<'a>(text: &mut String, tools: impl Iterator<Item = (&'a str, &'a ToolStats)> + Clone) {
    use std::fmt::Write;
    // Writing into a String cannot fail, so its results are dropped.
    let _ = writeln!(text, "# HELP corbie_tool_errors Failed tool calls by kind.\n# TYPE corbie_tool_errors counter");
    for (name, stats) in tools.clone() {
        for (kind, count) in stats.by_kind.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).iter() {
            let kind = kind.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ");
            let _ = writeln!(text, "corbie_tool_errors_total{{tool=\"{name}\",kind=\"{kind}\"}} {count}");
        }
    }
    let _ = writeln!(text, "# HELP corbie_tool_seconds Duration of tool calls.\n# TYPE corbie_tool_seconds histogram");
    for (name, stats) in tools {
        let mut below = 0;
        for (bound, bucket) in BUCKETS.iter().zip(&stats.buckets) {
            below += bucket.load(Ordering::Relaxed);
            let _ = writeln!(text, "corbie_tool_seconds_bucket{{tool=\"{name}\",le=\"{bound}\"}} {below}");
        }
        let calls = stats.calls.load(Ordering::Relaxed);
        let sum = stats.total_ns.load(Ordering::Relaxed) as f64 / 1e9;
        let _ = writeln!(text, "corbie_tool_seconds_bucket{{tool=\"{name}\",le=\"+Inf\"}} {calls}");
        let _ = writeln!(text, "corbie_tool_seconds_sum{{tool=\"{name}\"}} {sum}");
        let _ = writeln!(text, "corbie_tool_seconds_count{{tool=\"{name}\"}} {calls}");
    }
}
