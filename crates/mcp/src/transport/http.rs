//! HTTP server options and routes.
//!
//! `/mcp` serves JSON-RPC (with event streams and WebSocket on the same path), `/mcp/<method>` the REST style,
//! `/health`, `/live`, `/ready` and `/metrics` are for operators. The same middleware protects every path.

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use http::header::ALLOW;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::auth::Auth;
use super::door::Reach;
use super::forwarded::TrustedProxies;
use super::guard::{CallerRules, Endpoint, refuse};
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

/// Options of an HTTP server.
#[derive(Debug, Clone)]
pub struct Options {
    pub auth: Auth,
    /// Accepted host names besides loopback.
    pub allowed_hosts: Vec<String>,
    /// Accepted web origins besides loopback.
    pub allowed_origins: Vec<String>,
    /// Trust of callers on loopback addresses.
    pub trust_loopback: Standing,
    /// Trust of callers on any other address.
    pub trust_remote: Standing,
    /// Rate limit per caller; `None` for no limit.
    pub rate_limit: Option<RateLimit>,
    /// Proxies whose word counts for where a request comes from.
    pub trusted_proxies: TrustedProxies,
    /// Rate limit per caller of requests that a trusted proxy forwards.
    pub forwarded_rate_limit: Option<RateLimit>,
    /// Rate limit of all callers together; `None` for no limit.
    pub global_rate_limit: Option<RateLimit>,
    /// Custom routes, behind the same middleware. Their requests carry the [`Caller`] as an extension.
    pub routes: Router,
    /// Formats the middleware's error replies for custom routes.
    pub refusals: Option<Refusals>,
    /// Public pages, served without a token and without a rate limit.
    pub pages: Option<Pages>,
}

/// A page for a request, if the path has one. It cannot see the caller, so it cannot reveal secrets.
pub type Pages = fn(method: &Method, path: &str, headers: &HeaderMap) -> Option<Response>;

/// Formats an error reply for a path; `None` if the path is not a custom route.
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
            trusted_proxies: TrustedProxies::default(),
            forwarded_rate_limit: None,
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
        let sessions =
            Arc::new(Sessions::new(limits.max_sessions, limits.session_idle_timeout, server.inner().keys.clone()));
        let (places, buckets) = (Places::new(limits), Arc::new(Buckets::new(options.global_rate_limit)));
        server.inner().ledger.enter(&buckets);
        Http { server, options, sessions, places, buckets }
    }

    /// The same server for another listener with its own authentication and rate limit; sessions and connections are
    /// counted together.
    pub fn asking(&self, auth: Auth, rate_limit: Option<RateLimit>) -> Http {
        Http { options: Options { auth, rate_limit, ..self.options.clone() }, ..self.clone() }
    }

    pub(super) fn endpoint(&self, reach: Reach, encrypted: bool) -> Endpoint {
        let (trust, anonymous) = match reach {
            Reach::Loopback => (&self.options.trust_loopback, "loopback"),
            Reach::File => (&self.options.trust_loopback, "unix"),
            // The network requires a token.
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
            trusted_proxies: self.options.trusted_proxies.clone(),
            direct: CallerRules {
                trust: trust.clone(),
                anonymous: anonymous.into(),
                rate_limit: self.options.rate_limit,
            },
            // A proxy on this machine forwards callers of other machines.
            forwarded: CallerRules {
                trust: self.options.trust_remote.clone(),
                anonymous: "remote".into(),
                rate_limit: self.options.forwarded_rate_limit,
            },
            buckets: self.buckets.clone(),
            refusals: self.options.refusals,
            pages: self.options.pages,
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

/// The REST style supports only POST.
async fn only_post() -> Response {
    let error = Error::InvalidRequest("methods are called with POST".into());
    let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, &error, Era::Legacy);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    response
}

/// Reply for an unknown path, in the usual error format.
async fn nowhere(uri: http::Uri) -> Response {
    let error = Error::MethodNotFound { method: crate::dispatch::clip(uri.path()), suggestion: None };
    refuse(StatusCode::NOT_FOUND, &error, Era::Legacy)
}
