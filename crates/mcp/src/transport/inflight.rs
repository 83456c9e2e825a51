//! In-flight POST requests and the form of their responses.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::response::Response;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};
use http::StatusCode;
use tokio_util::sync::CancellationToken;

use super::middleware::{json_response, with_retry_after};
use super::outgoing_queue::{LazyReceiver, QueuedMessage};
use super::sse;
use crate::message::Id;
use crate::reply::ServerResponse;
use crate::server::Server;
use crate::session::Session;

/// A request in progress for a client that may disconnect.
///
/// A modern client that closes the stream has cancelled. A legacy client has not: its work continues.
pub(crate) struct InflightRequest {
    work: Option<BoxFuture<'static, ServerResponse>>,
    /// The session in which the request can be cancelled.
    pub(super) registered: Option<(Arc<Session>, Id)>,
    pub(super) cancel: CancellationToken,
    /// The server that continues the work after a disconnect; `None` if a disconnect cancels it.
    detach: Option<Server>,
}

impl InflightRequest {
    pub(crate) fn new(work: BoxFuture<'static, ServerResponse>, detach: Option<Server>) -> InflightRequest {
        InflightRequest { work: Some(work), registered: None, cancel: CancellationToken::new(), detach }
    }
}

impl Future for InflightRequest {
    type Output = ServerResponse;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ServerResponse> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let answer = std::task::ready!(work.as_mut().poll(context));
        self.work = None;
        Poll::Ready(answer)
    }
}

impl Drop for InflightRequest {
    fn drop(&mut self) {
        let registered = self.registered.take();
        let ended = move || {
            if let Some((session, id)) = registered {
                session.unregister_request(&id);
            }
        };
        match (self.work.take(), &self.detach) {
            // It can still be cancelled by id while it continues.
            (Some(work), Some(server)) => server.spawn(async move {
                drop(work.await);
                ended();
            }),
            (Some(_), None) => {
                self.cancel.cancel();
                ended();
            }
            (None, _) => ended(),
        }
    }
}

/// The first output decides the form: a response is sent as JSON, an earlier message starts an event stream (T-12).
pub(super) async fn respond(mut running: InflightRequest, outgoing: LazyReceiver, server: &Server) -> Response {
    #[expect(clippy::large_enum_variant, reason = "matched immediately")]
    enum First {
        Response(ServerResponse),
        Message(QueuedMessage),
    }
    let at_once = futures_util::poll!(&mut running);
    if let Poll::Ready(answer) = &at_once
        && outgoing.is_unused()
    {
        return respond_json(answer);
    }
    let mut outgoing = outgoing.open();
    let first = match at_once {
        Poll::Ready(answer) => First::Response(answer),
        Poll::Pending => tokio::select! {
            biased;
            answer = &mut running => First::Response(answer),
            Some(message) = outgoing.recv() => First::Message(message),
        },
    };
    let (message, answer) = match first {
        First::Message(message) => (message, None),
        First::Response(answer) => match outgoing.try_recv() {
            Ok(message) => (message, Some(answer)),
            Err(_) => return respond_json(&answer),
        },
    };
    enum StreamState {
        Running(InflightRequest),
        Answered(ServerResponse),
        Finished,
    }
    let step = match answer {
        None => StreamState::Running(running),
        Some(answer) => StreamState::Answered(answer),
    };
    let rest = stream::unfold((step, outgoing), |(step, mut outgoing)| async move {
        match step {
            StreamState::Finished => None,
            StreamState::Answered(answer) => match outgoing.try_recv() {
                Ok(message) => Some((message.bytes, (StreamState::Answered(answer), outgoing))),
                Err(_) => Some((answer.encode(), (StreamState::Finished, outgoing))),
            },
            StreamState::Running(mut running) => tokio::select! {
                biased;
                Some(message) = outgoing.recv() => Some((message.bytes, (StreamState::Running(running), outgoing))),
                answer = &mut running => match outgoing.try_recv() {
                    Ok(message) => Some((message.bytes, (StreamState::Answered(answer), outgoing))),
                    Err(_) => Some((answer.encode(), (StreamState::Finished, outgoing))),
                },
            },
        }
    });
    sse::event_stream_response(
        stream::once(std::future::ready(message.bytes)).chain(rest),
        server.limits().keep_alive_interval,
    )
}

fn respond_json(answer: &ServerResponse) -> Response {
    let status = match &answer.outcome {
        Ok(_) => StatusCode::OK,
        Err(error) => error.json_rpc_status(answer.era),
    };
    let response = json_response(status, answer.encode());
    match &answer.outcome {
        Ok(_) => response,
        Err(error) => with_retry_after(response, error),
    }
}
