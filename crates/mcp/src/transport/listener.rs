//! HTTP connection handling: accept, connection limit, deadlines, graceful drain.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, HOST, STRICT_TRANSPORT_SECURITY, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, StatusCode};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::acceptor::{Acceptor, Exposure, Handshake, RawConnection, tell_full};
use super::auth::Auth;
use super::connection_bodies::{RequestBody, ResponseBody};
pub(crate) use super::connection_limit::ConnectionPermit;
use super::connection_limit::{IncomingConnection, RESERVE_TIMEOUT};
use super::connection_timeouts::ReadDeadline;
use super::http::Http;
use super::middleware::{Endpoint, Routes, TwoLengths, handle_request};
use super::write_deadline::WriteDeadline;

/// Shared state of the connections of one listener.
#[derive(Clone)]
struct ConnectionHandler {
    http: Http,
    handshake: Handshake,
    endpoint: Arc<Endpoint>,
    routes: Routes,
}

/// HSTS for 30 days on TLS connections.
const HSTS_MAX_AGE: HeaderValue = HeaderValue::from_static("max-age=2592000");

impl Http {
    /// Serves one listener until the server is drained and its last request answered.
    ///
    /// Rejects a non-loopback address without authentication (S-06).
    pub async fn serve(&self, listener: TcpListener) -> io::Result<()> {
        self.serve_acceptor(Acceptor::tcp(listener)).await
    }

    /// Like [`Http::serve`], over TLS.
    #[cfg(feature = "tls")]
    pub async fn serve_tls(&self, listener: TcpListener, certificates: super::tls::Certificates) -> io::Result<()> {
        self.serve_acceptor(Acceptor::tls(listener, certificates)).await
    }

    /// Like [`Http::serve`], over a Unix socket. Its callers have the trust of loopback callers and the identity
    /// `unix`.
    #[cfg(unix)]
    pub async fn serve_unix(&self, socket: super::socket_file::SocketFile) -> io::Result<()> {
        self.serve_acceptor(Acceptor::unix(socket)?).await
    }

    /// Serves one connection accepted by other code, until it ends. Its caller has the trust of loopback callers.
    pub async fn serve_connection(&self, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        let behind = self.connection_handler(Exposure::Loopback, Handshake::Plain);
        let (open, leave) = (TaskTracker::new(), CancellationToken::new());
        let (server, from) = (self.server.clone(), IpAddr::from([127, 0, 0, 1]));
        let counted_for = behind.endpoint.counted_for(from);
        let visitor = IncomingConnection { server, from, counted_for, _open: open.token(), close: leave };
        let knock = RawConnection::Stream(Box::new(stream));
        match self.connection_limiter.try_acquire(visitor) {
            Ok(place) => behind.serve(knock, place).await,
            Err(visitor) => behind.serve_or_reject(knock, visitor).await,
        }
    }

    async fn serve_acceptor(&self, door: Acceptor) -> io::Result<()> {
        let reach = door.exposure()?;
        if reach == Exposure::Network && matches!(self.options.auth, Auth::None) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "refusing to listen on the non-loopback address {} without a token; set `server.token` (or \
                     MCP_API_KEY) or listen on 127.0.0.1",
                    door.name()
                ),
            ));
        }
        let behind = self.connection_handler(reach, door.handshake.clone());
        let (open, close) = (TaskTracker::new(), CancellationToken::new());
        let mut drained = std::pin::pin!(self.wait_drained());
        let grace_ends = loop {
            let accepted = tokio::select! {
                accepted = door.accept() => accepted,
                grace_ends = &mut drained => break grace_ends,
            };
            match accepted {
                Ok((knock, from)) => {
                    let (server, leave) = (self.server.clone(), close.child_token());
                    let counted_for = behind.endpoint.counted_for(from);
                    let visitor = IncomingConnection { server, from, counted_for, _open: open.token(), close: leave };
                    match self.connection_limiter.try_acquire(visitor) {
                        Ok(place) => drop(open.spawn(behind.clone().serve(knock, place))),
                        Err(visitor) => drop(open.spawn(behind.clone().serve_or_reject(knock, visitor))),
                    }
                }
                // Probably out of file descriptors: wait until some are closed.
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connection");
                    sleep(Duration::from_millis(50)).await;
                }
            }
        };
        // Close the listener so that new connections are refused immediately instead of waiting for a process that will
        // not answer.
        drop(door);
        close.cancel();
        open.close();
        // No request is in flight any more, but the last bytes may still be in transit.
        tokio::select! {
            _ = timeout_at(grace_ends, open.wait()) => {}
            () = self.server.stopped() => {}
        }
        Ok(())
    }

    fn connection_handler(&self, reach: Exposure, manners: Handshake) -> ConnectionHandler {
        let endpoint = Arc::new(self.endpoint(reach, manners.is_encrypted()));
        let routes = TowerToHyperService::new(self.routes(&endpoint));
        ConnectionHandler { http: self.clone(), handshake: manners, endpoint, routes }
    }

    /// Completes when a drain was requested and no request is in flight, or at the drain deadline; returns the
    /// deadline.
    async fn wait_drained(&self) -> Instant {
        let inner = self.server.inner();
        inner.draining.cancelled().await;
        let until = self.server.drain_deadline();
        while inner.metrics.in_flight.get() > 0 && Instant::now() < until && !inner.stop_now.is_cancelled() {
            sleep(Duration::from_millis(5)).await;
        }
        until
    }
}

impl ConnectionHandler {
    /// Serves a connection if an existing one can be evicted for it or the reserve has room, else rejects it.
    async fn serve_or_reject(self, knock: RawConnection, visitor: IncomingConnection) {
        match self.http.connection_limiter.acquire_by_eviction(visitor).await {
            Some(place) => self.serve(knock, place).await,
            None => {
                self.http.server.inner().metrics.rejected_connections.inc();
                if let Ok(_farewell) = self.http.connection_limiter.rejection_permits.try_acquire() {
                    self.handshake.reject(knock).await;
                }
            }
        }
    }

    async fn serve(self, knock: RawConnection, place: ConnectionPermit) {
        let ConnectionHandler { http, handshake: manners, endpoint, routes } = self;
        let leave = place.close_token().clone();
        let limits = http.server.limits();
        let for_head = match place.is_provisional() {
            true => limits.request_read_timeout.min(RESERVE_TIMEOUT),
            false => limits.request_read_timeout,
        };
        let opening = async {
            let opening = manners.perform(knock, &http.server);
            match place.is_provisional() {
                true => timeout(RESERVE_TIMEOUT, opening).await.ok().flatten(),
                false => opening.await,
            }
        };
        let opened = tokio::select! {
            opened = opening => opened,
            () = leave.cancelled() => return,
        };
        let Some(stream) = opened else { return };
        let turn = place.phase().clone();
        let stream = WriteDeadline::new(stream, limits.write_timeout);
        let mut stream = ReadDeadline::new(stream, turn.clone(), for_head, limits);
        let has_begun = tokio::select! {
            biased;
            first = stream.read_first() => first.unwrap_or(false),
            () = leave.cancelled() => {
                // The client may be sending its request: a response tells it to try again.
                drop(place);
                if !http.server.is_draining() && let Ok(_farewell) = http.connection_limiter.rejection_permits.try_acquire() {
                    tell_full(stream).await;
                }
                return;
            }
        };
        if !has_begun {
            return;
        }
        let stream = TokioIo::new(stream);
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder
            // The stream has its own deadlines, which distinguish a slow head from an idle keep-alive connection.
            .header_read_timeout(None)
            // hyper requires at least 8 KiB.
            .max_buf_size(limits.max_header_bytes.max(8192));
        let is_encrypted = manners.is_encrypted();
        let is_proxy = endpoint.trusted_proxies.trusts(place.remote_address());
        let (of_requests, held) = (turn, place.clone());
        let guarded = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let turn = of_requests.clone();
            let number = turn.start_request();
            let strict = is_encrypted && !is_localhost_request(request.headers());
            let mut request = request.map(|body| RequestBody::of(&turn, body));
            // hyper drops a `Content-Length` if there is a `Transfer-Encoding`.
            if request.headers().contains_key(TRANSFER_ENCODING) && !turn.has_clear_framing(number) {
                request.extensions_mut().insert(TwoLengths);
            }
            let forwarded = if is_proxy { endpoint.trusted_proxies.client(request.headers()) } else { None };
            if let Some(forwarded) = forwarded {
                request.extensions_mut().insert(forwarded);
            }
            request.extensions_mut().insert(place.clone());
            let place = place.clone();
            // Boxed: hyper moves the future three times before polling it, and it has 3 kB.
            let answer = Box::pin(handle_request(endpoint.clone(), routes.clone(), request));
            async move {
                let mut response = answer.await;
                if strict {
                    response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, HSTS_MAX_AGE);
                }
                // The reserve serves one request of each connection. After a body that was not read, the beginning of the
                // next request is unknown.
                let is_last = place.is_provisional() || turn.has_unread_body();
                if is_last && response.status() != StatusCode::SWITCHING_PROTOCOLS {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(ResponseBody::wrap(&turn, forwarded.map(|_| place), response))
            }
        });
        let mut connection = std::pin::pin!(builder.serve_connection(stream, guarded).with_upgrades());
        let ended = tokio::select! {
            // Evicted or not, a head that has arrived is answered.
            biased;
            ended = connection.as_mut() => ended,
            () = leave.cancelled() => {
                if held.is_stalled() {
                    return;
                }
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "connection closed unexpectedly");
        }
    }
}

/// A browser would apply HSTS of `localhost` to every program on the machine.
fn is_localhost_request(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).map(HeaderValue::as_bytes).unwrap_or_default();
    let name = host.split(|byte| *byte == b':').next().unwrap_or_default();
    name.eq_ignore_ascii_case(b"localhost")
}
