//! Connections: accepted one by one, counted, served with bounds on time, and drained.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::auth::Auth;
use super::guard::{Endpoint, Routes, guard};
use super::http::Http;
use super::slow_reader::WriteDeadline;
use crate::server::Server;

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

impl Http {
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
}

impl Place {
    pub(super) fn from(&self) -> IpAddr {
        self.0.from
    }

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
