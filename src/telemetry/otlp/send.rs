//! Sends spans to a collector, many at a time, from a thread of its own: nothing that serves callers waits for it.

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

use super::message::{ExportTraceServiceRequest, Resource, ResourceSpans, Scope, ScopeSpans, Span};
use crate::providers::client::{Answer, Client};
use crate::providers::{Head, retry_after};
use crate::supervised::{self, Name};

/// The way to a collector.
pub(super) struct Sender {
    pub(super) spans: mpsc::Receiver<Span>,
    /// How many found no room.
    pub(super) dropped: Arc<AtomicU64>,
    pub(super) client: Client,
    pub(super) to: Uri,
    /// Sent with every request.
    pub(super) headers: HeaderMap,
    /// Who tells.
    pub(super) resource: Resource,
    pub(super) timeout: Duration,
    /// Nothing new will come, and nobody waits long for the rest.
    pub(super) stopping: CancellationToken,
}

/// What has been said to the operator, who is not told the same for every batch.
#[derive(Debug, Default)]
struct Told {
    failing: bool,
    dropping: bool,
}

/// Spans in one request.
const MOST_IN_BATCH: usize = 512;
/// How long the first span of a batch waits for others.
const GATHERING: Duration = Duration::from_secs(1);
/// A batch that a collector has no time for is sent so often before it is given up.
const MOST_TRIES: u32 = 4;
/// The wait before the second try. It doubles with every further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// No collector is waited for any longer, whatever it asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Why a batch did not arrive.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("it answers with status {0}")]
    Refused(StatusCode),
    /// It may be taken later.
    #[error("it has no time (status {status})")]
    Busy { status: StatusCode, wait: Option<Duration> },
    #[error("it cannot be reached in time")]
    Unreached,
    /// It was not sent at all.
    #[error("a fault of corbie itself, which the log tells")]
    OwnFault,
}

impl Sender {
    /// Sends what comes until it is time to stop and nothing is left.
    pub(super) async fn run(mut self) {
        let mut told = Told::default();
        while let Some(batch) = self.gather().await {
            let count = batch.len();
            match contained(self.deliver(batch)).await {
                Ok(()) if told.failing => {
                    told.failing = false;
                    tracing::info!("spans reach the collector again");
                }
                Ok(()) => {}
                Err(failure) if !told.failing => {
                    told.failing = true;
                    let advice = "check `telemetry.otlp`; spans are dropped until it takes them";
                    tracing::warn!(spans = count, "the collector did not take spans: {failure}; {advice}");
                }
                Err(failure) => tracing::debug!(spans = count, "the collector did not take spans: {failure}"),
            }
            let dropped = self.dropped.load(Ordering::Relaxed);
            if dropped > 0 && !std::mem::replace(&mut told.dropping, true) {
                tracing::warn!(dropped, "spans come faster than the collector takes them; this is told once");
            }
        }
        tracing::debug!(dropped = self.dropped.load(Ordering::Relaxed), "no more spans are sent");
    }

    /// Waits for spans, and a moment for more.
    async fn gather(&mut self) -> Option<Vec<Span>> {
        let mut batch = Vec::new();
        let mut until = None;
        while batch.len() < MOST_IN_BATCH {
            let room = MOST_IN_BATCH - batch.len();
            tokio::select! {
                // First what is there, so that nothing is left behind at the end.
                biased;
                taken = self.spans.recv_many(&mut batch, room) => match taken {
                    0 => break,
                    _ => until = until.or(Some(Instant::now() + GATHERING)),
                },
                () = self.stopping.cancelled() => break,
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => break,
            }
        }
        (!batch.is_empty()).then_some(batch)
    }

    /// Sends a batch, again where the collector has no time or cannot be reached, and not for ever.
    async fn deliver(&self, spans: Vec<Span>) -> Result<(), Failure> {
        let body: Bytes = self.request(spans).encode_to_vec().into();
        let mut tries = 1;
        loop {
            let failure = match self.send(body.clone()).await {
                Err(failure) if tries < MOST_TRIES && !self.stopping.is_cancelled() => failure,
                end => return end,
            };
            let own = FIRST_WAIT * 2_u32.pow(tries - 1);
            let wait = match failure {
                Failure::Refused(_) | Failure::OwnFault => return Err(failure),
                Failure::Busy { wait, .. } => wait.unwrap_or(own),
                Failure::Unreached => own,
            };
            tokio::select! {
                () = tokio::time::sleep(wait.min(LONGEST_WAIT)) => {}
                // Once more, and then it has to do.
                () = self.stopping.cancelled() => {}
            }
            tries += 1;
        }
    }

    async fn send(&self, body: Bytes) -> Result<(), Failure> {
        let mut request = http::Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.to.clone();
        *request.headers_mut() = self.headers.clone();
        let sent = self.client.send(request, Instant::now() + self.timeout).await;
        let Answer { status, headers, .. } = sent.map_err(|_| Failure::Unreached)?;
        match status.as_u16() {
            200..=299 => Ok(()),
            429 | 502..=504 => {
                let wait = retry_after::of(Head { status, headers: &headers, at: SystemTime::now() });
                Err(Failure::Busy { status, wait })
            }
            _ => Err(Failure::Refused(status)),
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

/// A panic loses one batch, at most, and the thread goes on with those that follow.
async fn contained(delivery: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    AssertUnwindSafe(delivery).catch_unwind().await.unwrap_or_else(|_| {
        supervised::note(Name("export over OTLP"));
        Err(Failure::OwnFault)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_loses_one_batch_and_health_tells_of_it() {
        let failed = contained(async { panic!("on purpose") }).await;
        assert!(matches!(failed, Err(Failure::OwnFault)), "{failed:?}");
        assert!(supervised::impaired().is_some_and(|why| why.contains("`export over OTLP` failed")));
        assert!(contained(async { Ok(()) }).await.is_ok());
    }
}
