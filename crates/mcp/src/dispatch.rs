//! Request dispatch.
//!
//! Every transport passes its requests to [`Server::answer`], which determines the era, routes to the method and
//! returns the reply. Tools run only from `methods::tools_call`, after the schema check and the trust check.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use crate::admission::{Entered, Slot, Waiting};
use crate::ask::Asking;
use crate::client::{ClientCapabilities, LogLevel, META_VERSION, RequestMeta};
use crate::context::{self, Context};
use crate::error::Error;
use crate::message::{Id, Notification, Params, Request};
use crate::methods;
use crate::outcome::Style;
use crate::party::Party;
use crate::registry::nearest;
use crate::reply::{Answer, Reply};
use crate::server::Server;
use crate::session::{Outlet, Session};
use crate::trace::{self, Trail};
use crate::transport::Bucket;
use crate::trust::Caller;
use crate::version::{Era, Opening, Version};

/// Transport-level context of a request.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) caller: Caller,
    pub(crate) session: Arc<Session>,
    pub(crate) style: Style,
    pub(crate) opening: Opening,
    pub(crate) outlet: Outlet,
    pub(crate) cancel: CancellationToken,
    /// Cancelled when the peer stops sending: event streams end normally, other work continues.
    pub(crate) closing: CancellationToken,
    /// The connected caller, for streams that outlive a token's validity; `None` where the connection checks this.
    pub(crate) party: Option<Party>,
    /// The caller's rate limit bucket; `None` without a limit.
    pub(crate) bucket: Option<Arc<Bucket>>,
    /// Request id and trace context.
    pub(crate) trail: Trail,
}

/// A request with resolved version and capabilities, ready for its method.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) server: Server,
    pub(crate) id: Id,
    pub(crate) params: Params,
    pub(crate) exchange: Exchange,
    pub(crate) version: Version,
    pub(crate) client: Arc<ClientCapabilities>,
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) meta: Arc<RequestMeta>,
}

impl Server {
    /// Serves one request. Dropping the future cancels the work.
    pub(crate) async fn answer(
        &self,
        request: Request,
        meta: Result<RequestMeta, Error>,
        mut exchange: Exchange,
    ) -> Answer {
        let Request { id, method, params, .. } = request;
        let era = meta.as_ref().map_or(Era::Legacy, RequestMeta::era);
        let timed = self.inner().metrics.begin(&method, exchange.caller.via);
        // The trace context in the message takes precedence over the HTTP headers.
        if let Ok(RequestMeta { trace: Some(trace), .. }) = &meta {
            exchange.trail.trace = Some(trace.clone());
        }
        let (span, trace) = (exchange.span(&method), exchange.trail.trace.clone());
        let work = self.answered_by(&id, &method, params, meta, exchange, era);
        let outcome = trace::scope(trace, work).instrument(span).await;
        timed.ended(outcome.is_err());
        Answer { id, era, outcome, server: self.clone() }
    }

    /// Serves a request and logs its outcome.
    async fn answered_by(
        &self,
        id: &Id,
        method: &str,
        params: Params,
        meta: Result<RequestMeta, Error>,
        exchange: Exchange,
        era: Era,
    ) -> Result<Reply, Error> {
        // Handlers catch their own panics with better messages; this covers the code around them, such as completers.
        let served = AssertUnwindSafe(self.serve(id.clone(), method, params, meta, exchange)).catch_unwind().await;
        let outcome = served.unwrap_or_else(|_| {
            Err(Error::internal("the request failed unexpectedly", format!("serving `{method}` panicked")))
        });
        tracing::debug!(method = ?clip(method), id = ?clip(&id.to_string()), ?era, error = outcome.as_ref().err().map(Error::error_type), "request");
        if let Err(error) = &outcome {
            self.inner().metrics.count_error(error.error_type());
            if let Error::Internal { inward, .. } = error {
                tracing::error!(%method, %inward, "internal error");
            }
        }
        outcome
    }

    async fn serve(
        &self,
        id: Id,
        method: &str,
        params: Params,
        meta: Result<RequestMeta, Error>,
        exchange: Exchange,
    ) -> Result<Reply, Error> {
        if self.is_draining() {
            return Err(Error::ShuttingDown);
        }
        if let Some(bucket) = &exchange.bucket {
            bucket.charge()?;
        }
        let _slot = match self.needs_a_place(method) {
            false => None,
            true => match self.enter(&exchange.caller)? {
                None => None,
                Some(Entered::Runs(slot)) => Some(slot),
                Some(Entered::Waits(waiting)) => Some(wait_for_place(waiting, &exchange.cancel).await?),
            },
        };
        let meta = meta?;
        let (version, client, log_level) = match meta.modern()? {
            Some((version, client)) => (version, client.clone(), meta.log_level),
            None => (
                exchange.session.version().unwrap_or(Version::UNSTATED),
                exchange.session.client(),
                Some(exchange.session.log_level()),
            ),
        };
        let meta = Arc::new(meta);
        let call = Call { server: self.clone(), id, params, exchange, version, client, log_level, meta };
        self.inner().metrics.count_request(method);
        self.route(method, call)?.await
    }

    /// Whether a method does work that needs an admission slot. The rest are lookups or have their own bound, so a full
    /// server still answers pings and lists, and accepts cancellations.
    fn needs_a_place(&self, method: &str) -> bool {
        matches!(method, "tools/call" | "resources/read" | "prompts/get" | "completion/complete")
            || self.inner().methods.contains_key(method)
    }

    /// The method table.
    fn route(&self, method: &str, call: Call) -> Result<BoxFuture<'static, Result<Reply, Error>>, Error> {
        use methods::*;
        let ready = |reply: Result<Reply, Error>| -> BoxFuture<'static, _> { Box::pin(std::future::ready(reply)) };
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
                (complete::Form::Generation, Some(run)) => Box::pin(extra::run(method.to_owned(), run, call)),
                (complete::Form::Generation, None) => {
                    return Err(Error::invalid_params("this server generates no text; give `ref` with `argument`"));
                }
            },
            ("initialize", Era::Legacy) => ready(initialize::initialize(&call)),
            ("ping", Era::Legacy) => ready(Ok(Reply::default())),
            ("logging/setLevel", Era::Legacy) => ready(logging::set_level(&call)),
            ("resources/subscribe", Era::Legacy) => ready(subscriptions::subscribe(&call)),
            ("resources/unsubscribe", Era::Legacy) => ready(subscriptions::unsubscribe(&call)),
            ("server/discover", Era::Modern) => ready(discover::discover(&call)),
            // Probe of a client that does not know the server's era: report the requirements of a modern request.
            ("server/discover", Era::Legacy) => {
                return Err(Error::invalid_params(format!("`params._meta` needs `{META_VERSION}`")));
            }
            ("subscriptions/listen", Era::Modern) => Box::pin(subscriptions::listen(call)),
            ("tasks/get", Era::Modern) => Box::pin(tasks::get(call)),
            ("tasks/update", Era::Modern) => Box::pin(tasks::update(call)),
            ("tasks/cancel", Era::Modern) => Box::pin(tasks::cancel(call)),
            (other, _) => match self.inner().methods.get(other).cloned() {
                Some(run) => Box::pin(extra::run(other.to_owned(), run, call)),
                None => {
                    let names: Vec<String> = KNOWN.iter().map(|name| (*name).to_owned()).collect();
                    let names = names.iter().chain(self.inner().methods.keys());
                    return Err(Error::MethodNotFound { method: clip(other), suggestion: nearest(other, names) });
                }
            },
        })
    }

    /// Handles a notification. Notifications never get a response, even when they are invalid (M-09).
    pub(crate) fn notified(&self, notification: &Notification, exchange: &Exchange) {
        match &*notification.method {
            "notifications/cancelled" => {
                #[derive(Deserialize)]
                struct Cancelled {
                    #[serde(rename = "requestId")]
                    request_id: Id,
                    reason: Option<String>,
                }
                if let Ok(Cancelled { request_id, reason }) = notification.params.parse() {
                    tracing::debug!(id = %request_id, ?reason, "cancelled by the client");
                    exchange.session.cancel(&request_id);
                }
            }
            "tools/cancel" => methods::tasks::cancel_tool_silently(self, &notification.params, &exchange.caller),
            other => tracing::debug!(method = other, "notification"),
        }
    }
}

/// Protocol methods, for suggestions.
pub(crate) const KNOWN: [&str; 19] = [
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
fn wait_for_place(waiting: Waiting, cancel: &CancellationToken) -> BoxFuture<'_, Result<Slot, Error>> {
    Box::pin(async move {
        tokio::select! {
            slot = waiting.turn() => slot,
            () = cancel.cancelled() => Err(Error::Cancelled),
        }
    })
}

impl Exchange {
    /// The span with the fields of every log line of this request. Costs next to nothing when logging is disabled.
    fn span(&self, method: &str) -> Span {
        request_span(&self.trail, method, &self.caller)
    }
}

/// The span of one request; `method` is untrusted input.
pub(crate) fn request_span(trail: &Trail, method: &str, caller: &Caller) -> Span {
    tracing::info_span!(
        "request",
        request_id = %trail.id,
        method = clipped(method),
        caller = &*caller.identity,
        via = caller.via.as_str(),
        trace_id = trail.trace.as_ref().map(|trace| tracing::field::display(trace.id())),
        // For span exporters; log output omits it.
        traceparent = trail.trace.as_ref().map(|trace| tracing::field::display(trace.parent())),
    )
}

impl Call {
    /// The handler's context, with the mode for requests to the client.
    pub(crate) fn context(&self, asking: Asking) -> Context {
        Context::new(context::Inner {
            server: self.server.clone(),
            caller: self.exchange.caller.clone(),
            version: self.version,
            style: self.exchange.style,
            client: self.client.clone(),
            meta: self.meta.clone(),
            log_level: self.log_level,
            session: self.exchange.session.clone(),
            outlet: self.exchange.outlet.clone(),
            cancel: self.exchange.cancel.clone(),
            asking,
            trail: self.exchange.trail.clone(),
            waited_ns: AtomicU64::new(0),
            questions_open: AtomicU64::new(0),
        })
    }
}

/// Maximum length of peer-supplied text repeated in errors and logs.
const MOST: usize = 128;

/// Truncates peer-supplied text for an error message.
pub(crate) fn clip(text: &str) -> String {
    if text.len() <= MOST {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(MOST)])
}

/// Truncates without a copy, for logs.
fn clipped(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST)]
}
