//! Span export to an OpenTelemetry collector over OTLP/HTTP.
//!
//! `collect` receives [`tracing`] spans as they close, `place` and `said` map them to OpenTelemetry span contexts and
//! attributes, and `send` exports them with corbie's HTTP client. The OpenTelemetry SDK is not used: it adds thirteen
//! crates instead of three and cannot take a span's parent from a field, which is how a request carries its caller's
//! trace.

mod attributes;
mod exporter;
pub mod proto;
mod span_context;
mod span_processor;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc as threads;
use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Uri};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;
use url::Url;

use crate::config::Config;
use crate::config::egress_policy::EgressPolicy;
use crate::config::headers::header_map;
use crate::config::telemetry::Otlp;
use crate::providers::http_client::{HttpClient, basic_auth, strip_user_info};
use exporter::SpanExporter;
use proto::{KeyValue, Resource, Value};

pub(super) use span_processor::SpanProcessor;

/// The exporter, if configured.
#[derive(Debug)]
pub struct ExporterHandle(Option<RunningExporter>);

#[derive(Debug)]
struct RunningExporter {
    stopping: CancellationToken,
    /// Disconnects when all spans were sent or dropped.
    done: threads::Receiver<()>,
}

/// Maximum queued spans; further ones are dropped.
const MAX_QUEUED_SPANS: usize = 4096;
/// How long shutdown waits for the last spans to be sent.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// OTLP/HTTP path for traces.
const TRACES_PATH: &str = "v1/traces";

/// Starts the exporter thread if an endpoint is configured.
pub(super) fn prepare(config: &Config) -> (Option<SpanProcessor>, ExporterHandle) {
    let settings = &config.telemetry.otlp;
    let Some(endpoint) = &settings.endpoint else { return (None, ExporterHandle(None)) };
    let (spans, waiting) = mpsc::channel(MAX_QUEUED_SPANS);
    let (dropped, stopping) = (Arc::new(AtomicU64::new(0)), CancellationToken::new());
    let sender = SpanExporter {
        spans: waiting,
        dropped: dropped.clone(),
        client: HttpClient::with_egress_policy(EgressPolicy::new(&config.network)),
        to: address(endpoint.expose()),
        headers: headers(settings, endpoint.expose()),
        resource: resource(&settings.service_name),
        timeout: settings.timeout.get(),
        stopping: stopping.clone(),
    };
    let (finished, done) = threads::channel();
    let body = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => runtime.block_on(sender.run()),
            Err(error) => tracing::error!(%error, "cannot start the span exporter"),
        }
        drop(finished);
    };
    match std::thread::Builder::new().name("otlp".into()).spawn(body) {
        Ok(_) => {
            let collect = SpanProcessor { spans, dropped, ratio: settings.sample_ratio };
            (Some(collect), ExporterHandle(Some(RunningExporter { stopping, done })))
        }
        // If no thread can be started, other components fail too and report it.
        Err(_) => (None, ExporterHandle(None)),
    }
}

/// The layer with its span filter.
pub(super) fn with_span_filter<S: Subscriber + for<'a> LookupSpan<'a>>(collect: SpanProcessor) -> impl Layer<S> {
    let wanted = filter_fn(span_processor::is_exported).with_max_level_hint(tracing::Level::INFO);
    collect.with_filter(wanted)
}

impl ExporterHandle {
    /// Flushes the remaining spans, for up to `LAST_MOMENT`.
    pub fn finish(self) {
        let Some(RunningExporter { stopping, done }) = self.0 else { return };
        stopping.cancel();
        // The channel never carries a message: it disconnects, or the timeout expires.
        let _ = done.recv_timeout(SHUTDOWN_TIMEOUT);
    }
}

/// Appends `/v1/traces` to the endpoint unless its path already ends with it.
fn address(endpoint: &Url) -> Uri {
    let mut url = strip_user_info(endpoint.clone());
    let path = url.path().trim_end_matches('/');
    if !path.ends_with(TRACES_PATH) {
        let path = format!("{path}/{TRACES_PATH}");
        url.set_path(&path);
    }
    url.as_str().parse().expect("a URL is a valid URI")
}

/// Configured headers plus protocol headers.
fn headers(settings: &Otlp, endpoint: &Url) -> HeaderMap {
    // Validated when the configuration was loaded.
    let mut headers = header_map(&settings.headers).unwrap_or_default();
    if let Some(credentials) = basic_auth(endpoint) {
        headers.entry(AUTHORIZATION).or_insert(credentials);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
    let own = HeaderValue::from_static(concat!("corbie/", env!("CARGO_PKG_VERSION")));
    headers.entry(USER_AGENT).or_insert(own);
    headers
}

/// OpenTelemetry resource attributes of this process.
fn resource(service: &str) -> Resource {
    let instance = uuid::Uuid::new_v4().to_string();
    let texts =
        [("service.name", service), ("service.version", env!("CARGO_PKG_VERSION")), ("service.instance.id", &instance)];
    Resource { attributes: texts.map(|(key, text)| KeyValue::new(key, Value::StringValue(text.to_owned()))).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a10_spans_go_below_the_endpoint_and_not_below_themselves() {
        for (endpoint, to) in [
            ("http://localhost:4318", "http://localhost:4318/v1/traces"),
            ("http://localhost:4318/", "http://localhost:4318/v1/traces"),
            ("https://user:pass@host.example/otlp/?key=1", "https://host.example/otlp/v1/traces?key=1"),
            ("https://host.example/api/v1/traces", "https://host.example/api/v1/traces"),
        ] {
            assert_eq!(address(&endpoint.parse().unwrap()), to);
        }
    }
}
