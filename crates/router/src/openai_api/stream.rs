//! Streaming response as server-sent events. When the connection closes, the stream is dropped and the provider call
//! cancelled.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;

use super::RequestGuard;
use super::cache::{CacheSlot, MAX_RESPONSE_BYTES};
use super::error::ApiError;
use super::fair_yield::yield_to_others;
use super::usage::UsageTracker;
use crate::RoutedStream;
use corbie_llm::openai::Encoder;
use corbie_llm::stream::StreamPiece;

/// Interval of keep-alive comments on an idle stream, so that proxies do not time out.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Maximum number of reads that are coalesced into one write.
const MAX_EVENTS_PER_WRITE: usize = 64;

struct EventWriter {
    response: RoutedStream,
    encoder: Encoder,
    usage: UsageTracker,
    /// The response is passed through.
    passthrough: bool,
    /// The bytes written so far, if the response is to be cached.
    recorder: Option<ResponseRecorder>,
    ended: bool,
    _held: RequestGuard,
}

struct ResponseRecorder {
    slot: CacheSlot,
    bytes: Vec<u8>,
}

/// The events. Available events are coalesced. A broken response ends with an error and without `[DONE]`. Waits for the
/// first events, so that they are sent together with the headers.
pub(super) async fn events(
    answering: RoutedStream,
    encoder: Encoder,
    with_usage: bool,
    place: Option<CacheSlot>,
    held: RequestGuard,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let keeping = place.map(|place| ResponseRecorder { slot: place, bytes: Vec::new() });
    let counts = UsageTracker::new(with_usage);
    let mut writing = EventWriter {
        response: answering,
        encoder,
        usage: counts,
        passthrough: false,
        recorder: keeping,
        ended: false,
        _held: held,
    };
    let first = writing.next().await;
    unfold((Some(first), writing), |(first, mut writing)| async move {
        let bytes = match first {
            Some(first) => first,
            None if writing.ended => return None,
            None => writing.next().await,
        };
        Some((Ok(bytes), (None, writing)))
    })
}

/// Writes one event. Newlines become spaces, because a data line cannot contain them and JSON does not need them.
fn write_event(data: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    out.extend(data.bytes().map(|byte| if byte == b'\n' { b' ' } else { byte }));
    out.extend_from_slice(b"\n\n");
}

impl EventWriter {
    async fn next(&mut self) -> Bytes {
        let bytes = self.next_batch().await;
        self.record(&bytes);
        bytes
    }

    /// Waits for an event and coalesces all that are available.
    async fn next_batch(&mut self) -> Bytes {
        let mut out = Vec::new();
        while out.is_empty() && !self.ended {
            let Ok(next) = tokio::time::timeout(KEEP_ALIVE_INTERVAL, self.response.next_piece()).await else {
                return Bytes::from_static(b": keep-alive\n\n");
            };
            // The task that reads the connection passes on one chunk per poll. Yielding to it between reads lets one
            // write carry all available chunks.
            for _ in 0..MAX_EVENTS_PER_WRITE {
                if !self.response.read_ready() {
                    yield_to_others().await;
                    if !self.response.read_ready() {
                        break;
                    }
                }
            }
            if let (Some(Ok(StreamPiece::Passthrough(events))), false) = (&next, self.response.is_ready()) {
                self.passthrough = true;
                return events.clone();
            }
            self.handle(next, &mut out);
            while self.response.is_ready() && !self.ended {
                let next = self.response.next_piece().await;
                self.handle(next, &mut out);
            }
        }
        out.into()
    }

    /// Caches a complete response. Broken responses, keep-alive comments and oversized responses are excluded.
    fn record(&mut self, bytes: &Bytes) {
        let Some(keeping) = self.recorder.as_mut().filter(|_| !bytes.starts_with(b":")) else { return };
        keeping.bytes.extend_from_slice(bytes);
        if keeping.bytes.len() > MAX_RESPONSE_BYTES {
            self.recorder = None;
        } else if self.ended
            && let Some(ResponseRecorder { slot: place, bytes: said }) = self.recorder.take()
        {
            let (provider, model) = self.response.record().answered_by();
            place.store(said.into(), true, provider, model);
        }
    }

    fn handle(&mut self, next: Option<Result<StreamPiece, crate::Error>>, out: &mut Vec<u8>) {
        match next {
            Some(Ok(piece)) => self.write(piece, out),
            Some(Err(error)) => {
                self.ended = true;
                self.recorder = None;
                let failure = ApiError::from(error).body();
                out.extend_from_slice(format!("data: {failure}\n\n").as_bytes());
            }
            None => {
                self.ended = true;
                self.end(out);
            }
        }
    }

    /// Passes events in OpenAI's format through, and translates all other events.
    fn write(&mut self, piece: StreamPiece, out: &mut Vec<u8>) {
        let (data, counts) = match piece {
            StreamPiece::Passthrough(events) => {
                self.passthrough = true;
                out.extend_from_slice(&events);
                return;
            }
            StreamPiece::Event { deltas, data: None, .. } => {
                deltas.iter().for_each(|delta| self.encoder.delta(delta, out));
                return;
            }
            StreamPiece::Event { data: Some(data), counts, .. } => (data, counts),
        };
        self.passthrough = true;
        if data.trim_start().starts_with("[DONE]") {
            return;
        }
        match counts {
            true => self.usage.strip_usage(&data).iter().for_each(|left| write_event(left, out)),
            false => write_event(&data, out),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if !self.passthrough {
            self.encoder.end(out);
            return;
        }
        self.usage.final_chunk().iter().for_each(|counts| write_event(counts, out));
        write_event("[DONE]", out);
    }
}
