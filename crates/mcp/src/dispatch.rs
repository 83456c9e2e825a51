//! Request dispatch.
//!
//! Every transport passes its requests to [`Server::handle_request`], which determines the era, routes to the method and
//! returns the reply. Tools run only from `methods::tools_call`, after the schema check and the trust check.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use crate::admission::{AdmissionPermit, AdmissionResult, QueuedRequest};
use crate::client::{ClientCapabilities, LogLevel, META_VERSION, RequestMeta};
use crate::client_requests::ClientChannel;
use crate::connected_caller::ConnectedCaller;
use crate::context::{self, Context};
use crate::error::Error;
use crate::message::{Id, Notification, Params, Request};
use crate::methods;
use crate::outcome::RequestStyle;
use crate::registry::closest_name;
use crate::reply::{MethodReply, ServerResponse};
use crate::server::Server;
use crate::session::{MessageSink, Session};
use crate::trace::{self, RequestTrace};
use crate::transport::CallerBucket;
use crate::trust::Caller;
use crate::version::{Era, InitializeOrigin, Version};

/// Transport-level context of a request.
#[derive(Debug, Clone)]
pub(crate) struct TransportContext {
    pub(crate) caller: Caller,
    pub(crate) session: Arc<Session>,
    pub(crate) style: RequestStyle,
    pub(crate) initialize_origin: InitializeOrigin,
    pub(crate) sink: MessageSink,
    pub(crate) cancel: CancellationToken,
    /// Cancelled when the peer stops sending: event streams end normally, other work continues.
    pub(crate) closing: CancellationToken,
    /// The connected caller, for streams that outlive a token's validity; `None` where the connection checks this.
    pub(crate) connected_caller: Option<ConnectedCaller>,
    /// The caller's rate limit bucket; `None` without a limit.
    pub(crate) bucket: Option<Arc<CallerBucket>>,
    /// Request id and trace context.
    pub(crate) request_trace: RequestTrace,
}

/// A request with resolved version and capabilities, ready for its method.
#[derive(Debug)]
pub(crate) struct MethodCall {
    pub(crate) server: Server,
    pub(crate) id: Id,
    pub(crate) params: Params,
    pub(crate) transport: TransportContext,
    pub(crate) version: Version,
    pub(crate) client: Arc<ClientCapabilities>,
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) meta: Arc<RequestMeta>,
}

impl Server {
    /// Serves one request. Dropping the future cancels the work.
    pub(crate) async fn handle_request(
        &self,
        request: Request,
        meta: Result<RequestMeta, Error>,
        mut exchange: TransportContext,
    ) -> ServerResponse {
        let Request { id, method, params, .. } = request;
        let era = meta.as_ref().map_or(Era::Legacy, RequestMeta::era);
        let is_in_history = !meta.as_ref().is_ok_and(|meta| meta.is_excluded_from_history);
        let timed = self.inner().metrics.start_request(&method, exchange.caller.transport, is_in_history);
        // The trace context in the message takes precedence over the HTTP headers.
        if let Ok(RequestMeta { trace: Some(trace), .. }) = &meta {
            exchange.request_trace.trace = Some(trace.clone());
        }
        let (span, trace) = (exchange.span(&method), exchange.request_trace.trace.clone());
        let work = self.handle_logged(&id, &method, params, meta, exchange, era);
        let outcome = trace::scope(trace, work).instrument(span).await;
        timed.finish(outcome.is_err());
        ServerResponse { id, era, outcome, server: self.clone() }
    }

    /// Serves a request and logs its outcome.
    async fn handle_logged(
        &self,
        id: &Id,
        method: &str,
        params: Params,
        meta: Result<RequestMeta, Error>,
        exchange: TransportContext,
        era: Era,
    ) -> Result<MethodReply, Error> {
        // Handlers catch their own panics with better messages; this covers the code around them, such as completers.
        let served = AssertUnwindSafe(self.dispatch(id.clone(), method, params, meta, exchange)).catch_unwind().await;
        let outcome = served.unwrap_or_else(|_| {
            Err(Error::internal("the request failed unexpectedly", format!("handler of `{method}` panicked")))
        });
        tracing::debug!(method = ?truncate_owned(method), id = ?truncate_owned(&id.to_string()), ?era, error = outcome.as_ref().err().map(Error::error_type), "request");
        if let Err(error) = &outcome {
            self.inner().metrics.count_error(error.error_type());
            if let Error::Internal { inward, .. } = error {
                tracing::error!(%method, error = %inward, "internal error");
            }
        }
        outcome
    }

    async fn dispatch(
        &self,
        id: Id,
        method: &str,
        params: Params,
        meta: Result<RequestMeta, Error>,
        exchange: TransportContext,
    ) -> Result<MethodReply, Error> {
        if self.is_draining() {
            return Err(Error::ShuttingDown);
        }
        if let Some(bucket) = &exchange.bucket {
            bucket.charge()?;
        }
        let _slot = match self.needs_admission(method) {
            false => None,
            true => match self.try_admit(&exchange.caller)? {
                None => None,
                Some(AdmissionResult::Admitted(slot)) => Some(slot),
                Some(AdmissionResult::Queued(waiting)) => Some(wait_for_admission(waiting, &exchange.cancel).await?),
            },
        };
        let meta = meta?;
        let (version, client, log_level) = match meta.modern()? {
            Some((version, client)) => (version, client.clone(), meta.log_level),
            None => (
                exchange.session.version().unwrap_or(Version::DEFAULT),
                exchange.session.client(),
                Some(exchange.session.log_level()),
            ),
        };
        let meta = Arc::new(meta);
        let call =
            MethodCall { server: self.clone(), id, params, transport: exchange, version, client, log_level, meta };
        self.inner().metrics.count_request(method);
        self.route(method, call)?.await
    }

    /// The method table.
    fn route(&self, method: &str, call: MethodCall) -> Result<BoxFuture<'static, Result<MethodReply, Error>>, Error> {
        use methods::*;
        let ready =
            |reply: Result<MethodReply, Error>| -> BoxFuture<'static, _> { Box::pin(std::future::ready(reply)) };
        Ok(match (method, call.version.era()) {
            ("tools/call", _) => Box::pin(tools_call::call(call)),
            ("tools/list", _) => ready(lists::tools(&call)),
            ("resources/list", _) => Box::pin(resources_list::list(call)),
            ("resources/templates/list", _) => ready(lists::templates(&call)),
            ("prompts/list", _) => ready(lists::prompts(&call)),
            ("resources/read", _) => Box::pin(resources_read::read(call)),
            ("prompts/get", _) => Box::pin(prompts_get::get(call)),
            ("tools/cancel", _) => Box::pin(tasks::cancel_tool(call)),
            ("completion/complete", _) => match (complete::form(&call)?, self.inner().methods.get(method).cloned()) {
                (complete::Form::Standard, _) => ready(complete::complete(&call)),
                (complete::Form::Generation, Some(run)) => Box::pin(custom::run(method.to_owned(), run, call)),
                (complete::Form::Generation, None) => {
                    return Err(Error::invalid_params("this server does not generate text; set `ref` and `argument`"));
                }
            },
            ("initialize", Era::Legacy) => ready(initialize::initialize(&call)),
            ("ping", Era::Legacy) => ready(Ok(MethodReply::default())),
            ("logging/setLevel", Era::Legacy) => ready(logging::set_level(&call)),
            ("resources/subscribe" | "resources/unsubscribe", Era::Legacy) if self.inner().suppress_legacy_changes => {
                // Not advertised to legacy clients, so not served.
                return Err(Error::MethodNotFound { method: method.to_owned(), suggestion: None });
            }
            ("resources/subscribe", Era::Legacy) => ready(subscriptions::subscribe(&call)),
            ("resources/unsubscribe", Era::Legacy) => ready(subscriptions::unsubscribe(&call)),
            ("server/discover", Era::Modern) => ready(discover::discover(&call)),
            // Probe of a client that does not know the server's era: report the requirements of a modern request.
            ("server/discover", Era::Legacy) => {
                return Err(Error::invalid_params(format!("`params._meta` requires `{META_VERSION}`")));
            }
            ("subscriptions/listen", Era::Modern) => Box::pin(subscriptions::listen(call)),
            ("tasks/get", Era::Modern) => Box::pin(tasks::get(call)),
            ("tasks/update", Era::Modern) => Box::pin(tasks::update(call)),
            ("tasks/cancel", Era::Modern) => Box::pin(tasks::cancel(call)),
            (other, _) => match self.inner().methods.get(other).cloned() {
                Some(run) => Box::pin(custom::run(other.to_owned(), run, call)),
                None => {
                    let names: Vec<String> = PROTOCOL_METHODS.iter().map(|name| (*name).to_owned()).collect();
                    let names = names.iter().chain(self.inner().methods.keys());
                    return Err(Error::MethodNotFound {
                        method: truncate_owned(other),
                        suggestion: closest_name(other, names),
                    });
                }
            },
        })
    }

    /// Handles a notification. Notifications never get a response, even when they are invalid (M-09).
    pub(crate) fn handle_notification(&self, notification: &Notification, exchange: &TransportContext) {
        match &*notification.method {
            "notifications/cancelled" => {
                #[derive(Deserialize)]
                struct CancelledParams {
                    #[serde(rename = "requestId")]
                    request_id: Id,
                    reason: Option<String>,
                }
                if let Ok(CancelledParams { request_id, reason }) = notification.params.parse() {
                    tracing::debug!(id = %request_id, ?reason, "cancelled by the client");
                    exchange.session.cancel(&request_id);
                }
            }
            "tools/cancel" => methods::tasks::cancel_tool_notification(self, &notification.params, &exchange.caller),
            other => tracing::debug!(method = other, "notification"),
        }
    }
}

/// Protocol methods, for suggestions.
pub(crate) const PROTOCOL_METHODS: [&str; 19] = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "tools/cancel",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "server/discover",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
];

/// Boxed, to keep the future small for requests that get a slot immediately.
fn wait_for_admission(
    waiting: QueuedRequest,
    cancel: &CancellationToken,
) -> BoxFuture<'_, Result<AdmissionPermit, Error>> {
    Box::pin(async move {
        tokio::select! {
            slot = waiting.wait() => slot,
            () = cancel.cancelled() => Err(Error::Cancelled),
        }
    })
}

impl TransportContext {
    /// The span with the fields of every log line of this request. Costs next to nothing when logging is disabled.
    fn span(&self, method: &str) -> Span {
        request_span(&self.request_trace, method, &self.caller)
    }
}

/// The span of one request; `method` is untrusted input.
pub(crate) fn request_span(trail: &RequestTrace, method: &str, caller: &Caller) -> Span {
    tracing::info_span!(
        "request",
        request_id = %trail.id,
        method = truncate(method),
        caller = &*caller.identity,
        via = caller.transport.as_str(),
        trace_id = trail.trace.as_ref().map(|trace| tracing::field::display(trace.id())),
        // For span exporters; log output omits it.
        traceparent = trail.trace.as_ref().map(|trace| tracing::field::display(trace.traceparent())),
    )
}

impl MethodCall {
    /// The handler's context, with the mode for requests to the client.
    pub(crate) fn context(&self, asking: ClientChannel) -> Context {
        Context::new(context::Inner {
            server: self.server.clone(),
            caller: self.transport.caller.clone(),
            version: self.version,
            style: self.transport.style,
            client: self.client.clone(),
            meta: self.meta.clone(),
            log_level: self.log_level,
            session: self.transport.session.clone(),
            sink: self.transport.sink.clone(),
            cancel: self.transport.cancel.clone(),
            client_channel: asking,
            request_trace: self.transport.request_trace.clone(),
            client_wait_ns: AtomicU64::new(0),
            pending_client_requests: AtomicU64::new(0),
        })
    }
}

/// Maximum length of peer-supplied text repeated in errors and logs.
const MAX_ECHOED_LEN: usize = 128;

/// Truncates peer-supplied text for an error message.
pub(crate) fn truncate_owned(text: &str) -> String {
    if text.len() <= MAX_ECHOED_LEN {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(MAX_ECHOED_LEN)])
}

/// Truncates without a copy, for logs.
fn truncate(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_ECHOED_LEN)]
}
