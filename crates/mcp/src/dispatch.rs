//! The one place where requests become answers.
//!
//! Every transport hands its requests to [`Server::answer`]. It finds out which era a request is in, picks the method,
//! and gives back what the peer should see. Tools are run from `methods::tools_call` alone, behind the schema check
//! and the trust gate.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use futures_util::FutureExt;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::ask::Asking;
use crate::client::{ClientCapabilities, LogLevel, META_SERVER_INFO, META_VERSION, RequestMeta};
use crate::context::{self, Context};
use crate::error::Error;
use crate::message::{self, Id, Notification, Params, Request};
use crate::methods;
use crate::metrics::{CodeLabel, MethodLabel};
use crate::outcome::Style;
use crate::registry::nearest;
use crate::server::Server;
use crate::session::{Outlet, Session};
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
    /// What this caller may still send; none where there is no limit.
    pub(crate) bucket: Option<Arc<Bucket>>,
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
    pub(crate) meta: RequestMeta,
}

/// What a method gives back: a result's members, and what the modern era adds to them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    pub(crate) members: Map<String, Value>,
    pub(crate) kind: ResultType,
    pub(crate) cache: Option<Cache>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ResultType {
    #[default]
    Complete,
    InputRequired,
    Task,
}

/// How long, and by whom, a result may be kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cache {
    pub(crate) ttl_ms: u64,
    pub(crate) scope: &'static str,
}

/// The end of a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) id: Id,
    pub(crate) era: Era,
    pub(crate) outcome: Result<Value, Error>,
}

impl Server {
    /// Serves one request. Dropping the future cancels the work.
    pub(crate) async fn answer(
        &self,
        request: Request,
        meta: Result<RequestMeta, Error>,
        exchange: Exchange,
    ) -> Answer {
        let Request { id, method, params, .. } = request;
        let claims_modern = meta.as_ref().is_ok_and(|meta| meta.version.is_some());
        let era = if claims_modern { Era::Modern } else { Era::Legacy };
        self.inner().metrics.in_flight.inc();
        let _in_flight = InFlight(self);
        // Handlers contain their own panics and can say more; this is for everything around them, such as a completer.
        let served = AssertUnwindSafe(self.serve(id.clone(), &method, params, meta, exchange)).catch_unwind().await;
        let outcome = served.unwrap_or_else(|_| {
            Err(Error::internal("the request failed unexpectedly", format!("serving `{method}` panicked")))
        });
        let outcome = outcome.map(|reply| reply.finish(era, self));
        tracing::debug!(%method, %id, ?era, error = outcome.as_ref().err().map(Error::error_type), "request");
        if let Err(error) = &outcome {
            let label = CodeLabel { error_type: error.error_type().to_owned() };
            self.inner().metrics.errors.get_or_create(&label).inc();
            if let Error::Internal { inward, .. } = error {
                tracing::error!(%method, %inward, "internal error");
            }
        }
        Answer { id, era, outcome }
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
        if let Some(bucket) = &exchange.bucket
            && let Err(wait) = bucket.take(Instant::now())
        {
            return Err(Error::RateLimited(format!("too many requests; try again in {} ms", wait.as_millis() + 1)));
        }
        let meta = meta?;
        let (version, client, log_level) = match meta.modern()? {
            Some((version, client)) => (version, Arc::new(client.clone()), meta.log_level),
            None => (
                exchange.session.version().unwrap_or(Version::UNSTATED),
                exchange.session.client(),
                Some(exchange.session.log_level()),
            ),
        };
        let call = Call { server: self.clone(), id, params, exchange, version, client, log_level, meta };
        let known = self.route(method, call);
        // Only names we serve become labels: a peer must not grow the metrics by inventing methods.
        let label = if known.is_ok() { method } else { "unknown" };
        self.inner().metrics.requests.get_or_create(&MethodLabel { method: label.to_owned() }).inc();
        known?.await
    }

    /// The table of methods.
    fn route(
        &self,
        method: &str,
        call: Call,
    ) -> Result<futures_util::future::BoxFuture<'static, Result<Reply, Error>>, Error> {
        use methods::*;
        let ready = |reply: Result<Reply, Error>| -> futures_util::future::BoxFuture<'static, _> {
            Box::pin(std::future::ready(reply))
        };
        Ok(match (method, call.version.era()) {
            ("tools/call", _) => Box::pin(tools_call::call(call)),
            ("tools/list", _) => ready(lists::tools(&call)),
            ("resources/list", _) => ready(lists::resources(&call)),
            ("resources/templates/list", _) => ready(lists::templates(&call)),
            ("prompts/list", _) => ready(lists::prompts(&call)),
            ("resources/read", _) => Box::pin(resources_read::read(call)),
            ("prompts/get", _) => Box::pin(prompts_get::get(call)),
            ("tools/cancel", _) => ready(tasks::cancel_tool(&call)),
            ("completion/complete", _) => match (complete::form(&call)?, self.inner().methods.get(method).cloned()) {
                (complete::Form::Standard, _) => ready(complete::complete(&call)),
                (complete::Form::Generation, Some(run)) => Box::pin(extra::run(run, call)),
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
            ("tasks/get", Era::Modern) => ready(tasks::get(&call)),
            ("tasks/update", Era::Modern) => ready(tasks::update(&call)),
            ("tasks/cancel", Era::Modern) => ready(tasks::cancel(&call)),
            (other, _) => match self.inner().methods.get(other).cloned() {
                Some(run) => Box::pin(extra::run(run, call)),
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
const KNOWN: [&str; 19] = [
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

struct InFlight<'a>(&'a Server);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.inner().metrics.in_flight.dec();
    }
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
            outlet: self.exchange.outlet.clone(),
            cancel: self.exchange.cancel.clone(),
            asking,
            progress: std::sync::Mutex::new(f64::NEG_INFINITY),
            waited_ns: AtomicU64::new(0),
            questions_open: AtomicU64::new(0),
        })
    }
}

impl Reply {
    pub(crate) fn new(members: Value) -> Reply {
        let members = match members {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        Reply { members, ..Reply::default() }
    }

    pub(crate) fn cached(self, cache: Cache) -> Reply {
        Reply { cache: Some(cache), ..self }
    }

    /// The result object a peer of this era gets.
    pub(crate) fn finish(self, era: Era, server: &Server) -> Value {
        let Reply { mut members, kind, cache } = self;
        if era == Era::Legacy {
            return Value::Object(members);
        }
        let kind = match kind {
            ResultType::Complete => "complete",
            ResultType::InputRequired => "input_required",
            ResultType::Task => "task",
        };
        members.insert("resultType".into(), kind.into());
        if let Some(cache) = cache {
            members.insert("ttlMs".into(), cache.ttl_ms.into());
            members.insert("cacheScope".into(), cache.scope.into());
        }
        let meta = members.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(META_SERVER_INFO.into(), json!({ "name": server.name(), "version": server.version() }));
        }
        Value::Object(members)
    }
}

impl Answer {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match &self.outcome {
            Ok(result) => message::encode_result(&self.id, result).expect("a JSON value can be written"),
            Err(error) => message::encode_error(Some(&self.id), &error.to_object(self.era)),
        }
    }
}

impl RequestMeta {
    /// Reads `_meta` out of a request's params.
    pub(crate) fn of(params: &Params) -> Result<RequestMeta, Error> {
        #[derive(Deserialize)]
        struct JustMeta {
            #[serde(rename = "_meta")]
            meta: Option<Map<String, Value>>,
        }
        if params.is_absent() {
            return Ok(RequestMeta::default());
        }
        RequestMeta::read(params.parse::<JustMeta>()?.meta.unwrap_or_default())
    }
}

/// A peer's text in our error, bounded.
pub(crate) fn clip(text: &str) -> String {
    const MOST: usize = 128;
    if text.len() <= MOST {
        return text.to_owned();
    }
    let end = (0..=MOST).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    format!("{}…", &text[..end])
}
