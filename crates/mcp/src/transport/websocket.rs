//! `ws://…/mcp`: one JSON-RPC message per text frame, both ways (T-30, T-31).

use std::borrow::Cow;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use futures_util::SinkExt;
use futures_util::stream::{SplitSink, SplitStream, StreamExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at, sleep_until, timeout, timeout_at};

use super::connection::Connection;
use super::listener::ConnectionPermit;
use super::outgoing_queue::Receiver;
use crate::connected_caller::ConnectedCaller;
use crate::server::Server;
use crate::transport::CallerBucket;

pub(crate) fn accept(
    server: Server,
    party: ConnectedCaller,
    bucket: Option<Arc<CallerBucket>>,
    place: Option<ConnectionPermit>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let max = server.limits().max_message_bytes;
    upgrade.protocols([Cow::Borrowed("mcp")]).max_message_size(max).max_frame_size(max).on_upgrade(
        async move |socket| {
            serve(server, party, bucket, place.as_ref(), socket).await;
            drop(place);
        },
    )
}

/// Time for the close frame of an evicted socket. A new connection waits for its permit.
const EVICTION_CLOSE_TIMEOUT: Duration = Duration::from_millis(250);

async fn serve(
    server: Server,
    party: ConnectedCaller,
    bucket: Option<Arc<CallerBucket>>,
    place: Option<&ConnectionPermit>,
    socket: WebSocket,
) {
    let (connection, outgoing) = Connection::new(server.clone(), party, bucket);
    if let Some(place) = place {
        place.phase().set_running(connection.running());
    }
    let (sink, stream) = socket.split();
    let (close, closing) = mpsc::channel(1);
    let mut writer = tokio::spawn(write_loop(server.clone(), sink, outgoing, closing));
    let reason = tokio::select! {
        reason = read_loop(&server, &connection, place, stream) => reason,
        // A writer that ended found nobody reading.
        _ = &mut writer => return,
        () = evicted(&server, place) => {
            let reason = "the connections of this caller exceed its share, and another caller needs one";
            if let Some(reason) = close_frame(close_code::AGAIN, reason) {
                let _ = close.send(reason).await;
            }
            drop((connection, close));
            if timeout(EVICTION_CLOSE_TIMEOUT, &mut writer).await.is_err() {
                writer.abort();
            }
            return;
        }
    };
    // A socket that we end has its last answers first; a peer that left is not waited for.
    if server.is_draining() {
        let _ = timeout_at(server.drain_deadline(), connection.finished()).await;
    }
    if let Some(reason) = reason {
        let _ = close.send(reason).await;
    }
    drop((connection, close));
    let _ = timeout(Duration::from_secs(5), writer).await;
}

/// Waits until the socket is evicted. On shutdown, the read loop ends it.
async fn evicted(server: &Server, place: Option<&ConnectionPermit>) {
    match place {
        Some(place) => place.close_token().cancelled().await,
        None => pending().await,
    }
    if server.is_draining() {
        pending::<()>().await;
    }
}

/// Takes frames until the peer leaves, breaks a rule, says nothing for too long, or the server stops.
async fn read_loop(
    server: &Server,
    connection: &Connection,
    place: Option<&ConnectionPermit>,
    mut frames: SplitStream<WebSocket>,
) -> Option<CloseFrame> {
    let limits = server.limits();
    let mut last = Instant::now();
    loop {
        // While draining, new requests are still read and refused until the last one in flight is answered.
        let draining = server.is_draining();
        if draining && (connection.is_idle() || Instant::now() >= server.drain_deadline()) {
            return close_frame(close_code::AWAY, "the server is shutting down");
        }
        let frame = tokio::select! {
            frame = frames.next() => frame,
            () = sleep_until(last + limits.idle_timeout) => {
                return close_frame(close_code::POLICY, "idle timeout");
            }
            () = server.inner().draining.cancelled(), if !draining => continue,
            () = connection.finished(), if draining => continue,
        };
        last = Instant::now();
        match frame {
            Some(Ok(Message::Text(text))) => {
                if let Some(place) = place {
                    place.phase().record_message();
                }
                let mut reply = Vec::new();
                connection.receive(text.as_bytes(), &mut reply).await;
                if !reply.is_empty() {
                    connection.send(reply).await;
                }
            }
            Some(Ok(Message::Binary(_))) => {
                return close_frame(close_code::UNSUPPORTED, "only text frames are supported");
            }
            // Pings are answered by the protocol layer.
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Close(_))) => {
                // The protocol layer has an answer to this ready, and sends it when it is asked for the next frame.
                let _ = timeout(limits.write_timeout, frames.next()).await;
                return None;
            }
            None => return None,
            Some(Err(error)) => {
                tracing::debug!(%error, "WebSocket failed");
                return protocol_error_frame(&error.to_string());
            }
        }
        // Pongs come here too, so that one who only listens is told within a keep-alive.
        if connection.is_revoked() {
            return close_frame(close_code::POLICY, "token is no longer valid");
        }
    }
}

/// What a peer is told that broke a rule. The layer below tells the rules apart in its text alone.
fn protocol_error_frame(error: &str) -> Option<CloseFrame> {
    if error.contains("UTF-8") {
        close_frame(close_code::INVALID, "frame is not valid UTF-8")
    } else if error.contains("Space limit exceeded") {
        close_frame(close_code::SIZE, "frame is too large; see `server.limits.max_message_bytes`")
    } else {
        close_frame(close_code::PROTOCOL, "invalid frame")
    }
}

fn close_frame(code: u16, reason: &'static str) -> Option<CloseFrame> {
    Some(CloseFrame { code, reason: reason.into() })
}

/// The only writer: messages, pings while it is quiet, and the close frame.
async fn write_loop(
    server: Server,
    mut sink: SplitSink<WebSocket, Message>,
    mut outgoing: Receiver,
    mut closing: mpsc::Receiver<CloseFrame>,
) {
    let limits = server.limits();
    let mut ticks = interval_at(Instant::now() + limits.keep_alive_interval, limits.keep_alive_interval);
    loop {
        // The room a message takes is held until it has been sent.
        let (frame, _room) = tokio::select! {
            biased;
            message = outgoing.recv() => match message {
                // Encoded JSON is UTF-8; a frame that were not is dropped rather than sent broken.
                Some(mut message) => match String::from_utf8(std::mem::take(&mut message.bytes)) {
                    Ok(text) => (Message::Text(text.into()), Some(message)),
                    Err(_) => continue,
                },
                None => (Message::Close(closing.try_recv().ok()), None),
            },
            _ = ticks.tick() => (Message::Ping(Default::default()), None),
        };
        let last = matches!(frame, Message::Close(_));
        let sent = timeout(limits.write_timeout, sink.send(frame)).await;
        if last || !matches!(sent, Ok(Ok(()))) {
            return;
        }
    }
}
