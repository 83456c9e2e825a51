//! The HTTP server: what it is told, and which path leads where.
//!
//! `/mcp` speaks JSON-RPC (with event streams and WebSocket on the same path), `/mcp/<method>` the REST style,
//! `/health`, `/live`, `/ready` and `/metrics` are for operators. Every path stands behind the same guard.

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use http::header::ALLOW;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::auth::Auth;
use super::door::Reach;
use super::guard::{Endpoint, refuse};
use super::origin::Allowed;
use super::places::Places;
use super::rate::{Buckets, RateLimit};
use super::sessions::Sessions;
use super::{endpoint, passage, rest, status};
use crate::error::Error;
use crate::server::Server;
use crate::standing::Standing;
use crate::trust::TrustLevel;
use crate::version::Era;

/// What an HTTP server does beyond serving.
#[derive(Debug, Clone)]
pub struct Options {
    pub auth: Auth,
    /// Host names beyond loopback that this server answers to.
    pub allowed_hosts: Vec<String>,
    /// Web origins beyond loopback whose pages may call.
    pub allowed_origins: Vec<String>,
    /// Trust of callers on loopback addresses.
    pub trust_loopback: Standing,
    /// Trust of callers on any other address.
    pub trust_remote: Standing,
    /// How many requests one caller may send; none for no limit.
    pub rate_limit: Option<RateLimit>,
    /// How many requests all callers together may send; none for no limit.
    pub global_rate_limit: Option<RateLimit>,
    /// Further paths, served behind the same guard. Their requests carry the [`Caller`] as an extension.
    pub routes: Router,
    /// How the guard's refusals are put to callers of further paths who expect another form.
    pub refusals: Option<Refusals>,
    /// What anybody may read who may reach this server, without a token and as often as they like.
    pub pages: Option<Pages>,
}

/// A page for a request, if it is one for a page. It cannot see who asks, so it can tell nobody anything secret.
pub type Pages = fn(method: &Method, path: &str, headers: &HeaderMap) -> Option<Response>;

/// Writes a refusal for a path; none where it is no path of its own.
pub type Refusals = fn(path: &str, status: StatusCode, error: &Error) -> Option<Response>;

/// An HTTP server over one or more listeners.
#[derive(Debug, Clone)]
pub struct Http {
    pub(super) server: Server,
    pub(super) options: Options,
    sessions: Arc<Sessions>,
    pub(super) places: Arc<Places>,
    buckets: Arc<Buckets>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            auth: Auth::None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            trust_loopback: TrustLevel::Trusted.into(),
            trust_remote: TrustLevel::Verified.into(),
            rate_limit: None,
            global_rate_limit: None,
            routes: Router::new(),
            refusals: None,
            pages: None,
        }
    }
}

impl Http {
    pub fn new(server: Server, options: Options) -> Http {
        let limits = server.limits();
        let sessions = Arc::new(Sessions::new(limits.max_sessions, limits.session_idle, server.inner().keys.clone()));
        let (places, buckets) = (Places::new(limits), Arc::new(Buckets::new(options.global_rate_limit)));
        server.inner().ledger.enter(&buckets);
        Http { server, options, sessions, places, buckets }
    }

    /// The same server for another listener: sessions and connections are counted together, callers are asked for this.
    pub fn asking(&self, auth: Auth, rate_limit: Option<RateLimit>) -> Http {
        Http { options: Options { auth, rate_limit, ..self.options.clone() }, ..self.clone() }
    }

    pub(super) fn endpoint(&self, reach: Reach, encrypted: bool) -> Endpoint {
        let (trust, anonymous) = match reach {
            Reach::Loopback => (&self.options.trust_loopback, "loopback"),
            Reach::File => (&self.options.trust_loopback, "unix"),
            // Nobody comes from outside without a token.
            Reach::Outside => (&self.options.trust_remote, "remote"),
        };
        Endpoint {
            server: self.server.clone(),
            sessions: self.sessions.clone(),
            allowed: Allowed {
                hosts: self.options.allowed_hosts.clone(),
                origins: self.options.allowed_origins.clone(),
                loopback_listener: reach == Reach::Loopback,
                any_host: reach == Reach::File,
                encrypted,
            },
            auth: self.options.auth.clone(),
            trust: trust.clone(),
            buckets: self.buckets.clone(),
            rate_limit: self.options.rate_limit,
            refusals: self.options.refusals,
            pages: self.options.pages,
            anonymous: anonymous.into(),
        }
    }

    pub(super) fn routes(&self, endpoint: &Arc<Endpoint>) -> Router {
        Router::new()
            .route("/mcp", post(endpoint::post).get(endpoint::get).delete(endpoint::delete))
            .route("/mcp/{*method}", post(rest::call).fallback(only_post))
            .route("/health", get(status::health))
            .route("/live", get(status::live))
            .route("/ready", get(status::ready))
            .route("/metrics", get(status::metrics))
            .with_state(endpoint.clone())
            .merge(self.options.routes.clone().layer(axum::middleware::from_fn(passage::tell_pattern)))
            .fallback(nowhere)
    }
}

/// The REST style is POST alone.
async fn only_post() -> Response {
    let error = Error::InvalidRequest("methods are called with POST".into());
    let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, &error, Era::Legacy);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    response
}

/// A path that leads nowhere, told as any other failure is.
async fn nowhere(uri: http::Uri) -> Response {
    let error = Error::MethodNotFound { method: crate::dispatch::clip(uri.path()), suggestion: None };
    refuse(StatusCode::NOT_FOUND, &error, Era::Legacy)
}
