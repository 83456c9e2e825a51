//! Request bodies with limits on size, time and total memory.
//!
//! Memory is reserved as bytes arrive and not as announced, so a thousand clients that announce much and send nothing
//! take none. The bytes themselves are counted, from their arrival until their request is done. Not counted: the
//! buffers below (a few dozen KiB per connection, including incomplete WebSocket messages, bounded in number and size),
//! the copy when chunks are joined, and data derived from a body.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::time::{Instant, timeout_at};

use super::middleware::error_response;
use crate::error::Error;
use crate::server::Server;
use crate::version::Era;

/// Memory budget for bodies, over all connections. Cheap to clone; all clones share their state.
#[derive(Debug, Clone)]
pub(crate) struct BodyMemory(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    max_bytes: usize,
    used: AtomicUsize,
}

/// A reservation, released on drop.
#[derive(Debug)]
pub struct BodyReservation {
    memory: BodyMemory,
    bytes: usize,
}

/// A complete body with its reservation, which must be kept as long as any part of the body.
#[derive(Debug)]
pub struct ReceivedBody {
    pub bytes: Bytes,
    pub reserved: BodyReservation,
}

/// Why the body could not be received.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BodyError {
    #[error("unsupported content type; send `Content-Type: application/json`")]
    NotJson,
    #[error("request body is larger than {most} bytes; send less or increase `server.limits.max_message_bytes`")]
    TooLarge { most: usize },
    #[error("timed out while reading the request body")]
    TooSlow,
    #[error("incomplete request body")]
    Incomplete,
    #[error(transparent)]
    NoMemory(#[from] Error),
}

/// Minimum time for a body, regardless of its rate.
const MIN_BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// After that, a body that arrives with fewer bytes per second on average is rejected.
const MIN_BYTES_PER_SECOND: usize = 32 << 10;
/// Retry hint when the memory is exhausted: most requests are done by then.
const MEMORY_RETRY_AFTER: Duration = Duration::from_secs(1);

impl Server {
    /// Receives a complete JSON body.
    ///
    /// It must be JSON by its type: a web page can send forms, plain text and bodies without a type cross-origin
    /// without a CORS preflight.
    pub async fn receive_json(&self, headers: &HeaderMap, body: Body) -> Result<ReceivedBody, BodyError> {
        // Of several types another reader might use a different one, so all have to be JSON.
        let is_json = headers.contains_key(CONTENT_TYPE) || body.is_end_stream();
        let is_json = is_json
            && headers.get_all(CONTENT_TYPE).iter().all(|kind| {
                kind.to_str().is_ok_and(|kind| {
                    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
                })
            });
        match is_json {
            true => self.receive_body(body).await,
            false => Err(BodyError::NotJson),
        }
    }

    /// Receives a complete body, for routes that a program serves.
    pub async fn receive_body(&self, mut body: Body) -> Result<ReceivedBody, BodyError> {
        let limits = self.limits();
        let most = limits.max_message_bytes;
        if body.size_hint().lower() > most as u64 {
            return Err(BodyError::TooLarge { most });
        }
        let mut reserved = self.inner().body_memory.empty_reservation();
        let mut pieces = BodyChunks::default();
        let mut began = None;
        loop {
            let mut next = body.frame();
            // A small body arrives with its head; a timer is only needed if the body is incomplete.
            let frame = match futures_util::poll!(&mut next) {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    let began = *began.get_or_insert_with(Instant::now);
                    let slowest =
                        MIN_BODY_TIMEOUT + Duration::from_secs((reserved.bytes / MIN_BYTES_PER_SECOND) as u64);
                    let deadline = began + limits.request_read_timeout.min(slowest);
                    timeout_at(deadline, next).await.map_err(|_| BodyError::TooSlow)?
                }
            };
            let Some(frame) = frame else { break };
            // Ignore trailers.
            let Ok(data) = frame.map_err(|_| BodyError::Incomplete)?.into_data() else { continue };
            if reserved.bytes + data.len() > most {
                return Err(BodyError::TooLarge { most });
            }
            reserved.grow(data.len()).map_err(|error| self.count_out_of_memory(error))?;
            pieces.add(data);
        }
        Ok(ReceivedBody { bytes: pieces.joined(), reserved })
    }

    /// Reserves memory for a received message.
    pub(crate) fn reserve_body_memory(&self, bytes: usize) -> Result<BodyReservation, Error> {
        let mut reserved = self.inner().body_memory.empty_reservation();
        reserved.grow(bytes).map_err(|error| self.count_out_of_memory(error))?;
        Ok(reserved)
    }

    fn count_out_of_memory(&self, error: Error) -> Error {
        self.inner().admission.count_body_memory_shed();
        error
    }
}

/// Chunks of a body. Nearly all bodies arrive in one chunk, which is not copied.
#[derive(Default)]
struct BodyChunks {
    first: Bytes,
    joined: BytesMut,
}

impl BodyChunks {
    fn add(&mut self, piece: Bytes) {
        if self.first.is_empty() && self.joined.is_empty() {
            self.first = piece;
            return;
        }
        self.joined.extend_from_slice(&std::mem::take(&mut self.first));
        self.joined.extend_from_slice(&piece);
    }

    fn joined(self) -> Bytes {
        if self.joined.is_empty() { self.first } else { self.joined.freeze() }
    }
}

impl BodyMemory {
    pub(crate) fn new(most: usize) -> BodyMemory {
        BodyMemory(Arc::new(Inner { max_bytes: most, used: AtomicUsize::new(0) }))
    }

    fn empty_reservation(&self) -> BodyReservation {
        BodyReservation { memory: self.clone(), bytes: 0 }
    }
}

impl BodyReservation {
    fn grow(&mut self, bytes: usize) -> Result<(), Error> {
        let Inner { max_bytes: most, used: taken } = &*self.memory.0;
        let fits = |taken: usize| taken.checked_add(bytes).filter(|together| together <= most);
        if taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
            let message = format!(
                "requests in progress use all {most} bytes of body memory; try again later, send smaller requests, or \
                 increase `server.limits.max_body_memory`"
            );
            return Err(Error::busy(message, MEMORY_RETRY_AFTER));
        }
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for BodyReservation {
    fn drop(&mut self) {
        self.memory.0.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Reads the JSON body of a protocol request.
pub(super) async fn read_body(server: &Server, headers: &HeaderMap, body: Body) -> Result<ReceivedBody, Box<Response>> {
    server.receive_json(headers, body).await.map_err(|not_received| {
        let status = not_received.status();
        let error = match not_received {
            BodyError::NoMemory(error) => error,
            other => Error::InvalidRequest(other.to_string()),
        };
        Box::new(error_response(status, &error, Era::Legacy))
    })
}

impl BodyError {
    pub fn status(&self) -> StatusCode {
        match self {
            BodyError::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            BodyError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            BodyError::TooSlow => StatusCode::REQUEST_TIMEOUT,
            BodyError::Incomplete => StatusCode::BAD_REQUEST,
            BodyError::NoMemory(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn server(limits: Limits) -> Server {
        Server::builder("test", "1").limits(limits).build().expect("valid")
    }

    /// A body of `pieces` chunks with a delay between them.
    fn trickle(pieces: usize, bytes: usize, every: Duration) -> Body {
        let piece = move |number: usize| async move {
            if number == pieces {
                return None;
            }
            tokio::time::sleep(every).await;
            Some((Ok::<_, std::io::Error>(vec![b'a'; bytes]), number + 1))
        };
        Body::from_stream(futures_util::stream::unfold(0, piece))
    }

    fn taken(server: &Server) -> usize {
        server.inner().body_memory.0.used.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn s10_bodies_have_their_memory_as_long_as_they_are_kept() {
        let server = server(Limits { max_body_memory: 100, ..Limits::default() });
        let whole = |bytes: usize| Body::from(vec![b'a'; bytes]);
        let first = server.receive_body(whole(60)).await.expect("there is room");
        let second = server.receive_body(whole(40)).await.expect("there is room");
        assert!(matches!(server.receive_body(whole(1)).await, Err(BodyError::NoMemory(Error::Busy { .. }))));
        drop(second);
        assert!(matches!(server.receive_body(whole(41)).await, Err(BodyError::NoMemory(_))));
        assert_eq!(taken(&server), 60, "a refused one takes nothing");
        drop(first);
        assert_eq!(server.receive_body(whole(100)).await.expect("there is room").bytes.len(), 100);
        assert_eq!(taken(&server), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn s10_a_body_that_trickles_is_given_up_and_one_that_flows_is_not() {
        let minutes = Duration::from_secs(600);
        let server = server(Limits { request_read_timeout: minutes, ..Limits::default() });
        let began = Instant::now();
        let slow = server.receive_body(trickle(600, 1, Duration::from_secs(1))).await;
        assert!(matches!(slow, Err(BodyError::TooSlow)), "{slow:?}");
        assert!(began.elapsed() <= MIN_BODY_TIMEOUT + Duration::from_secs(1));
        let fair = server.receive_body(trickle(40, 64 << 10, Duration::from_secs(2))).await.expect("it flows");
        assert_eq!(fair.bytes.len(), 40 * (64 << 10));
    }

    #[tokio::test(start_paused = true)]
    async fn s10_pieces_are_joined_in_their_order() {
        let pieces =
            ["{\"a\"", ":", "", "1}"].map(|piece| Ok::<_, std::io::Error>(Bytes::from_static(piece.as_bytes())));
        let body = Body::from_stream(futures_util::stream::iter(pieces));
        let received = server(Limits::default()).receive_body(body).await.expect("whole");
        assert_eq!(&received.bytes[..], b"{\"a\":1}");
    }
}
