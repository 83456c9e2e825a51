//! Bodies that report to the phase of their connection: a request body that is dropped unread, a response that is sent.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};

use super::connection_limit::ConnectionPermit;
use super::connection_phase::{ConnectionPhase, Phase};

/// Body of a request; records when it is dropped before its end.
pub(super) struct RequestBody {
    body: Incoming,
    phase: ConnectionPhase,
    ended: bool,
}

/// Body of a response. After it is dropped, the connection becomes idle with the next flush.
pub(super) struct ResponseBody {
    body: Body,
    /// `None` after an upgrade: the following bytes are not HTTP and have separate limits.
    phase: Option<ConnectionPhase>,
    /// The connection of a proxy, which is assigned to one client until this response is complete.
    forwarded: Option<ConnectionPermit>,
}

// === impl RequestBody ===

impl RequestBody {
    /// The body of a request on this connection.
    pub(super) fn of(phase: &ConnectionPhase, body: Incoming) -> Body {
        match body.is_end_stream() {
            true => Body::empty(),
            false => Body::new(RequestBody { body, phase: phase.clone(), ended: false }),
        }
    }
}

impl hyper::body::Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.ended = !matches!(frame, Some(Ok(_)));
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        // hyper skips what has arrived of a body with a length, and keeps the connection if that is all of it. It skips no
        // more than one chunk of others.
        let is_skipped = || self.body.size_hint().exact().is_some() && self.phase.has_arrived();
        if !self.ended && !self.body.is_end_stream() && !is_skipped() {
            self.phase.set_unread_body();
        }
    }
}

// === impl ResponseBody ===

impl ResponseBody {
    pub(super) fn wrap(
        phase: &ConnectionPhase,
        forwarded: Option<ConnectionPermit>,
        response: axum::response::Response,
    ) -> http::Response<ResponseBody> {
        let is_upgrade = response.status() == http::StatusCode::SWITCHING_PROTOCOLS;
        if is_upgrade {
            phase.record_message();
        }
        let phase = (!is_upgrade).then(|| phase.clone());
        response.map(|body| ResponseBody { body, phase, forwarded })
    }
}

impl hyper::body::Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        if let Some(phase) = &self.phase {
            phase.enter(Phase::Flush, 0);
            if let Some(permit) = &self.forwarded {
                permit.release_client();
            }
        }
    }
}
