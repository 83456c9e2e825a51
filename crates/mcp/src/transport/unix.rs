//! Unix socket for programs of the same user: the protocol of `stdio`, for many peers.
//!
//! The caller creates the listener and thereby chooses its path and permissions. In addition, connections of other
//! users are rejected here, so that a world-accessible folder is safe.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout, timeout_at};
use tokio_util::task::TaskTracker;

use super::connection::encode_rejection;
use super::peer_credentials::AllowedPeers;
use super::stdio;
use super::write_deadline::WriteDeadline;
use crate::connected_caller::ConnectedCaller;
use crate::error::Error;
use crate::message::DecodeError;
use crate::server::Server;
use crate::trust::Transport;
use crate::trust_state::TrustState;

/// Serves one listener until the server is drained and its last request answered.
///
/// `max_connections` bounds the number of connections together with those of other transports; further ones get an
/// error and are closed.
pub async fn serve(server: &Server, listener: UnixListener, trust: impl Into<TrustState>) -> io::Result<()> {
    let peers = AllowedPeers::own_user()?;
    let party = ConnectedCaller::new(Transport::Unix, "unix".into(), trust.into());
    let places = Arc::new(Semaphore::new(server.limits().max_connections));
    let open = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = server.inner().draining.cancelled() => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            // Probably out of file descriptors: waiting allows some to be closed.
            Err(error) => {
                tracing::warn!(%error, "cannot accept connection");
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        if !peers.allows(&stream) {
            server.inner().metrics.rejected_connections.inc();
            let error = Error::Authentication("permission denied: this socket accepts only its own user".into());
            open.spawn(reject_connection(stream, error));
            continue;
        }
        match places.clone().try_acquire_owned() {
            Ok(place) => drop(open.spawn(serve_peer(server.clone(), stream, party.clone(), place))),
            Err(_) => {
                server.inner().metrics.rejected_connections.inc();
                let most = server.limits().max_connections;
                let error = Error::RateLimited(format!(
                    "too many open connections (maximum {most}); close one and \
                    retry"
                ));
                open.spawn(reject_connection(stream, error));
            }
        }
    }
    // New connections are refused, as they are after the process has ended.
    drop(listener);
    open.close();
    tokio::select! {
        _ = timeout_at(server.drain_deadline(), open.wait()) => {}
        () = server.stopped() => {}
    }
    Ok(())
}

async fn serve_peer(server: Server, stream: UnixStream, party: ConnectedCaller, _place: OwnedSemaphorePermit) {
    let (reader, writer) = stream.into_split();
    let writer = WriteDeadline::new(writer, server.limits().write_timeout);
    if let Err(error) = stdio::serve_caller(&server, reader, writer, party).await {
        tracing::debug!(%error, "connection closed unexpectedly");
    }
}

/// Sends a one-line error without reading the request.
async fn reject_connection(mut stream: UnixStream, error: Error) {
    let mut line = encode_rejection(&DecodeError { id: None, error });
    line.push(b'\n');
    let _ = timeout(Duration::from_secs(1), stream.write_all(&line)).await;
}
