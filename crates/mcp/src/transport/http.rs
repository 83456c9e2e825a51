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

use super::acceptor::Exposure;
use super::auth::Auth;
use super::connection_limit::ConnectionLimiter;
use super::forwarded::TrustedProxies;
use super::middleware::{CallerRules, Endpoint, error_response};
use super::origin::OriginPolicy;
use super::rate_limit::{RateLimit, RateLimiter};
use super::sessions::Sessions;
use super::{endpoint, health_endpoints, request_log, rest};
use crate::error::Error;
use crate::server::Server;
use crate::trust::TrustLevel;
use crate::trust_state::TrustState;
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
    pub trust_loopback: TrustState,
    /// Trust of callers on any other address.
    pub trust_remote: TrustState,
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
    pub error_formatter: Option<ErrorFormatter>,
    /// Public pages, served without a token and without a rate limit.
    pub pages: Option<PublicPages>,
}

/// A page for a request, if the path has one. It cannot see the caller, so it cannot reveal secrets.
pub type PublicPages = fn(method: &Method, path: &str, headers: &HeaderMap) -> Option<Response>;

/// Formats an error reply for a path; `None` if the path is not a custom route.
pub type ErrorFormatter = fn(path: &str, status: StatusCode, error: &Error) -> Option<Response>;

/// An HTTP server over one or more listeners.
#[derive(Debug, Clone)]
pub struct Http {
    pub(super) server: Server,
    pub(super) options: Options,
    sessions: Arc<Sessions>,
    pub(super) connection_limiter: Arc<ConnectionLimiter>,
    buckets: Arc<RateLimiter>,
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
            error_formatter: None,
            pages: None,
        }
    }
}

impl Http {
    pub fn new(server: Server, options: Options) -> Http {
        let limits = server.limits();
        let sessions = Arc::new(Sessions::new(
            limits.max_sessions,
            limits.session_idle_timeout,
            server.inner().state_keys.clone(),
        ));
        let (places, buckets) = (ConnectionLimiter::new(limits), Arc::new(RateLimiter::new(options.global_rate_limit)));
        server.inner().rate_limiters.register(&buckets);
        Http { server, options, sessions, connection_limiter: places, buckets }
    }

    /// The same server for another listener with its own authentication and rate limit; sessions and connections are
    /// counted together.
    pub fn with_auth(&self, auth: Auth, rate_limit: Option<RateLimit>) -> Http {
        Http { options: Options { auth, rate_limit, ..self.options.clone() }, ..self.clone() }
    }

    pub(super) fn endpoint(&self, reach: Exposure, encrypted: bool) -> Endpoint {
        let (trust, anonymous) = match reach {
            Exposure::Loopback => (&self.options.trust_loopback, "loopback"),
            Exposure::UnixSocket => (&self.options.trust_loopback, "unix"),
            // The network requires a token.
            Exposure::Network => (&self.options.trust_remote, "remote"),
        };
        Endpoint {
            server: self.server.clone(),
            sessions: self.sessions.clone(),
            origin_policy: OriginPolicy {
                hosts: self.options.allowed_hosts.clone(),
                origins: self.options.allowed_origins.clone(),
                loopback_listener: reach == Exposure::Loopback,
                any_host: reach == Exposure::UnixSocket,
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
            error_formatter: self.options.error_formatter,
            pages: self.options.pages,
        }
    }

    pub(super) fn routes(&self, endpoint: &Arc<Endpoint>) -> Router {
        Router::new()
            .route("/mcp", post(endpoint::post).get(endpoint::get).delete(endpoint::delete))
            .route("/mcp/{*method}", post(rest::call).fallback(only_post))
            .route("/health", get(health_endpoints::health))
            .route("/live", get(health_endpoints::live))
            .route("/ready", get(health_endpoints::ready))
            .route("/metrics", get(health_endpoints::metrics))
            .with_state(endpoint.clone())
            .merge(self.options.routes.clone().layer(axum::middleware::from_fn(request_log::attach_matched_route)))
            .fallback(not_found)
    }
}

/// The REST style supports only POST.
async fn only_post() -> Response {
    let error = Error::InvalidRequest("method not allowed; use POST".into());
    let mut response = error_response(StatusCode::METHOD_NOT_ALLOWED, &error, Era::Legacy);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    response
}

/// Reply for an unknown path, in the usual error format.
async fn not_found(uri: http::Uri) -> Response {
    let error = Error::MethodNotFound { method: crate::dispatch::truncate_owned(uri.path()), suggestion: None };
    error_response(StatusCode::NOT_FOUND, &error, Era::Legacy)
}
