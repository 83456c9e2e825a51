//! In-flight POST requests and the form of their responses.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::response::Response;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};
use http::StatusCode;
use tokio_util::sync::CancellationToken;

use super::guard::{json, with_hint};
use super::queue::{Queued, Unopened};
use super::sse;
use crate::message::Id;
use crate::reply::Answer;
use crate::server::Server;
use crate::session::Session;

/// A request in progress for a client that may disconnect.
///
/// A modern client that closes the stream has cancelled. A legacy client has not: its work continues.
pub(crate) struct Running {
    work: Option<BoxFuture<'static, Answer>>,
    /// The session in which the request can be cancelled.
    pub(super) registered: Option<(Arc<Session>, Id)>,
    pub(super) cancel: CancellationToken,
    /// The server that continues the work after a disconnect; `None` if a disconnect cancels it.
    detach: Option<Server>,
}

impl Running {
    pub(crate) fn new(work: BoxFuture<'static, Answer>, detach: Option<Server>) -> Running {
        Running { work: Some(work), registered: None, cancel: CancellationToken::new(), detach }
    }
}

impl Future for Running {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let answer = std::task::ready!(work.as_mut().poll(context));
        self.work = None;
        Poll::Ready(answer)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let registered = self.registered.take();
        let ended = move || {
            if let Some((session, id)) = registered {
                session.ended(&id);
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
pub(super) async fn reply(mut running: Running, outgoing: Unopened, server: &Server) -> Response {
    #[expect(clippy::large_enum_variant, reason = "it lives for one match")]
    enum First {
        Answer(Answer),
        Message(Queued),
    }
    let at_once = futures_util::poll!(&mut running);
    if let Poll::Ready(answer) = &at_once
        && outgoing.is_unused()
    {
        return answer_as_json(answer);
    }
    let mut outgoing = outgoing.open();
    let first = match at_once {
        Poll::Ready(answer) => First::Answer(answer),
        Poll::Pending => tokio::select! {
            biased;
            answer = &mut running => First::Answer(answer),
            Some(message) = outgoing.recv() => First::Message(message),
        },
    };
    let (message, answer) = match first {
        First::Message(message) => (message, None),
        First::Answer(answer) => match outgoing.try_recv() {
            Ok(message) => (message, Some(answer)),
            Err(_) => return answer_as_json(&answer),
        },
    };
    enum Step {
        Going(Running),
        Answered(Answer),
        Over,
    }
    let step = match answer {
        None => Step::Going(running),
        Some(answer) => Step::Answered(answer),
    };
    let rest = stream::unfold((step, outgoing), |(step, mut outgoing)| async move {
        match step {
            Step::Over => None,
            Step::Answered(answer) => match outgoing.try_recv() {
                Ok(message) => Some((message.bytes, (Step::Answered(answer), outgoing))),
                Err(_) => Some((answer.encode(), (Step::Over, outgoing))),
            },
            Step::Going(mut running) => tokio::select! {
                biased;
                Some(message) = outgoing.recv() => Some((message.bytes, (Step::Going(running), outgoing))),
                answer = &mut running => match outgoing.try_recv() {
                    Ok(message) => Some((message.bytes, (Step::Answered(answer), outgoing))),
                    Err(_) => Some((answer.encode(), (Step::Over, outgoing))),
                },
            },
        }
    });
    sse::reply(stream::once(std::future::ready(message.bytes)).chain(rest), server.limits().keep_alive_interval)
}

fn answer_as_json(answer: &Answer) -> Response {
    let status = match &answer.outcome {
        Ok(_) => StatusCode::OK,
        Err(error) => error.json_rpc_status(answer.era),
    };
    let response = json(status, answer.encode());
    match &answer.outcome {
        Ok(_) => response,
        Err(error) => with_hint(response, error),
    }
}
