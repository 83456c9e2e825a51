//! HTTP client for providers, with connection pooling, TLS verification and egress policy.

use std::error::Error as _;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use corbie_mcp::TraceContext;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Frame, Incoming};
use hyper_rustls::builderstates::WantsProtocols2;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::Instant;
use url::Url;
use zeroize::Zeroizing;

use super::{Error, HttpRequest, NetworkError};
use crate::guarded_connector::{self, GuardedConnector};
use corbie_config::egress_policy::{EgressDenied, EgressPolicy};

/// Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct HttpClient {
    connector: ConnectorKind,
    egress: EgressPolicy,
}

#[derive(Debug, Clone)]
enum ConnectorKind {
    Direct(PooledClient<GuardedConnector>),
    /// Through an HTTP proxy. The proxy sees the destination, and none of the content if the provider uses TLS (P-21).
    Tunnel(Box<PooledClient<Tunnel<HttpsConnector<GuardedConnector>>>>),
}

type PooledClient<Connector> = legacy::Client<HttpsConnector<Connector>, Full<Bytes>>;

/// A buffered HTTP response.
#[derive(Debug)]
pub struct BufferedResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// An HTTP response with an unread body.
#[derive(Debug)]
pub struct UnreadResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Incoming,
    received_bytes: usize,
}

/// Maximum response body size.
const MAX_BODY_BYTES: usize = 64 << 20;
/// Idle timeout of pooled connections.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_IDLE_PER_HOST: usize = 64;
/// Error messages for a proxy that was reached and refused to open a tunnel.
const TUNNEL_REFUSED: [&str; 3] = [
    "tunnel error: proxy authorization required",
    "tunnel error: unsuccessful",
    "tunnel error: unexpected end of file",
];

/// A client with the default egress policy.
impl Default for HttpClient {
    fn default() -> HttpClient {
        HttpClient::with_egress_policy(EgressPolicy::default())
    }
}

impl HttpClient {
    pub fn with_egress_policy(destinations: EgressPolicy) -> HttpClient {
        let tcp = GuardedConnector::new(tcp, destinations.clone());
        HttpClient { connector: ConnectorKind::Direct(pool().build(tls().wrap_connector(tcp))), egress: destinations }
    }

    /// A client that connects through a proxy, under the same egress policy. User info in the proxy URL becomes its
    /// credentials.
    pub fn with_proxy(&self, proxy: &Url) -> HttpClient {
        let destinations = self.egress.clone();
        let address: Uri = strip_user_info(proxy.clone()).as_str().parse().expect("a URL is a valid URI");
        // A TLS proxy receives its password over TLS.
        let to_proxy = tls().wrap_connector(GuardedConnector::new(tcp, destinations.clone()));
        let tunnel = match basic_auth(proxy) {
            Some(credentials) => Tunnel::new(address, to_proxy).with_auth(credentials),
            None => Tunnel::new(address, to_proxy),
        };
        HttpClient {
            connector: ConnectorKind::Tunnel(Box::new(pool().build(tls().wrap_connector(tunnel)))),
            egress: destinations,
        }
    }

    /// Sends a request and buffers the response, until the deadline.
    pub async fn send(&self, request: HttpRequest, deadline: Instant) -> Result<BufferedResponse, Error> {
        let UnreadResponse { status, headers, body, .. } = self.open(request, deadline).await?;
        let whole = Limited::new(body, MAX_BODY_BYTES).collect();
        let body = match tokio::time::timeout_at(deadline, whole).await {
            Ok(Ok(whole)) => whole.to_bytes(),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                return Err(Error::InvalidResponse("response is larger than 64 MiB"));
            }
            Ok(Err(_)) => return Err(Error::Network(NetworkError::Closed)),
            Err(_) => return Err(Error::Timeout),
        };
        Ok(BufferedResponse { status, headers, body })
    }

    /// Sends a request and waits for the response head. Propagates the current trace context, if there is one.
    pub async fn open(&self, request: HttpRequest, deadline: Instant) -> Result<UnreadResponse, Error> {
        let (mut head, body) = request.into_parts();
        if let Some(trace) = TraceContext::current() {
            trace.inject(&mut head.headers);
        }
        let request = http::Request::from_parts(head, Full::new(body));
        let sent = match &self.connector {
            ConnectorKind::Direct(pooled) => pooled.request(request),
            ConnectorKind::Tunnel(pooled) => {
                // Only the proxy resolves the host name, since it makes the connection.
                guarded_connector::check_host(&self.egress, request.uri())
                    .map_err(|_| Error::Network(NetworkError::EgressDenied))?;
                pooled.request(with_port(request))
            }
        };
        let answer = match tokio::time::timeout_at(deadline, sent).await {
            Ok(answer) => answer.map_err(|error| Error::Network(classify_error(&error)))?,
            Err(_) => return Err(Error::Timeout),
        };
        let (head, body) = answer.into_parts();
        Ok(UnreadResponse { status: head.status, headers: head.headers, body, received_bytes: 0 })
    }
}

impl UnreadResponse {
    /// The next bytes of the body, or `None` at its end. Times out at `by`.
    pub async fn next(&mut self, by: Instant) -> Result<Option<Bytes>, Error> {
        match tokio::time::timeout_at(by, self.body.frame()).await {
            Ok(frame) => self.accept_frame(frame),
            Err(_) => Err(Error::Timeout),
        }
    }

    /// The next bytes of the body, if they are already available.
    pub fn try_next(&mut self) -> Option<Result<Option<Bytes>, Error>> {
        let frame = self.body.frame().now_or_never()?;
        Some(self.accept_frame(frame))
    }

    fn accept_frame(&mut self, frame: Option<Result<Frame<Bytes>, hyper::Error>>) -> Result<Option<Bytes>, Error> {
        let Some(frame) = frame else { return Ok(None) };
        let frame = frame.map_err(|_| Error::Network(NetworkError::Closed))?;
        // Trailers are ignored.
        let bytes = frame.into_data().unwrap_or_default();
        self.received_bytes += bytes.len();
        if self.received_bytes > MAX_BODY_BYTES {
            return Err(Error::InvalidResponse("response is larger than 64 MiB"));
        }
        Ok(Some(bytes))
    }
}

fn tcp<Lookup>(lookup: Lookup) -> HttpConnector<Lookup> {
    let mut tcp = HttpConnector::new_with_resolver(lookup);
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp
}

fn tls() -> HttpsConnectorBuilder<WantsProtocols2> {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports the usual versions of TLS")
        .with_webpki_roots()
        .with_no_client_auth();
    hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1()
}

fn pool() -> legacy::Builder {
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE_TIMEOUT).pool_max_idle_per_host(MAX_IDLE_PER_HOST);
    builder
}

/// Adds port 80 to `http` URLs without a port: a tunnel otherwise defaults to port 443.
fn with_port(mut request: http::Request<Full<Bytes>>) -> http::Request<Full<Bytes>> {
    let uri = request.uri();
    if uri.scheme_str() == Some("http") && uri.port().is_none() {
        let mut parts = uri.clone().into_parts();
        parts.authority = parts.authority.and_then(|host| format!("{host}:80").parse().ok());
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
    }
    request
}

/// The URL without user info.
pub fn strip_user_info(mut url: Url) -> Url {
    // This succeeds for every URL with a host.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    url
}

/// The user info of a URL as a basic authentication header.
pub fn basic_auth(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let plain =
        |text: &str| Zeroizing::new(percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned());
    let (user, password) = (plain(url.username()), plain(url.password().unwrap_or_default()));
    let pair = Zeroizing::new(format!("{}:{}", *user, *password));
    let encoded = Zeroizing::new(STANDARD.encode(&*pair));
    let mut value = HeaderValue::try_from(format!("Basic {}", *encoded)).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Classifies a connection error without exposing its text.
fn classify_error(error: &legacy::Error) -> NetworkError {
    if !error.is_connect() {
        return NetworkError::Closed;
    }
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.is::<EgressDenied>() {
            return NetworkError::EgressDenied;
        }
        if error.is::<rustls::Error>() {
            return NetworkError::Tls;
        }
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            if is_tls_error(io) {
                return NetworkError::Tls;
            }
            match io.kind() {
                std::io::ErrorKind::ConnectionRefused => return NetworkError::Refused,
                std::io::ErrorKind::TimedOut => return NetworkError::Unreachable,
                _ => {}
            }
        }
        let words = error.to_string();
        // A resolver error may also wrap a policy denial, which is handled by the next iteration.
        if words == "dns error" && !error.source().is_some_and(|inner| inner.is::<EgressDenied>()) {
            return NetworkError::DnsFailure;
        }
        // These error types are not public.
        if TUNNEL_REFUSED.contains(&words.as_str()) {
            return NetworkError::Proxy;
        }
        cause = error.source();
    }
    NetworkError::Closed
}

/// A TLS error may be wrapped in several `io::Error`s, and `source` skips the wrapped error.
fn is_tls_error(error: &std::io::Error) -> bool {
    error.get_ref().is_some_and(|inner| {
        inner.is::<rustls::Error>() || inner.downcast_ref::<std::io::Error>().is_some_and(is_tls_error)
    })
}
