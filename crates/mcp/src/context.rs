//! Request context for handlers: caller, progress, logging, cancellation, client requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::client::{ClientCapabilities, LogLevel, RequestMeta};
use crate::client_requests::{ClientChannel, ClientRequestError};
use crate::deferred_progress::DeferredProgress;
use crate::message::{self, Id};
use crate::outcome::RequestStyle;
use crate::progress::ProgressUpdate;
use crate::server::Server;
use crate::session::{MessageSink, Session};
use crate::trace::{RequestId, RequestTrace, TraceContext};
use crate::trust::Caller;
use crate::version::{Era, Version};

/// The context of one call. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Context(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) server: Server,
    pub(crate) caller: Caller,
    pub(crate) version: Version,
    pub(crate) style: RequestStyle,
    pub(crate) client: Arc<ClientCapabilities>,
    pub(crate) meta: Arc<RequestMeta>,
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) session: Arc<Session>,
    pub(crate) sink: MessageSink,
    pub(crate) cancel: CancellationToken,
    pub(crate) client_channel: ClientChannel,
    pub(crate) request_trace: RequestTrace,
    /// Time spent waiting for the client, which is not counted against the tool timeout.
    pub(crate) client_wait_ns: AtomicU64,
    pub(crate) pending_client_requests: AtomicU64,
}

impl Context {
    pub(crate) fn new(inner: Inner) -> Context {
        Context(Arc::new(inner))
    }

    pub fn server(&self) -> &Server {
        &self.0.server
    }

    pub fn caller(&self) -> &Caller {
        &self.0.caller
    }

    /// The protocol version of this request.
    pub fn version(&self) -> Version {
        self.0.version
    }

    pub fn era(&self) -> Era {
        self.0.version.era()
    }

    pub fn style(&self) -> RequestStyle {
        self.0.style
    }

    /// The capabilities the client declared.
    pub fn client(&self) -> &ClientCapabilities {
        &self.0.client
    }

    /// The complete `_meta` of the request.
    pub fn meta(&self) -> &Map<String, Value> {
        self.0.meta.all()
    }

    /// The id of the request, recorded in its log lines.
    pub fn request_id(&self) -> &RequestId {
        &self.0.request_trace.id
    }

    /// The caller's trace context, if it sent one. Code within the call can also use [`TraceContext::current`].
    pub fn trace(&self) -> Option<&TraceContext> {
        self.0.request_trace.trace.as_ref()
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.cancel.is_cancelled()
    }

    /// Completes when the caller cancels; for work that dropping the future does not stop, such as a thread.
    pub async fn cancelled(&self) {
        self.0.cancel.cancelled().await;
    }

    /// Reports progress if the caller requested it. Never blocks. Values must increase; smaller ones are not sent.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(token) = &self.0.meta.progress_token else { return };
        let step = ProgressUpdate { progress, total, message };
        self.0.meta.progress.report(token, step, |notification| self.0.sink.try_send(notification));
    }

    /// A handle for reporting progress after this call was answered, while its work continues.
    pub fn deferred_progress(&self) -> DeferredProgress {
        DeferredProgress::new(self.0.session.clone(), self.era(), self.0.meta.clone())
    }

    /// Sends a log message to the client, if its log level includes this one. Never blocks.
    pub fn log(&self, level: LogLevel, logger: Option<&str>, data: impl Into<Value>) {
        if self.0.log_level.is_none_or(|wanted| level < wanted) {
            return;
        }
        let mut params = Map::new();
        params.insert("level".into(), json!(level));
        if let Some(logger) = logger {
            params.insert("logger".into(), logger.into());
        }
        params.insert("data".into(), data.into());
        self.try_notify("notifications/message", &params);
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    pub(crate) fn client_channel(&self) -> &ClientChannel {
        &self.0.client_channel
    }

    pub(crate) fn client_wait(&self) -> Duration {
        Duration::from_nanos(self.0.client_wait_ns.load(Ordering::Relaxed))
    }

    pub(crate) fn is_waiting_for_client(&self) -> bool {
        self.0.pending_client_requests.load(Ordering::Relaxed) > 0
    }

    /// Sends a request on the caller's stream and waits for the response.
    pub(crate) async fn send_request(&self, method: &str, params: &Value) -> Result<Value, ClientRequestError> {
        if !self.0.sink.is_open() {
            return Err(ClientRequestError::NoChannel);
        }
        let (id, answer) = self.0.server.register_client_request(&self.0.caller);
        let request = message::encode_call(Some(&id), method, params)
            .map_err(|error| ClientRequestError::InvalidResponse(error.to_string()))?;
        let waiting = ResponseWait::new(&self.0, &id);
        if !self.0.sink.send(request).await {
            return Err(ClientRequestError::NoChannel);
        }
        let response = tokio::time::timeout(self.0.server.limits().client_response_timeout, answer).await;
        drop(waiting);
        match response {
            Err(_) | Ok(Err(_)) => Err(ClientRequestError::Timeout),
            Ok(Ok(response)) => response.parse().map_err(ClientRequestError::ErrorResponse),
        }
    }

    fn try_notify(&self, method: &str, params: &Map<String, Value>) {
        if let Ok(notification) = message::encode_call(None, method, params) {
            self.0.sink.try_send(notification);
        }
    }
}

/// Measures the wait for a client response, and removes the pending request on drop, including when the future is
/// cancelled.
struct ResponseWait<'a> {
    call: &'a Inner,
    id: &'a Id,
    since: Instant,
}

impl<'a> ResponseWait<'a> {
    fn new(call: &'a Inner, id: &'a Id) -> ResponseWait<'a> {
        call.pending_client_requests.fetch_add(1, Ordering::Relaxed);
        ResponseWait { call, id, since: Instant::now() }
    }
}

impl Drop for ResponseWait<'_> {
    fn drop(&mut self) {
        let waited = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.call.client_wait_ns.fetch_add(waited, Ordering::Relaxed);
        self.call.pending_client_requests.fetch_sub(1, Ordering::Relaxed);
        self.call.server.unregister_client_request(self.id);
    }
}
