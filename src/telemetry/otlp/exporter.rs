//! Sends spans to a collector in batches, from a separate thread, so that requests never wait for it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, Method, StatusCode, Uri};
use prost::Message;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::proto::{ExportTraceServiceRequest, Resource, ResourceSpans, Scope, ScopeSpans, Span};
use crate::providers::http_client::{BufferedResponse, HttpClient};
use crate::providers::{ResponseHead, retry_after};
use crate::supervisor::{self, TaskName};
use corbie_util::backoff::Backoff;

/// Batching sender with retries.
pub(super) struct SpanExporter {
    pub(super) spans: mpsc::Receiver<Span>,
    /// Spans dropped because the queue was full.
    pub(super) dropped: Arc<AtomicU64>,
    pub(super) client: HttpClient,
    pub(super) to: Uri,
    /// Sent with every request.
    pub(super) headers: HeaderMap,
    /// The exporting process.
    pub(super) resource: Resource,
    pub(super) timeout: Duration,
    /// Shutdown: no new spans arrive, and the remaining ones get little time.
    pub(super) stopping: CancellationToken,
}

/// Problems already logged, so that each is logged once and not for every batch.
#[derive(Debug, Default)]
struct ReportedProblems {
    failing: bool,
    dropping: bool,
}

/// Maximum spans per request.
const MAX_BATCH: usize = 512;
/// How long the first span of a batch waits for more.
const BATCH_DELAY: Duration = Duration::from_secs(1);
/// Maximum attempts per batch; then it is dropped.
const MAX_ATTEMPTS: u32 = 4;
/// Upper bound of the backoff, also for a collector's `retry-after`.
const MAX_BACKOFF: Duration = Duration::from_secs(30);
const RETRY_BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), MAX_BACKOFF);

/// Why a batch was not delivered.
#[derive(Debug, thiserror::Error)]
enum ExportError {
    #[error("collector responded with status {0}")]
    Refused(StatusCode),
    /// The collector may accept it later.
    #[error("collector is overloaded (status {status})")]
    Busy { status: StatusCode, wait: Option<Duration> },
    #[error("connection timed out")]
    Unreachable,
    /// The batch was not sent.
    #[error("internal error; see the log")]
    Internal,
}

impl SpanExporter {
    /// Sends batches until shutdown, when the queue is empty.
    pub(super) async fn run(mut self) {
        let mut told = ReportedProblems::default();
        while let Some(batch) = self.next_batch().await {
            let count = batch.len();
            match catch_panic(self.deliver(batch)).await {
                Ok(()) if told.failing => {
                    told.failing = false;
                    tracing::info!("span export recovered");
                }
                Ok(()) => {}
                Err(failure) if !told.failing => {
                    told.failing = true;
                    let advice = "check `telemetry.otlp`; spans are dropped until export succeeds";
                    tracing::warn!(spans = count, "span export failed: {failure}; {advice}");
                }
                Err(failure) => tracing::debug!(spans = count, "span export failed: {failure}"),
            }
            let dropped = self.dropped.load(Ordering::Relaxed);
            if dropped > 0 && !std::mem::replace(&mut told.dropping, true) {
                tracing::warn!(dropped, "span queue is full; dropping spans (logged once)");
            }
        }
        tracing::debug!(dropped = self.dropped.load(Ordering::Relaxed), "span exporter stopped");
    }

    /// Waits for the first span, then up to `GATHERING` for more.
    async fn next_batch(&mut self) -> Option<Vec<Span>> {
        let mut batch = Vec::new();
        let mut until = None;
        while batch.len() < MAX_BATCH {
            let room = MAX_BATCH - batch.len();
            tokio::select! {
                // Drain the queue first, so that no span is lost at shutdown.
                biased;
                taken = self.spans.recv_many(&mut batch, room) => match taken {
                    0 => break,
                    _ => until = until.or(Some(Instant::now() + BATCH_DELAY)),
                },
                () = self.stopping.cancelled() => break,
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => break,
            }
        }
        (!batch.is_empty()).then_some(batch)
    }

    /// Sends a batch, with a bounded number of retries if the collector is busy or unreachable.
    async fn deliver(&self, spans: Vec<Span>) -> Result<(), ExportError> {
        let body: Bytes = self.request(spans).encode_to_vec().into();
        let mut tries = 1;
        loop {
            let failure = match self.send(body.clone()).await {
                Err(failure) if tries < MAX_ATTEMPTS && !self.stopping.is_cancelled() => failure,
                end => return end,
            };
            let own = RETRY_BACKOFF.delay_after(tries);
            let wait = match failure {
                ExportError::Refused(_) | ExportError::Internal => return Err(failure),
                ExportError::Busy { wait, .. } => wait.unwrap_or(own),
                ExportError::Unreachable => own,
            };
            tokio::select! {
                () = tokio::time::sleep(wait.min(MAX_BACKOFF)) => {}
                // On shutdown, make one last attempt immediately.
                () = self.stopping.cancelled() => {}
            }
            tries += 1;
        }
    }

    async fn send(&self, body: Bytes) -> Result<(), ExportError> {
        let mut request = http::Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.to.clone();
        *request.headers_mut() = self.headers.clone();
        let sent = self.client.send(request, Instant::now() + self.timeout).await;
        let BufferedResponse { status, headers, .. } = sent.map_err(|_| ExportError::Unreachable)?;
        match status.as_u16() {
            200..=299 => Ok(()),
            429 | 502..=504 => {
                let wait =
                    retry_after::from_head(ResponseHead { status, headers: &headers, received_at: SystemTime::now() });
                Err(ExportError::Busy { status, wait })
            }
            _ => Err(ExportError::Refused(status)),
        }
    }

    fn request(&self, spans: Vec<Span>) -> ExportTraceServiceRequest {
        let scope = Scope { name: "corbie".into(), version: env!("CARGO_PKG_VERSION").into() };
        let scope_spans = vec![ScopeSpans { scope: Some(scope), spans }];
        ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans { resource: Some(self.resource.clone()), scope_spans }],
        }
    }
}

/// A panic loses at most one batch; the thread continues with the next one.
async fn catch_panic(delivery: impl Future<Output = Result<(), ExportError>>) -> Result<(), ExportError> {
    AssertUnwindSafe(delivery).catch_unwind().await.unwrap_or_else(|_| {
        supervisor::record_restart(TaskName("otlp_export"));
        Err(ExportError::Internal)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_loses_one_batch_and_health_tells_of_it() {
        let failed = catch_panic(async { panic!("on purpose") }).await;
        assert!(matches!(failed, Err(ExportError::Internal)), "{failed:?}");
        assert!(supervisor::impairment().is_some_and(|why| why.contains("`otlp_export` failed")));
        assert!(catch_panic(async { Ok(()) }).await.is_ok());
    }
}
