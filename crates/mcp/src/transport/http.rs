//! The HTTP listener: connections, who may connect, and which path leads where.
//!
//! `/mcp` speaks JSON-RPC (with event streams and WebSocket on the same path), `/mcp/<method>` the REST style,
//! `/health`, `/live`, `/ready` and `/metrics` are for operators. Every path stands behind the same guard.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::header::{ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN};
use http::header::{
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW, CONTENT_TYPE, ORIGIN, RETRY_AFTER, VARY,
    WWW_AUTHENTICATE,
};
use http::{HeaderValue, Method, StatusCode};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::auth::{Auth, Bearer, Presented};
use super::origin::Allowed;
use super::rate::{Bucket, Buckets, RateLimit};
use super::sessions::Sessions;
use super::slow_reader::WriteDeadline;
use super::{endpoint, rest, status};
use crate::error::Error;
use crate::message;
use crate::server::Server;
use crate::trust::{Caller, TrustLevel, Via};
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
    pub trust_loopback: TrustLevel,
    /// Trust of callers on any other address.
    pub trust_remote: TrustLevel,
    /// How many requests one address may send; none for no limit.
    pub rate_limit: Option<RateLimit>,
    /// Further paths, served behind the same guard. Their requests carry the [`Caller`] as an extension.
    pub routes: Router,
    /// How the guard's refusals are put to callers of further paths who expect another form.
    pub refusals: Option<Refusals>,
}

/// Writes a refusal for a path; none where it is no path of its own.
pub type Refusals = fn(path: &str, status: StatusCode, error: &Error) -> Option<Response>;

/// An HTTP server over one or more listeners.
#[derive(Debug, Clone)]
pub struct Http {
    server: Server,
    options: Options,
    sessions: Arc<Sessions>,
    connections: Arc<Semaphore>,
    buckets: Option<Arc<Buckets>>,
}

/// What the handlers of one listener know.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) server: Server,
    pub(crate) sessions: Arc<Sessions>,
    allowed: Allowed,
    auth: Auth,
    trust: TrustLevel,
    /// The identity of callers who need no token.
    anonymous: Arc<str>,
    buckets: Option<Arc<Buckets>>,
    refusals: Option<Refusals>,
}

/// The paths of one listener.
type Routes = TowerToHyperService<Router>;

/// A connection's place among those allowed, carried by its requests: a WebSocket keeps it after the upgrade.
#[derive(Debug, Clone)]
pub(crate) struct Place(Arc<Held>);

#[derive(Debug)]
struct Held {
    from: IpAddr,
    server: Server,
    _permit: OwnedSemaphorePermit,
    /// The listener waits for this when it stops.
    _open: TaskTrackerToken,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            auth: Auth::None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            trust_loopback: TrustLevel::Trusted,
            trust_remote: TrustLevel::Verified,
            rate_limit: None,
            routes: Router::new(),
            refusals: None,
        }
    }
}

impl Http {
    pub fn new(server: Server, options: Options) -> Http {
        let limits = server.limits();
        let sessions = Arc::new(Sessions::new(limits.max_sessions, limits.session_idle));
        let connections = Arc::new(Semaphore::new(limits.max_connections));
        let buckets = options.rate_limit.map(|limit| Arc::new(Buckets::new(limit)));
        Http { server, options, sessions, connections, buckets }
    }

    /// The same server for another listener: sessions and connections are counted together, callers are asked for this.
    pub fn asking(&self, auth: Auth, rate_limit: Option<RateLimit>) -> Http {
        let buckets = rate_limit.map(|limit| Arc::new(Buckets::new(limit)));
        Http { options: Options { auth, rate_limit, ..self.options.clone() }, buckets, ..self.clone() }
    }

    /// Serves one listener until the server is drained and its last request answered.
    ///
    /// An address beyond loopback without authentication is refused (S-06).
    pub async fn serve(&self, listener: TcpListener) -> io::Result<()> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() && matches!(self.options.auth, Auth::None) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "{address} can be reached from outside, and no token is set; set `server.token` (or MCP_API_KEY) or listen on 127.0.0.1"
                ),
            ));
        }
        let endpoint = Arc::new(self.endpoint(address));
        let routes = TowerToHyperService::new(self.routes(&endpoint));
        let (open, close) = (TaskTracker::new(), CancellationToken::new());
        let mut drained = std::pin::pin!(self.drained());
        let grace_ends = loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                grace_ends = &mut drained => break grace_ends,
            };
            match accepted {
                Ok((stream, from)) => match self.connections.clone().try_acquire_owned() {
                    Ok(permit) => {
                        let place = Place::new(&self.server, from.ip(), permit, open.token());
                        open.spawn(serve_connection(stream, place, endpoint.clone(), routes.clone(), close.clone()));
                    }
                    Err(_) => {
                        self.server.inner().metrics.rejected_connections.inc();
                        open.spawn(turn_away(stream));
                    }
                },
                // Out of file descriptors, most likely: waiting lets some close.
                Err(error) => {
                    tracing::warn!(%error, "connection could not be accepted");
                    sleep(Duration::from_millis(50)).await;
                }
            }
        };
        close.cancel();
        open.close();
        // No request is in flight any more, but their last bytes may still be leaving.
        tokio::select! {
            _ = timeout_at(grace_ends, open.wait()) => {}
            () = self.server.stopped() => {}
        }
        Ok(())
    }

    /// Ends when a drain was asked for and no request is in flight, or the grace is over; says when that is.
    async fn drained(&self) -> Instant {
        let inner = self.server.inner();
        inner.draining.cancelled().await;
        let until = self.server.grace_ends();
        while inner.metrics.in_flight.get() > 0 && Instant::now() < until && !inner.stop_now.is_cancelled() {
            sleep(Duration::from_millis(5)).await;
        }
        until
    }

    fn endpoint(&self, address: SocketAddr) -> Endpoint {
        let loopback = address.ip().is_loopback();
        Endpoint {
            server: self.server.clone(),
            sessions: self.sessions.clone(),
            allowed: Allowed {
                hosts: self.options.allowed_hosts.clone(),
                origins: self.options.allowed_origins.clone(),
                loopback_listener: loopback,
            },
            auth: self.options.auth.clone(),
            trust: if loopback { self.options.trust_loopback } else { self.options.trust_remote },
            buckets: self.buckets.clone(),
            refusals: self.options.refusals,
            anonymous: "loopback".into(),
        }
    }

    fn routes(&self, endpoint: &Arc<Endpoint>) -> Router {
        Router::new()
            .route("/mcp", post(endpoint::post).get(endpoint::get).delete(endpoint::delete))
            .route("/mcp/{*method}", post(rest::call).fallback(only_post))
            .route("/health", get(status::health))
            .route("/live", get(status::live))
            .route("/ready", get(status::ready))
            .route("/metrics", get(status::metrics))
            .with_state(endpoint.clone())
            .merge(self.options.routes.clone())
            .fallback(nowhere)
    }
}

impl Place {
    fn new(server: &Server, from: IpAddr, permit: OwnedSemaphorePermit, open: TaskTrackerToken) -> Place {
        server.inner().metrics.connections.inc();
        Place(Arc::new(Held { from, server: server.clone(), _permit: permit, _open: open }))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.server.inner().metrics.connections.dec();
    }
}

impl Endpoint {
    /// Who sent a request, as the guard found out.
    pub(crate) fn caller(&self, via: Via, extensions: &http::Extensions) -> Caller {
        match extensions.get::<Bearer>() {
            Some(bearer) => {
                Caller { via, identity: bearer.identity.clone(), trust: bearer.trust.unwrap_or(self.trust) }
            }
            None => Caller { via, identity: self.anonymous.clone(), trust: self.trust },
        }
    }

    /// What the sender of a request may still send.
    pub(crate) fn bucket(&self, extensions: &http::Extensions) -> Option<Arc<Bucket>> {
        let Place(held) = extensions.get()?;
        self.buckets.as_ref().map(|buckets| buckets.of(held.from))
    }

    /// A refusal by the guard, in the form that callers of this path expect.
    fn refuse(&self, path: &str, status: StatusCode, error: &Error) -> Response {
        let own = self.refusals.and_then(|refusals| refusals(path, status, error));
        own.unwrap_or_else(|| refuse(status, error, Era::Legacy))
    }

    /// Whether the headers carry what this listener asks for.
    pub(crate) fn is_known(&self, headers: &http::HeaderMap) -> bool {
        matches!(self.auth.check(headers), Presented::NotAsked | Presented::Valid(_))
    }
}

/// A JSON-RPC error as an HTTP reply.
pub(crate) fn refuse(status: StatusCode, error: &Error, era: Era) -> Response {
    json(status, message::encode_error(None, &error.to_object(era)))
}

pub(crate) fn json(status: StatusCode, body: Vec<u8>) -> Response {
    (status, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

/// Stands before every path: host, origin, token; and tells browsers of allowed origins that they may read the reply.
async fn guard(endpoint: Arc<Endpoint>, routes: Routes, mut request: Request) -> Response {
    if let Err(why) = endpoint.allowed.check(request.headers()) {
        return endpoint.refuse(request.uri().path(), StatusCode::FORBIDDEN, &Error::InvalidRequest(why.into()));
    }
    let origin = request.headers().get(ORIGIN).cloned();
    // Health pages answer strangers too, in one word (S-05), and load balancers as often as they ask.
    let public = matches!(request.uri().path(), "/health" | "/live" | "/ready");
    // Charged before anything is read or compared: a guess at a token is a request too.
    let charged = match endpoint.bucket(request.extensions()) {
        Some(bucket) if !public => bucket.charge(),
        _ => Ok(()),
    };
    let (is_charged, is_mcp) = (charged.is_err(), request.uri().path().starts_with("/mcp"));
    let mut response = if let Err(error) = charged {
        endpoint.refuse(request.uri().path(), StatusCode::TOO_MANY_REQUESTS, &error)
    } else if request.method() == Method::OPTIONS && origin.is_some() {
        preflight(request.headers())
    } else {
        match endpoint.auth.check(request.headers()) {
            Presented::Valid(bearer) => {
                request.extensions_mut().insert(bearer);
                follow(endpoint, routes, request).await
            }
            Presented::NotAsked => follow(endpoint, routes, request).await,
            _ if public => follow(endpoint, routes, request).await,
            presented => unauthorized(&endpoint, request.uri().path(), presented),
        }
    };
    // What further paths answer is theirs.
    if response.status() == StatusCode::TOO_MANY_REQUESTS && (is_charged || is_mcp) {
        // Whole seconds are all this header can say; the message has the milliseconds.
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if let Some(origin) = origin {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("mcp-session-id, www-authenticate"));
        headers.append(VARY, HeaderValue::from_static("origin"));
    }
    response
}

/// Leads a request to where its path says. Nearly all go to one place, and straight there: the way through the router
/// and its layers cost a tenth of a call.
async fn follow(endpoint: Arc<Endpoint>, routes: Routes, mut request: Request) -> Response {
    if request.uri().path() == "/mcp" && request.method() == Method::POST {
        return endpoint::post(State(endpoint), request).await;
    }
    let caller = endpoint.caller(Via::Http, request.extensions());
    request.extensions_mut().insert(caller);
    let Ok(response) = routes.call(request).await;
    response
}

fn preflight(requested: &http::HeaderMap) -> Response {
    let mut allowed = String::from(
        "content-type, accept, authorization, last-event-id, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name",
    );
    // A tool's mirrored parameters have names of their own.
    let asked = requested.get(ACCESS_CONTROL_REQUEST_HEADERS).and_then(|value| value.to_str().ok()).unwrap_or_default();
    for name in asked.split(',').map(str::trim).filter(|name| name.to_ascii_lowercase().starts_with("mcp-param-")) {
        allowed.push_str(", ");
        allowed.push_str(name);
    }
    let headers = [(ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"), (ACCESS_CONTROL_ALLOW_HEADERS, &allowed)];
    (StatusCode::NO_CONTENT, headers).into_response()
}

fn unauthorized(endpoint: &Endpoint, path: &str, presented: Presented) -> Response {
    let (why, challenge) = match presented {
        Presented::Missing => ("this server needs a token; send `Authorization: Bearer <token>`", "Bearer"),
        _ => ("the token is not valid", "Bearer error=\"invalid_token\""),
    };
    let mut response = endpoint.refuse(path, StatusCode::UNAUTHORIZED, &Error::Authentication(why.into()));
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
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

async fn serve_connection(
    stream: TcpStream,
    place: Place,
    endpoint: Arc<Endpoint>,
    routes: Routes,
    close: CancellationToken,
) {
    let server = place.0.server.clone();
    let limits = server.limits();
    // Answers are small and waited for; Nagle's algorithm would hold them back.
    let _ = stream.set_nodelay(true);
    let stream = TokioIo::new(WriteDeadline::new(stream, limits.write_timeout));
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // Also ends connections that are kept alive and idle: hyper waits for the next request's head.
        .header_read_timeout(limits.request_read_timeout)
        // hyper needs 8 KiB at least.
        .max_buf_size(limits.max_header_bytes.max(8192));
    let guarded = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(place.clone());
        // Boxed: hyper moves what it is given three times before it polls it, and this is 3 kB.
        let answer = Box::pin(guard(endpoint.clone(), routes.clone(), request));
        async { Ok::<_, Infallible>(answer.await) }
    });
    let mut connection = std::pin::pin!(builder.serve_connection(stream, guarded).with_upgrades());
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = close.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended early");
    }
}

/// Too many connections: said in plain HTTP, without a thought for the request.
async fn turn_away(stream: TcpStream) {
    use tokio::io::AsyncWriteExt;
    let mut stream = stream;
    let reply = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let _ = timeout(Duration::from_secs(1), stream.write_all(reply)).await;
}
