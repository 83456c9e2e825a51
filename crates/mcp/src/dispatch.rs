//! The one place where requests become answers.
//!
//! Every transport hands its requests to [`Server::answer`]. It finds out which era a request is in, picks the method,
//! and gives back what the peer should see. Tools are run from `methods::tools_call` alone, behind the schema check
//! and the trust gate.

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

/// A request's surroundings, as its transport knows them.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) caller: Caller,
    pub(crate) session: Arc<Session>,
    pub(crate) style: Style,
    pub(crate) opening: Opening,
    pub(crate) outlet: Outlet,
    pub(crate) cancel: CancellationToken,
    /// The peer sends no more: streams that only wait for news end well, other work goes on.
    pub(crate) closing: CancellationToken,
    /// Who is at the other end, for what stays open longer than a token may be valid; none where connections see to it.
    pub(crate) party: Option<Party>,
    /// What this caller may still send; none where there is no limit.
    pub(crate) bucket: Option<Arc<Bucket>>,
    /// The id of this request, and the trace it is part of.
    pub(crate) trail: Trail,
}

/// A request whose peer is known, on its way into a method.
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
        // What the message says is nearer to the call than the headers around it.
        if let Ok(RequestMeta { trace: Some(trace), .. }) = &meta {
            exchange.trail.trace = Some(trace.clone());
        }
        let (span, trace) = (exchange.span(&method), exchange.trail.trace.clone());
        let work = self.answered_by(&id, &method, params, meta, exchange, era);
        let outcome = trace::scope(trace, work).instrument(span).await;
        timed.ended(outcome.is_err());
        Answer { id, era, outcome, server: self.clone() }
    }

    /// Serves a request, and tells the operator how that went.
    async fn answered_by(
        &self,
        id: &Id,
        method: &str,
        params: Params,
        meta: Result<RequestMeta, Error>,
        exchange: Exchange,
        era: Era,
    ) -> Result<Reply, Error> {
        // Handlers contain their own panics and can say more; this is for everything around them, such as a completer.
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

    /// Whether a method does work that has to be bounded. The others only look something up, or have a bound of their
    /// own; a server that is full still answers a ping, shows what there is, and can be told to stop something.
    fn needs_a_place(&self, method: &str) -> bool {
        matches!(method, "tools/call" | "resources/read" | "prompts/get" | "completion/complete")
            || self.inner().methods.contains_key(method)
    }

    /// The table of methods.
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
            // The probe of a client that does not know yet whom it talks to: tell it what a modern request needs.
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

    /// Takes a notification. Nothing is ever answered, whatever is wrong with it (M-09).
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

/// Methods of the protocol, for suggestions.
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

/// Boxed, so that requests which find a place at once do not carry it along.
fn wait_for_place(waiting: Waiting, cancel: &CancellationToken) -> BoxFuture<'_, Result<Slot, Error>> {
    Box::pin(async move {
        tokio::select! {
            slot = waiting.turn() => slot,
            () = cancel.cancelled() => Err(Error::Cancelled),
        }
    })
}

impl Exchange {
    /// What every log line of this request carries. Where nobody logs, it costs next to nothing.
    fn span(&self, method: &str) -> Span {
        request_span(&self.trail, method, &self.caller)
    }
}

/// The span of one request; `method` may be anything a peer said.
pub(crate) fn request_span(trail: &Trail, method: &str, caller: &Caller) -> Span {
    tracing::info_span!(
        "request",
        request_id = %trail.id,
        method = clipped(method),
        caller = &*caller.identity,
        via = caller.via.as_str(),
        trace_id = trail.trace.as_ref().map(|trace| tracing::field::display(trace.id())),
        // For whoever collects spans; logs leave it out.
        traceparent = trail.trace.as_ref().map(|trace| tracing::field::display(trace.parent())),
    )
}

impl Call {
    /// What a handler may touch, with the way this request can ask.
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

/// No more of a peer's text is repeated.
const MOST: usize = 128;

/// A peer's text in our error, bounded.
pub(crate) fn clip(text: &str) -> String {
    if text.len() <= MOST {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(MOST)])
}

/// The same without a copy, for a log.
fn clipped(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST)]
}
