//! Response bodies: whole, server-sent events, and improperly terminated ones.

use std::time::Duration;
use std::{future, io};

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use http::header::CONTENT_TYPE;
use serde_json::Value;

const ENDLESS_CHUNK_SIZE: usize = 64 * 1024;

/// An answer, ready to send.
#[derive(Debug)]
pub(crate) enum ResponseBody {
    Full(Value),
    Events(Vec<Event>),
}

/// A server-sent event.
#[derive(Debug)]
pub(crate) struct Event {
    /// Only Anthropic names its events.
    pub(crate) name: Option<&'static str>,
    pub(crate) data: String,
    /// Whether it contains a piece of the answer.
    pub(crate) has_content: bool,
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    Complete,
    /// The body does not end: the connection stays open without further data.
    Silence,
    /// The connection closes.
    Closed,
}

/// A regular answer.
pub(crate) fn respond(reply: ResponseBody) -> Response {
    match reply {
        ResponseBody::Full(value) => json_response(&value),
        ResponseBody::Events(_) => {
            let kind = reply.content_type();
            ([(CONTENT_TYPE, kind)], chunked_body(reply.chunks(), Duration::ZERO, BodyEnd::Complete)).into_response()
        }
    }
}

pub(crate) fn json_response(value: &Value) -> Response {
    ([(CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// A body that is sent piece by piece, with a pause before each.
pub(crate) fn chunked_body(pieces: Vec<Bytes>, pause: Duration, ending: BodyEnd) -> Body {
    let pieces = stream::iter(pieces).then(move |piece| async move {
        pause_or_yield(pause).await;
        Ok::<_, io::Error>(piece)
    });
    let ended = stream::once(async move {
        match ending {
            BodyEnd::Complete => Ok(Bytes::new()),
            BodyEnd::Silence => future::pending().await,
            BodyEnd::Closed => {
                pause_or_yield(pause).await;
                Err(io::Error::other("the connection is to be closed here"))
            }
        }
    });
    Body::from_stream(pieces.chain(ended))
}

/// A body that closes the connection immediately. The head is not sent without a body piece, so no bytes are sent.
pub(crate) fn aborted_body() -> Body {
    Body::from_stream(stream::once(future::ready(Err::<Bytes, _>(io::Error::other("no answer")))))
}

/// A body with this start that continues until the client disconnects.
pub(crate) fn endless_body(beginning: &'static str) -> Body {
    let more = stream::repeat(Bytes::from(vec![b'a'; ENDLESS_CHUNK_SIZE])).then(|piece| async move {
        pause_or_yield(Duration::from_millis(1)).await;
        Ok::<_, io::Error>(piece)
    });
    Body::from_stream(stream::once(future::ready(Ok(Bytes::from(beginning)))).chain(more))
}

/// A body with this start that continues byte by byte with an endless comment.
pub(crate) fn trickling_body(beginning: Bytes, pause: Duration) -> Body {
    let more = stream::repeat(Bytes::from_static(b":")).then(move |byte| async move {
        pause_or_yield(pause).await;
        Ok::<_, io::Error>(byte)
    });
    Body::from_stream(stream::once(future::ready(Ok(beginning))).chain(more))
}

/// A text in several pieces, of at most 16 characters.
pub(crate) fn split(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let length = characters.len().div_ceil(4).clamp(1, 16);
    characters.chunks(length).map(|piece| piece.iter().collect()).collect()
}

/// Yields even without a pause, so that earlier output is sent.
async fn pause_or_yield(pause: Duration) {
    match pause.is_zero() {
        true => tokio::task::yield_now().await,
        false => tokio::time::sleep(pause).await,
    }
}

// === impl Reply ===

impl ResponseBody {
    pub(crate) fn content_type(&self) -> &'static str {
        match self {
            ResponseBody::Full(_) => "application/json",
            ResponseBody::Events(_) => "text/event-stream; charset=utf-8",
        }
    }

    /// The events, or the quarters of a whole answer.
    pub(crate) fn chunks(&self) -> Vec<Bytes> {
        match self {
            ResponseBody::Full(value) => {
                let text = value.to_string().into_bytes();
                text.chunks(text.len().div_ceil(4).max(1)).map(Bytes::copy_from_slice).collect()
            }
            ResponseBody::Events(events) => events.iter().map(Event::frame).collect(),
        }
    }

    /// Number of pieces up to the second one with content.
    pub(crate) fn chunks_until_second_content(&self) -> usize {
        match self {
            ResponseBody::Full(_) => 2,
            ResponseBody::Events(events) => {
                let saying =
                    events.iter().enumerate().filter(|(_, event)| event.has_content).map(|(index, _)| index + 1);
                saying.take(2).last().unwrap_or(0)
            }
        }
    }
}

// === impl Event ===

impl Event {
    /// An unnamed event.
    pub(crate) fn data(value: &Value, says: bool) -> Event {
        Event { name: None, data: value.to_string(), has_content: says }
    }

    pub(crate) fn frame(&self) -> Bytes {
        let data = &self.data;
        match self.name {
            Some(name) => format!("event: {name}\ndata: {data}\n\n").into(),
            None => format!("data: {data}\n\n").into(),
        }
    }
}
