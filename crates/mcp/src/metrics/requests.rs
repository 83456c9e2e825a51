//! Request metrics by method and transport: count, errors, duration.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use super::duration_histogram::DurationHistogram;
use super::exposition::write_header;
use super::history::History;
use crate::trust::Transport;

/// Counters of each method, looked up without a lock on the path of every request.
#[derive(Debug, Default)]
pub(crate) struct RequestMetrics {
    methods: HashMap<String, MethodMetrics>,
    unknown: MethodMetrics,
    /// Custom routes; bounded by the number the program defines.
    routes: RwLock<BTreeMap<String, Arc<RequestStats>>>,
}

#[derive(Debug, Default)]
pub(super) struct MethodMetrics {
    served: Counter,
    by_transport: [RequestStats; Transport::ALL.len()],
}

/// One method over one transport.
#[derive(Debug, Default)]
pub(crate) struct RequestStats {
    durations: DurationHistogram,
    failures: AtomicU64,
}

/// A request in progress. Dropped without an outcome, it counts as failed, because the caller has disconnected.
pub(crate) struct RequestTimer<'a> {
    stats: &'a RequestStats,
    in_flight: &'a Gauge,
    /// `None` if the request is not part of the history.
    history: Option<&'a History>,
    started: Instant,
    failed: bool,
}

impl RequestMetrics {
    /// Only served methods become labels: a peer must not be able to grow the metrics with invented names.
    pub(super) fn new<'a>(methods: impl Iterator<Item = &'a str>, counter: impl Fn(&str) -> Counter) -> RequestMetrics {
        let method = |name: &str| MethodMetrics { served: counter(name), ..MethodMetrics::default() };
        RequestMetrics {
            methods: methods.map(|name| (name.to_owned(), method(name))).collect(),
            unknown: method("unknown"),
            routes: RwLock::default(),
        }
    }

    pub(super) fn count_served(&self, method: &str) {
        self.method(method).served.inc();
    }

    pub(super) fn start<'a>(
        &'a self,
        method: &str,
        via: Transport,
        in_flight: &'a Gauge,
        history: Option<&'a History>,
    ) -> RequestTimer<'a> {
        in_flight.inc();
        let stats = &self.method(method).by_transport[via as usize];
        RequestTimer { stats, in_flight, history, started: Instant::now(), failed: true }
    }

    fn method(&self, method: &str) -> &MethodMetrics {
        self.methods.get(method).unwrap_or(&self.unknown)
    }

    /// Counts a request to a custom route, by its matched pattern.
    pub(super) fn count_route(&self, pattern: &str, took: Duration, failed: bool) {
        let known = self.routes.read().unwrap_or_else(|poisoned| poisoned.into_inner()).get(pattern).cloned();
        let stats = known.unwrap_or_else(|| {
            let mut paths = self.routes.write().unwrap_or_else(|poisoned| poisoned.into_inner());
            paths.entry(pattern.to_owned()).or_default().clone()
        });
        stats.count(took, failed);
    }

    /// Writes only methods and routes that were used.
    pub(super) fn encode(&self, text: &mut String) {
        let mut methods: Vec<_> = self.methods.iter().map(|(name, method)| (name.as_str(), method)).collect();
        methods.sort_by_key(|(name, _)| *name);
        methods.push(("unknown", &self.unknown));
        let paths = self.routes.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        let of_methods = methods.iter().flat_map(|(name, method)| {
            Transport::ALL.into_iter().zip(&method.by_transport).map(|(via, stats)| (label(name, via), stats))
        });
        let of_paths = paths.iter().map(|(path, stats)| (label(path, Transport::Http), &**stats));
        let used: Vec<_> = of_methods.chain(of_paths).filter(|(_, stats)| stats.durations.count() > 0).collect();
        write_header(text, "corbie_request_errors", "counter", "Failed requests by method and transport");
        for (labels, stats) in &used {
            let failures = stats.failures.load(Ordering::Relaxed);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "corbie_request_errors_total{{{labels}}} {failures}");
        }
        write_header(text, "corbie_request_seconds", "histogram", "Duration of requests by method and transport");
        for (labels, stats) in &used {
            stats.durations.encode(text, "corbie_request_seconds", labels);
        }
    }
}

impl RequestStats {
    fn count(&self, took: Duration, failed: bool) {
        self.durations.observe(took);
        if failed {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl RequestTimer<'_> {
    pub(crate) fn finish(mut self, failed: bool) {
        self.failed = failed;
    }
}

impl Drop for RequestTimer<'_> {
    fn drop(&mut self) {
        self.in_flight.dec();
        let ended = Instant::now();
        let took = ended - self.started;
        self.stats.count(took, self.failed);
        if let Some(history) = self.history {
            history.record_request(ended, took, self.failed);
        }
    }
}

fn label(method: &str, via: Transport) -> String {
    format!("method=\"{method}\",via=\"{}\"", via.as_str())
}
