//! Sends requests to providers: one client for all of them, with pooled connections and verified certificates.

use std::error::Error as _;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::StatusCode;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::Instant;

use super::{Error, NetworkFault, Request};

/// The way to all providers. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct Client(legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// An answer whose body is still coming.
#[derive(Debug)]
pub struct Opened {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Incoming,
    taken: usize,
}

/// A larger answer is no answer.
const MOST_BYTES: usize = 64 << 20;
/// How long a connection may stay unused before it is closed.
const IDLE: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(10);
const CONNECTIONS_PER_HOST: usize = 64;

impl Client {
    pub fn new() -> Client {
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring supports the usual versions of TLS")
            .with_webpki_roots()
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        let connector = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(CONNECTIONS_PER_HOST)
            .build(connector.wrap_connector(tcp));
        Client(client)
    }

    /// Sends a request and waits for its whole answer, or for the deadline.
    pub async fn send(&self, request: Request, deadline: Instant) -> Result<Answer, Error> {
        let Opened { status, headers, body, .. } = self.open(request, deadline).await?;
        let whole = Limited::new(body, MOST_BYTES).collect();
        let body = match tokio::time::timeout_at(deadline, whole).await {
            Ok(Ok(whole)) => whole.to_bytes(),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                return Err(Error::Unreadable("it is larger than 64 MiB"));
            }
            Ok(Err(_)) => return Err(Error::Network(NetworkFault::Closed)),
            Err(_) => return Err(Error::Timeout),
        };
        Ok(Answer { status, headers, body })
    }

    /// Sends a request and waits for the head of its answer.
    pub async fn open(&self, request: Request, deadline: Instant) -> Result<Opened, Error> {
        let (head, body) = request.into_parts();
        let sent = self.0.request(http::Request::from_parts(head, Full::new(body)));
        let answer = match tokio::time::timeout_at(deadline, sent).await {
            Ok(answer) => answer.map_err(|error| Error::Network(fault(&error)))?,
            Err(_) => return Err(Error::Timeout),
        };
        let (head, body) = answer.into_parts();
        Ok(Opened { status: head.status, headers: head.headers, body, taken: 0 })
    }
}

impl Default for Client {
    fn default() -> Client {
        Client::new()
    }
}

impl Opened {
    /// The next bytes of the body; none at its end. Silence for as long as `most` is a failure.
    pub async fn next(&mut self, most: Duration) -> Result<Option<Bytes>, Error> {
        loop {
            let frame = match tokio::time::timeout(most, self.body.frame()).await {
                Ok(None) => return Ok(None),
                Ok(Some(frame)) => frame.map_err(|_| Error::Network(NetworkFault::Closed))?,
                Err(_) => return Err(Error::Timeout),
            };
            // Trailers say nothing that anybody waits for.
            let Ok(bytes) = frame.into_data() else { continue };
            self.taken += bytes.len();
            if self.taken > MOST_BYTES {
                return Err(Error::Unreadable("it is larger than 64 MiB"));
            }
            return Ok(Some(bytes));
        }
    }
}

/// What went wrong on the way, without a word of what was on it.
fn fault(error: &legacy::Error) -> NetworkFault {
    if !error.is_connect() {
        return NetworkFault::Closed;
    }
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.is::<rustls::Error>() {
            return NetworkFault::Tls;
        }
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            if is_about_tls(io) {
                return NetworkFault::Tls;
            }
            if io.kind() == std::io::ErrorKind::ConnectionRefused {
                return NetworkFault::Refused;
            }
        }
        if error.to_string() == "dns error" {
            return NetworkFault::Name;
        }
        cause = error.source();
    }
    NetworkFault::Closed
}

/// An error of an error of TLS may be wrapped several times, and `source` leaves out what is wrapped.
fn is_about_tls(error: &std::io::Error) -> bool {
    error.get_ref().is_some_and(|inner| {
        inner.is::<rustls::Error>() || inner.downcast_ref::<std::io::Error>().is_some_and(is_about_tls)
    })
}
