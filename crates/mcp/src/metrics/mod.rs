//! Server metrics per tool, method and connection, exposed in Prometheus format and as a resource.

mod duration_histogram;
mod exposition;
mod history;
mod process;
mod requests;
mod tool;

use std::fmt::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry as Prometheus;

use crate::server::Server;
use crate::trust::Transport;
pub(crate) use exposition::ExpositionFormat;
pub(crate) use history::{History, SAMPLE_COUNT};
use requests::RequestMetrics;
pub(crate) use requests::RequestTimer;
pub use tool::ToolStats;

/// The server's metrics; programs add theirs to `prometheus`.
#[derive(Debug)]
pub struct Metrics {
    prometheus: Mutex<Prometheus>,
    requests: RequestMetrics,
    pub(crate) history: History,
    errors: Family<ErrorTypeLabel, Counter>,
    refused: Family<ReasonLabel, Counter>,
    pub(crate) connections: Gauge,
    pub(crate) rejected_connections: Counter,
    pub(crate) evicted_connections: Counter,
    pub(crate) failed_handshakes: Counter,
    pub(crate) in_flight: Gauge,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MethodLabel {
    method: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ErrorTypeLabel {
    error_type: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

impl Metrics {
    pub(crate) fn new<'a>(methods: impl Iterator<Item = &'a str>) -> Metrics {
        let mut prometheus = Prometheus::with_prefix("corbie");
        let served = Family::<MethodLabel, Counter>::default();
        let counter = |method: &str| served.get_or_create(&MethodLabel { method: method.to_owned() }).clone();
        let metrics = Metrics {
            requests: RequestMetrics::new(methods, counter),
            history: History::new(Instant::now(), SystemTime::now()),
            errors: Family::default(),
            refused: Family::default(),
            connections: Gauge::default(),
            rejected_connections: Counter::default(),
            evicted_connections: Counter::default(),
            failed_handshakes: Counter::default(),
            in_flight: Gauge::default(),
            prometheus: Mutex::default(),
        };
        prometheus.register("requests", "Requests by method", served.clone());
        prometheus.register("errors", "JSON-RPC errors by type", metrics.errors.clone());
        prometheus.register("rejected", "HTTP requests rejected before parsing", metrics.refused.clone());
        prometheus.register("connections", "Open HTTP and WebSocket connections", metrics.connections.clone());
        prometheus.register(
            "connections_rejected",
            "Connections rejected because of the connection limit or a different user",
            metrics.rejected_connections.clone(),
        );
        prometheus.register(
            "connections_evicted",
            "Connections evicted at the connection limit: slow, stalled, idle, or of an address or caller over its share",
            metrics.evicted_connections.clone(),
        );
        prometheus.register("tls_handshakes_failed", "Failed TLS handshakes", metrics.failed_handshakes.clone());
        prometheus.register("requests_in_flight", "Requests in progress", metrics.in_flight.clone());
        Metrics { prometheus: Mutex::new(prometheus), ..metrics }
    }

    /// Counts an admitted request.
    pub(crate) fn count_request(&self, method: &str) {
        self.requests.count_served(method);
    }

    /// Measures a request until the returned guard is dropped.
    pub(crate) fn start_request(&self, method: &str, via: Transport, is_in_history: bool) -> RequestTimer<'_> {
        self.requests.start(method, via, &self.in_flight, is_in_history.then_some(&self.history))
    }

    pub(crate) fn count_error(&self, error_type: &'static str) {
        self.errors.get_or_create(&ErrorTypeLabel { error_type }).inc();
    }

    /// Counts a request rejected before it was parsed.
    pub(crate) fn count_refused(&self, reason: &'static str) {
        self.refused.get_or_create(&ReasonLabel { reason }).inc();
    }

    /// Counts a request to a custom route.
    pub(crate) fn count_route(&self, pattern: &str, took: Duration, failed: bool) {
        self.requests.count_route(pattern, took, failed);
        self.history.record_request(Instant::now(), took, failed);
    }

    /// Lets the program register its metrics.
    pub fn register(&self, add: impl FnOnce(&mut Prometheus)) {
        add(&mut self.prometheus.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    }

    /// All metrics in one of the Prometheus text formats.
    pub(crate) fn encode(&self, server: &Server, form: ExpositionFormat) -> String {
        let mut text = String::new();
        {
            let prometheus = self.prometheus.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            // Writing to a String cannot fail.
            let _ = prometheus_client::encoding::text::encode(&mut text, &prometheus);
        }
        text.truncate(text.strip_suffix(exposition::EOF_MARKER).unwrap_or(&text).len());
        let registry = server.registry();
        tool::encode(&mut text, registry.iter().map(|tool| (tool.name(), tool.stats())));
        self.requests.encode(&mut text);
        let audit = server.audit();
        for (name, help, value) in [
            ("corbie_audit_recorded", "Entries recorded in the audit log", audit.recorded()),
            ("corbie_audit_lost", "Audit log entries that were lost", audit.lost()),
        ] {
            exposition::write_header(&mut text, name, "counter", help);
            let _ = writeln!(text, "{name}_total {value}");
        }
        process::encode(&mut text, server);
        text.push_str(exposition::EOF_MARKER);
        match form {
            ExpositionFormat::OpenMetrics => text,
            ExpositionFormat::Plain => exposition::to_prometheus_text(&text),
        }
    }
}
