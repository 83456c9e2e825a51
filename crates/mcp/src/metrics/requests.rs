//! Request metrics by method and transport: count, errors, duration.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use super::durations::Durations;
use super::history::History;
use super::text::head;
use crate::trust::Via;

/// Counters of each method, looked up without a lock on the path of every request.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    methods: HashMap<String, Method>,
    unknown: Method,
    /// Custom routes; bounded by the number the program defines.
    paths: RwLock<BTreeMap<String, Arc<Stats>>>,
}

#[derive(Debug, Default)]
pub(super) struct Method {
    served: Counter,
    by_via: [Stats; Via::ALL.len()],
}

/// One method over one transport.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    durations: Durations,
    failures: AtomicU64,
}

/// A request in progress. Dropped without an outcome, it counts as failed, because the caller has disconnected.
pub(crate) struct Timed<'a> {
    stats: &'a Stats,
    in_flight: &'a Gauge,
    history: &'a History,
    started: Instant,
    failed: bool,
}

impl Requests {
    /// Only served methods become labels: a peer must not be able to grow the metrics with invented names.
    pub(super) fn new<'a>(methods: impl Iterator<Item = &'a str>, counter: impl Fn(&str) -> Counter) -> Requests {
        let method = |name: &str| Method { served: counter(name), ..Method::default() };
        Requests {
            methods: methods.map(|name| (name.to_owned(), method(name))).collect(),
            unknown: method("unknown"),
            paths: RwLock::default(),
        }
    }

    pub(super) fn served(&self, method: &str) {
        self.of(method).served.inc();
    }

    pub(super) fn begin<'a>(&'a self, method: &str, via: Via, in_flight: &'a Gauge, history: &'a History) -> Timed<'a> {
        in_flight.inc();
        let stats = &self.of(method).by_via[via as usize];
        Timed { stats, in_flight, history, started: Instant::now(), failed: true }
    }

    fn of(&self, method: &str) -> &Method {
        self.methods.get(method).unwrap_or(&self.unknown)
    }

    /// Counts a request to a custom route, by its matched pattern.
    pub(super) fn path(&self, pattern: &str, took: Duration, failed: bool) {
        let known = self.paths.read().unwrap_or_else(|poisoned| poisoned.into_inner()).get(pattern).cloned();
        let stats = known.unwrap_or_else(|| {
            let mut paths = self.paths.write().unwrap_or_else(|poisoned| poisoned.into_inner());
            paths.entry(pattern.to_owned()).or_default().clone()
        });
        stats.count(took, failed);
    }

    /// Writes only methods and routes that were used.
    pub(super) fn encode(&self, text: &mut String) {
        let mut methods: Vec<_> = self.methods.iter().map(|(name, method)| (name.as_str(), method)).collect();
        methods.sort_by_key(|(name, _)| *name);
        methods.push(("unknown", &self.unknown));
        let paths = self.paths.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        let of_methods = methods.iter().flat_map(|(name, method)| {
            Via::ALL.into_iter().zip(&method.by_via).map(|(via, stats)| (label(name, via), stats))
        });
        let of_paths = paths.iter().map(|(path, stats)| (label(path, Via::Http), &**stats));
        let used: Vec<_> = of_methods.chain(of_paths).filter(|(_, stats)| stats.durations.count() > 0).collect();
        head(text, "corbie_request_errors", "counter", "Failed requests by method and transport");
        for (labels, stats) in &used {
            let failures = stats.failures.load(Ordering::Relaxed);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "corbie_request_errors_total{{{labels}}} {failures}");
        }
        head(text, "corbie_request_seconds", "histogram", "Duration of requests by method and transport");
        for (labels, stats) in &used {
            stats.durations.encode(text, "corbie_request_seconds", labels);
        }
    }
}

impl Stats {
    fn count(&self, took: Duration, failed: bool) {
        self.durations.observe(took);
        if failed {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Timed<'_> {
    pub(crate) fn ended(mut self, failed: bool) {
        self.failed = failed;
    }
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        self.in_flight.dec();
        let ended = Instant::now();
        let took = ended - self.started;
        self.stats.count(took, self.failed);
        self.history.request(ended, took, self.failed);
    }
}

fn label(method: &str, via: Via) -> String {
    format!("method=\"{method}\",via=\"{}\"", via.as_str())
}
