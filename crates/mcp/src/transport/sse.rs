//! Server-sent events: the form an HTTP reply takes when something comes before its answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::Stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue};
use tokio::time::{Interval, MissedTickBehavior, interval};

const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A reply that streams these messages, with keep-alive comments so that proxies and clients do not time out.
pub(crate) fn event_stream_response(
    messages: impl Stream<Item = Vec<u8>> + Send + 'static,
    keep_alive: Duration,
) -> Response {
    let mut ticks = interval(keep_alive.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick of an interval fires immediately.
    ticks.reset();
    let body = Body::from_stream(EventStream { messages: Box::pin(messages), ticks });
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // Proxies must not hold events back.
        (X_ACCEL_BUFFERING, HeaderValue::from_static("no")),
    ];
    (headers, body).into_response()
}

struct EventStream {
    messages: Pin<Box<dyn Stream<Item = Vec<u8>> + Send>>,
    ticks: Interval,
}

impl Stream for EventStream {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.messages.as_mut().poll_next(context) {
            Poll::Ready(Some(message)) => {
                self.ticks.reset();
                Poll::Ready(Some(Ok(encode_event(&message))))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => match self.ticks.poll_tick(context) {
                Poll::Ready(_) => Poll::Ready(Some(Ok(Bytes::from_static(b":\n\n")))),
                Poll::Pending => Poll::Pending,
            },
        }
    }
}

/// Messages are compact JSON, so they never hold a newline and fit one `data` line.
fn encode_event(message: &[u8]) -> Bytes {
    let mut event = Vec::with_capacity(message.len() + 24);
    event.extend_from_slice(b"event: message\ndata: ");
    event.extend_from_slice(message);
    event.extend_from_slice(b"\n\n");
    event.into()
}
