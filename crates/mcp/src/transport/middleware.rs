//! HTTP middleware: host, origin, token and rate checks, and error replies.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::header::{ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN};
use http::header::{
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_HEADERS, AUTHORIZATION, CACHE_CONTROL,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ORIGIN, REFERRER_POLICY, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;

use super::auth::{Auth, Credential, INVALID_TOKEN, TokenHolder};
use super::connection_limit::network;
use super::endpoint;
use super::forwarded::{ForwardedClient, TrustedProxies};
use super::http::{ErrorFormatter, PublicPages};
use super::listener::ConnectionPermit;
use super::origin::{NotAllowed, OriginPolicy};
use super::rate_limit::{CallerBucket, RateLimit, RateLimitKey, RateLimiter};
use super::request_log;
use super::sessions::Sessions;
use crate::audit::AuditEvent;
use crate::connected_caller::ConnectedCaller;
use crate::error::Error;
use crate::message;
use crate::server::Server;
use crate::trace::{REQUEST_ID_HEADER, RequestTrace};
use crate::trust::{Caller, Transport, TrustLevel};
use crate::trust_state::TrustState;
use crate::version::Era;

/// Shared state of the handlers of one listener.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) server: Server,
    pub(crate) sessions: Arc<Sessions>,
    pub(super) origin_policy: OriginPolicy,
    pub(super) auth: Auth,
    pub(super) trusted_proxies: TrustedProxies,
    /// Rules for callers that connect to the listener.
    pub(super) direct: CallerRules,
    /// Rules for callers behind a trusted proxy.
    pub(super) forwarded: CallerRules,
    pub(super) buckets: Arc<RateLimiter>,
    pub(super) error_formatter: Option<ErrorFormatter>,
    pub(super) pages: Option<PublicPages>,
}

/// Default trust level and rate limit of callers; tokens may override them.
#[derive(Debug)]
pub(super) struct CallerRules {
    pub(super) trust: TrustState,
    /// The identity of callers without a token.
    pub(super) anonymous: Arc<str>,
    pub(super) rate_limit: Option<RateLimit>,
}

/// Marks a request with a `Transfer-Encoding` and a `Content-Length`, or another coding than `chunked`, by which one
/// request can hide in another (RFC 9112, section 6.1).
#[derive(Debug, Clone, Copy)]
pub(super) struct TwoLengths;

/// The routes of one listener.
pub(super) type Routes = TowerToHyperService<Router>;

/// Retry hint when a token could not be verified.
const VERIFICATION_RETRY_AFTER: Duration = Duration::from_secs(5);

/// Retry hint when all connections are in use.
const FULL: Duration = Duration::from_secs(1);

/// Limit of wrong tokens from one address where requests are not limited.
const FAILED_ATTEMPTS: RateLimit = RateLimit { per_second: 10, burst: 100 };

/// Limit of signature checks for wrong tokens from one address. A check takes about 0.1 ms, so a flood uses about 1 % of
/// a core. It is larger than [`FAILED_ATTEMPTS`] because valid tokens that are not cached need checks too.
const FAILED_SIGNATURE_CHECKS: RateLimit = RateLimit { per_second: 100, burst: 200 };

/// Maximum wait for a signature check. Checks of one address are queued in the order of their arrival, because whether a
/// token is valid is not known before. The queue has room for one request of each connection that the default limits
/// permit, so a flood from the same address delays a valid token and does not lock it out.
const MAX_SIGNATURE_CHECK_WAIT: Duration = Duration::from_secs(10);

/// Path of the protected resource metadata (RFC 9728). The path of the resource may follow, which may differ from ours
/// behind a proxy.
const RESOURCE_METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

impl Endpoint {
    /// The authenticated sender of a request.
    pub(crate) fn connected_caller(&self, via: Transport, extensions: &http::Extensions) -> ConnectedCaller {
        let rules = self.rules(extensions);
        match extensions.get::<TokenHolder>() {
            Some(holder) => ConnectedCaller::with_token(via, holder, rules.trust.clone()),
            None => ConnectedCaller::new(via, rules.anonymous.clone(), rules.trust.clone()),
        }
    }

    /// The caller of one request.
    pub(crate) fn caller(&self, via: Transport, extensions: &http::Extensions) -> Caller {
        let rules = self.rules(extensions);
        let (holder, others) = (extensions.get::<TokenHolder>(), rules.trust.current(TrustLevel::Untrusted));
        let others = others.unwrap_or(TrustLevel::Untrusted);
        match holder {
            Some(holder) => Caller {
                transport: via,
                identity: holder.identity.clone(),
                // The token may have been revoked since the middleware checked it.
                trust: holder.trust.current(others).unwrap_or(TrustLevel::Untrusted),
                permissions: holder.permissions.clone(),
            },
            None => Caller::new(via, rules.anonymous.clone(), others),
        }
    }

    /// The address whose connection limit applies. Connections of trusted proxies count for their clients. Without a
    /// token, loopback callers cannot be distinguished, and a limit would only keep them from free connections.
    pub(super) fn counted_for(&self, from: IpAddr) -> Option<IpAddr> {
        let is_counted = !self.trusted_proxies.trusts(from)
            && (matches!(self.auth, Auth::Required(_)) || !from.to_canonical().is_loopback());
        is_counted.then(|| network(from))
    }

    /// The rules for the sender of a request.
    fn rules(&self, extensions: &http::Extensions) -> &CallerRules {
        match extensions.get::<ForwardedClient>() {
            Some(_) => &self.forwarded,
            None => &self.direct,
        }
    }

    /// The rate limit bucket of a sender: by identity if it has one, else by address.
    pub(crate) fn bucket(
        &self,
        holder: Option<&TokenHolder>,
        extensions: &http::Extensions,
    ) -> Option<Arc<CallerBucket>> {
        let limit = self.rules(extensions).rate_limit;
        let limit = holder.and_then(|holder| holder.rate_limit).or(limit).or(self.buckets.global_limit())?;
        let from = || client_address(extensions).map(network);
        let whose = match (holder, &self.auth) {
            (Some(holder), _) => RateLimitKey::Token(holder.identity.clone()),
            (None, Auth::None) => RateLimitKey::Address(from()?),
            (None, Auth::Required(_)) => RateLimitKey::Unauthenticated(from()?),
        };
        Some(self.buckets.bucket_for(whose, limit))
    }

    /// Checks the token of a request. A check that takes more than a lookup is charged to the address of the client if the
    /// token is wrong.
    async fn authenticate(&self, headers: &HeaderMap, extensions: &http::Extensions) -> Result<Credential, Error> {
        let mut presented = self.auth.verify_now(headers);
        if let Credential::Pending = presented {
            presented = self.check_signature(headers, extensions).await?;
        }
        self.note_identity(&presented, extensions);
        Ok(presented)
    }

    /// Checks a token that is not cached. Waits for its turn where many tokens of the same address were wrong.
    async fn check_signature(&self, headers: &HeaderMap, extensions: &http::Extensions) -> Result<Credential, Error> {
        let Some(from) = client_address(extensions) else { return Ok(self.auth.verify(headers).await) };
        let bucket = self.buckets.bucket_for(RateLimitKey::SignatureChecks(network(from)), FAILED_SIGNATURE_CHECKS);
        let place = extensions.get::<ConnectionPermit>().filter(|place| place.is_provisional());
        let permit = place.map(ConnectionPermit::try_wait_in_reserve);
        let max_wait = match permit {
            // Waiting requests must not fill the reserve, which health probes need.
            Some(None) => Duration::ZERO,
            _ => MAX_SIGNATURE_CHECK_WAIT,
        };
        let reservation = bucket.reserve(max_wait)?;
        if !reservation.wait.is_zero() {
            tokio::time::sleep(reservation.wait).await;
        }
        let presented = self.auth.verify(headers).await;
        if matches!(presented, Credential::Invalid(_)) {
            reservation.charge();
        }
        Ok(presented)
    }

    /// Charges a request to its caller. Wrong tokens are charged to their address and do not limit valid ones: otherwise
    /// anyone behind the same address could lock out callers. Beyond the limit the status still shows whether a token is
    /// valid, so only the entropy of tokens (at least 128 bits) protects against guessing.
    fn charge(&self, presented: &Credential, extensions: &http::Extensions) -> Result<(), Error> {
        let bucket = match presented {
            Credential::Valid(holder) => self.bucket(Some(holder), extensions),
            // Wrong tokens are limited even where requests are not.
            Credential::Invalid(_) => self.bucket(None, extensions).or_else(|| {
                let from = client_address(extensions)?;
                Some(self.buckets.bucket_for(RateLimitKey::Unauthenticated(network(from)), FAILED_ATTEMPTS))
            }),
            _ => self.bucket(None, extensions),
        };
        bucket.map_or(Ok(()), |bucket| bucket.charge())
    }

    /// Tells the connection limiter whether the caller of a connection is authenticated. The connections of a proxy are
    /// those of many callers.
    fn note_identity(&self, presented: &Credential, extensions: &http::Extensions) {
        let Some(place) =
            extensions.get::<ConnectionPermit>().filter(|_| extensions.get::<ForwardedClient>().is_none())
        else {
            return;
        };
        match presented {
            Credential::Valid(holder) if !place.knows(&holder.identity) => place.meet(holder),
            Credential::Invalid(_) => place.forget_identity(),
            _ => {}
        }
    }

    /// Whether the connection of a request may be used for it; see [`ConnectionPermit::settle`].
    async fn settle(&self, caller: Option<&TokenHolder>, extensions: &http::Extensions) -> Result<(), Error> {
        let Some(place) = extensions.get::<ConnectionPermit>() else { return Ok(()) };
        let over_share = match (extensions.get::<ForwardedClient>(), caller) {
            (None, _) => false,
            (Some(_), Some(caller)) => {
                place.count_caller(caller);
                false
            }
            (Some(ForwardedClient::From(client)), None) => !place.count_client(*client),
            // Otherwise a client could leave its share by adding a header that the proxy passes on.
            (Some(ForwardedClient::Unknown), None) => !place.count_client(place.remote_address()),
        };
        if over_share || (place.is_provisional() && !place.settle(caller).await) {
            self.server.inner().metrics.rejected_connections.inc();
            let message = "connection limit reached for this server or client address; only health checks and \
                authenticated callers are served";
            return Err(Error::busy(message, FULL));
        }
        Ok(())
    }

    /// Rejects a WebSocket or an event stream in the reserve: it has no end, and the reserve is for single requests.
    pub(super) fn reject_in_reserve(&self, extensions: &http::Extensions) -> Option<Response> {
        extensions.get::<ConnectionPermit>().filter(|place| place.is_provisional())?;
        self.server.inner().metrics.rejected_connections.inc();
        let error = Error::busy("all connections of the server are in use; only single requests are served", FULL);
        Some(error_response(StatusCode::SERVICE_UNAVAILABLE, &error, Era::Legacy))
    }

    /// The protected resource metadata, if this is its path.
    fn resource_metadata(&self, path: &str) -> Option<Arc<str>> {
        let rest = path.strip_prefix(RESOURCE_METADATA_PATH)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| self.auth.verifier()?.resource_metadata()).flatten()
    }

    /// An error reply of the middleware, in the format expected on this path.
    pub(super) fn error_response(&self, path: &str, status: StatusCode, error: &Error) -> Response {
        let own = self.error_formatter.and_then(|refusals| refusals(path, status, error));
        own.unwrap_or_else(|| error_response(status, error, Era::Legacy))
    }

    /// Records a rejected request.
    fn record_rejection(&self, reason: &'static str, event: AuditEvent, extensions: &http::Extensions) {
        self.server.metrics().count_refused(reason);
        let event = match extensions.get::<RequestTrace>() {
            Some(trail) => event.with_request_id(&trail.id),
            None => event,
        };
        let event = match client_address(extensions) {
            Some(address) => event.by(address.to_string()),
            None => event,
        };
        self.server.audit().record_rejection(event);
    }

    /// Whether the middleware found the credentials that this listener requires.
    pub(crate) fn is_authenticated(&self, extensions: &http::Extensions) -> bool {
        matches!(self.auth, Auth::None) || extensions.get::<TokenHolder>().is_some()
    }
}

/// A JSON-RPC error as an HTTP reply.
pub(crate) fn error_response(status: StatusCode, error: &Error, era: Era) -> Response {
    with_retry_after(json_response(status, message::encode_error(None, &error.to_object(era))), error)
}

/// Sets `Retry-After`, if the error contains a wait.
pub(crate) fn with_retry_after(mut response: Response, error: &Error) -> Response {
    if let Some(seconds) = error.retry_after_seconds() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

pub(crate) fn json_response(status: StatusCode, body: Vec<u8>) -> Response {
    (status, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

/// Middleware for every path: host, origin, token and rate checks, and response headers for browsers.
pub(super) async fn handle_request(endpoint: Arc<Endpoint>, routes: Routes, mut request: Request) -> Response {
    let trail = RequestTrace::from_headers(request.headers());
    let id = trail.id.header();
    request.extensions_mut().insert(trail);
    let mut response = check_origin(endpoint, routes, request).await;
    response.headers_mut().insert(REQUEST_ID_HEADER, id);
    response
}

async fn check_origin(endpoint: Arc<Endpoint>, routes: Routes, request: Request) -> Response {
    let allowed = endpoint
        .origin_policy
        .check(request.headers())
        .and_then(|()| endpoint.origin_policy.check_target(request.uri()));
    let allowed = match request.extensions().get() {
        Some(TwoLengths) => Err(NotAllowed::Malformed(
            "request has both `Content-Length` and `Transfer-Encoding`; send \
            one of them",
        )),
        None => allowed,
    };
    if let Err(why) = allowed {
        let (status, why) = match why {
            NotAllowed::Malformed(why) => (StatusCode::BAD_REQUEST, why),
            NotAllowed::Foreign(why) => (StatusCode::FORBIDDEN, why),
        };
        let error = Error::InvalidRequest(why.into());
        endpoint.record_rejection(
            "origin",
            AuditEvent::new("origin_refused").detail(error.to_string()),
            request.extensions(),
        );
        return add_security_headers(endpoint.error_response(request.uri().path(), status, &error));
    }
    let origin = request.headers().get(ORIGIN).cloned();
    let mut response = add_security_headers(authenticate(endpoint, routes, request, origin.is_some()).await);
    if let Some(origin) = origin {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("mcp-session-id, www-authenticate, x-request-id"),
        );
        headers.append(VARY, HeaderValue::from_static("origin"));
    }
    response
}

/// Authenticates a request and applies the rate limit.
async fn authenticate(endpoint: Arc<Endpoint>, routes: Routes, mut request: Request, is_page: bool) -> Response {
    // Health endpoints answer unauthenticated requests too, with a bare status (S-05), and are not rate limited for
    // load balancers.
    if matches!(request.uri().path(), "/health" | "/live" | "/ready") {
        // Over the rate limit, and with a wrong token, the caller counts as unauthenticated.
        if request.headers().contains_key(AUTHORIZATION)
            && let Ok(presented) = endpoint.authenticate(request.headers(), request.extensions()).await
            && endpoint.charge(&presented, request.extensions()).is_ok()
            && let Credential::Valid(holder) = presented
        {
            request.extensions_mut().insert(holder);
        }
        return route_request(endpoint, routes, request).await;
    }
    // A page must load before its user can enter a token.
    let page = endpoint.pages.and_then(|pages| pages(request.method(), request.uri().path(), request.headers()));
    if let Some(page) = page {
        return match endpoint.settle(None, request.extensions()).await {
            Ok(()) => page,
            Err(error) => with_retry_after(
                endpoint.error_response(request.uri().path(), StatusCode::SERVICE_UNAVAILABLE, &error),
                &error,
            ),
        };
    }
    let presented = match endpoint.authenticate(request.headers(), request.extensions()).await {
        // Unauthenticated requests are charged by address.
        Ok(presented) => endpoint.charge(&presented, request.extensions()).map(|()| presented),
        Err(error) => Err(error),
    };
    let presented = match presented {
        Ok(presented) => presented,
        Err(error) => {
            endpoint.server.metrics().count_refused("rate");
            return ensure_retry_after(endpoint.error_response(
                request.uri().path(),
                StatusCode::TOO_MANY_REQUESTS,
                &error,
            ));
        }
    };
    let caller = match &presented {
        Credential::Valid(holder) => Some(holder),
        _ => None,
    };
    if let Err(error) = endpoint.settle(caller, request.extensions()).await {
        return with_retry_after(
            endpoint.error_response(request.uri().path(), StatusCode::SERVICE_UNAVAILABLE, &error),
            &error,
        );
    }
    if request.method() == Method::OPTIONS && is_page {
        return preflight(request.headers());
    }
    if let Some(document) = endpoint.resource_metadata(request.uri().path()) {
        return json_response(StatusCode::OK, document.as_bytes().to_vec());
    }
    match presented {
        Credential::Valid(holder) => drop(request.extensions_mut().insert(holder)),
        Credential::NotRequired => {}
        Credential::Unavailable(why) => {
            let error = Error::busy(why, VERIFICATION_RETRY_AFTER);
            return with_retry_after(
                endpoint.error_response(request.uri().path(), StatusCode::SERVICE_UNAVAILABLE, &error),
                &error,
            );
        }
        presented => return unauthorized(&endpoint, &request, &presented),
    }
    let is_mcp = request.uri().path().starts_with("/mcp");
    let holder = request.extensions().get::<TokenHolder>().cloned();
    let response = route_request(endpoint.clone(), routes, request).await;
    if response.status() == StatusCode::FORBIDDEN {
        return add_scope_challenge(&endpoint, holder.as_ref(), response);
    }
    // Replies of custom routes are left unchanged.
    if response.status() == StatusCode::TOO_MANY_REQUESTS && is_mcp { ensure_retry_after(response) } else { response }
}

/// Adds the scope challenge for a caller with insufficient trust, if the authority defines one.
fn add_scope_challenge(endpoint: &Endpoint, holder: Option<&TokenHolder>, mut response: Response) -> Response {
    let way = holder.and_then(|holder| endpoint.auth.verifier()?.insufficient_scope(holder));
    let challenge = way.and_then(|way| format!("Bearer error=\"insufficient_scope\", {way}").try_into().ok());
    if let Some(challenge) = challenge {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Sets `Retry-After` to at least one second on a 429.
fn ensure_retry_after(mut response: Response) -> Response {
    response.headers_mut().entry(RETRY_AFTER).or_insert(HeaderValue::from_static("1"));
    response
}

/// Security headers: browsers must not sniff, cache or frame a reply, or send a referrer.
fn add_security_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (REFERRER_POLICY, "no-referrer"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Routes a request by its path. Nearly all are `POST /mcp` and bypass the router: the router and its layers cost a
/// tenth of a call.
async fn route_request(endpoint: Arc<Endpoint>, routes: Routes, mut request: Request) -> Response {
    if request.uri().path() == "/mcp" && request.method() == Method::POST {
        return endpoint::post(State(endpoint), request).await;
    }
    let caller = endpoint.caller(Transport::Http, request.extensions());
    if !request_log::is_builtin_path(request.uri().path()) {
        request.extensions_mut().insert(caller.clone());
        return request_log::forward(&endpoint, routes, request, caller).await;
    }
    request.extensions_mut().insert(caller);
    let Ok(response) = routes.call(request).await;
    response
}

fn preflight(requested: &HeaderMap) -> Response {
    let mut allowed = String::from(
        "content-type, accept, authorization, last-event-id, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, \
         x-request-id, traceparent, tracestate",
    );
    // The header names of mirrored tool parameters vary.
    let asked = requested.get(ACCESS_CONTROL_REQUEST_HEADERS).and_then(|value| value.to_str().ok()).unwrap_or_default();
    for name in asked.split(',').map(str::trim).filter(|name| name.to_ascii_lowercase().starts_with("mcp-param-")) {
        allowed.push_str(", ");
        allowed.push_str(name);
    }
    let headers = [(ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"), (ACCESS_CONTROL_ALLOW_HEADERS, &allowed)];
    (StatusCode::NO_CONTENT, headers).into_response()
}

fn unauthorized(endpoint: &Endpoint, request: &Request, presented: &Credential) -> Response {
    let (why, error) = match presented {
        Credential::Missing => ("authentication required; send `Authorization: Bearer <token>`", None),
        Credential::Invalid(why) => (*why, Some("error=\"invalid_token\"")),
        _ => (INVALID_TOKEN, Some("error=\"invalid_token\"")),
    };
    let event = AuditEvent::new("authentication_failed").detail(why);
    endpoint.record_rejection("authentication", event, request.extensions());
    let about = endpoint.auth.verifier().and_then(|authority| authority.challenge());
    let parameters: Vec<&str> = error.into_iter().chain(about.as_deref()).collect();
    let challenge = format!("Bearer {}", parameters.join(", "));
    let mut response =
        endpoint.error_response(request.uri().path(), StatusCode::UNAUTHORIZED, &Error::Authentication(why.into()));
    let challenge = HeaderValue::from_str(challenge.trim_end()).unwrap_or(HeaderValue::from_static("Bearer"));
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}

/// Where a request comes from: the client of a trusted proxy, or the peer.
fn client_address(extensions: &http::Extensions) -> Option<IpAddr> {
    match extensions.get::<ForwardedClient>() {
        Some(ForwardedClient::From(client)) => Some(*client),
        Some(ForwardedClient::Unknown) | None => {
            extensions.get::<ConnectionPermit>().map(ConnectionPermit::remote_address)
        }
    }
}
