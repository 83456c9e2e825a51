//! Request context for handlers: caller, progress, logging, cancellation, client requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::ask::{AskError, Asking};
use crate::client::{ClientCapabilities, LogLevel, RequestMeta};
use crate::later::Later;
use crate::message::{self, Id};
use crate::outcome::Style;
use crate::progress::Step;
use crate::server::Server;
use crate::session::{Outlet, Session};
use crate::trace::{RequestId, Trace, Trail};
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
    pub(crate) style: Style,
    pub(crate) client: Arc<ClientCapabilities>,
    pub(crate) meta: Arc<RequestMeta>,
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) session: Arc<Session>,
    pub(crate) outlet: Outlet,
    pub(crate) cancel: CancellationToken,
    pub(crate) asking: Asking,
    pub(crate) trail: Trail,
    /// Time spent waiting for the client, which is not counted against the tool timeout.
    pub(crate) waited_ns: AtomicU64,
    pub(crate) questions_open: AtomicU64,
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

    pub fn style(&self) -> Style {
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
        &self.0.trail.id
    }

    /// The caller's trace context, if it sent one. Code within the call can also use [`Trace::current`].
    pub fn trace(&self) -> Option<&Trace> {
        self.0.trail.trace.as_ref()
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
        let step = Step { progress, total, message };
        self.0.meta.reached.tell(token, step, |notification| self.0.outlet.offer(notification));
    }

    /// A handle for reporting progress after this call was answered, while its work continues.
    pub fn later(&self) -> Later {
        Later::new(self.0.session.clone(), self.era(), self.0.meta.clone())
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
        self.offer("notifications/message", &params);
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    pub(crate) fn asking(&self) -> &Asking {
        &self.0.asking
    }

    pub(crate) fn waited(&self) -> Duration {
        Duration::from_nanos(self.0.waited_ns.load(Ordering::Relaxed))
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.0.questions_open.load(Ordering::Relaxed) > 0
    }

    /// Sends a request on the caller's stream and waits for the response.
    pub(crate) async fn ask_on_the_wire(&self, method: &str, params: &Value) -> Result<Value, AskError> {
        if !self.0.outlet.is_open() {
            return Err(AskError::NoWay);
        }
        let (id, answer) = self.0.server.expect_answer(&self.0.caller);
        let request =
            message::encode_call(Some(&id), method, params).map_err(|error| AskError::Unusable(error.to_string()))?;
        let waiting = Waiting::new(&self.0, &id);
        if !self.0.outlet.send(request).await {
            return Err(AskError::NoWay);
        }
        let response = tokio::time::timeout(self.0.server.limits().client_response_timeout, answer).await;
        drop(waiting);
        match response {
            Err(_) | Ok(Err(_)) => Err(AskError::TimedOut),
            Ok(Ok(response)) => response.parse().map_err(AskError::Refused),
        }
    }

    fn offer(&self, method: &str, params: &Map<String, Value>) {
        if let Ok(notification) = message::encode_call(None, method, params) {
            self.0.outlet.offer(notification);
        }
    }
}

/// Measures the wait for a client response, and removes the pending request on drop, including when the future is
/// cancelled.
struct Waiting<'a> {
    call: &'a Inner,
    id: &'a Id,
    since: Instant,
}

impl<'a> Waiting<'a> {
    fn new(call: &'a Inner, id: &'a Id) -> Waiting<'a> {
        call.questions_open.fetch_add(1, Ordering::Relaxed);
        Waiting { call, id, since: Instant::now() }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let waited = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.call.waited_ns.fetch_add(waited, Ordering::Relaxed);
        self.call.questions_open.fetch_sub(1, Ordering::Relaxed);
        self.call.server.forget_answer(self.id);
    }
}
