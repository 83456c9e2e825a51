//! Streaming response as server-sent events. When the connection closes, the stream is dropped and the provider call
//! cancelled.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;

use super::Held;
use super::cache::{LARGEST, Place};
use super::counts::Counts;
use super::failure::Failure;
use super::others_first::others_first;
use crate::providers::openai::Encoder;
use crate::providers::stream::Piece;
use crate::route::{self, Answering};

/// Interval of keep-alive comments on an idle stream, so that proxies do not time out.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Maximum number of reads that are coalesced into one write.
const MOST_TOGETHER: usize = 64;

struct Writing {
    answering: Answering,
    encoder: Encoder,
    counts: Counts,
    /// The response is passed through.
    as_it_came: bool,
    /// The bytes written so far, if the response is to be cached.
    keeping: Option<Keeping>,
    ended: bool,
    _held: Held,
}

struct Keeping {
    place: Place,
    said: Vec<u8>,
}

/// The events. Available events are coalesced. A broken response ends with an error and without `[DONE]`. Waits for the
/// first events, so that they are sent together with the headers.
pub(super) async fn events(
    answering: Answering,
    encoder: Encoder,
    with_usage: bool,
    place: Option<Place>,
    held: Held,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let keeping = place.map(|place| Keeping { place, said: Vec::new() });
    let counts = Counts::new(with_usage);
    let mut writing = Writing { answering, encoder, counts, as_it_came: false, keeping, ended: false, _held: held };
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
fn put(data: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    out.extend(data.bytes().map(|byte| if byte == b'\n' { b' ' } else { byte }));
    out.extend_from_slice(b"\n\n");
}

impl Writing {
    async fn next(&mut self) -> Bytes {
        let bytes = self.gather().await;
        self.remember(&bytes);
        bytes
    }

    /// Waits for an event and coalesces all that are available.
    async fn gather(&mut self) -> Bytes {
        let mut out = Vec::new();
        while out.is_empty() && !self.ended {
            let Ok(next) = tokio::time::timeout(KEEP_ALIVE, self.answering.next_piece()).await else {
                return Bytes::from_static(b": still waiting\n\n");
            };
            // The task that reads the connection passes on one chunk per poll. Yielding to it between reads lets one
            // write carry all available chunks.
            for _ in 0..MOST_TOGETHER {
                if !self.answering.read_ready() {
                    others_first().await;
                    if !self.answering.read_ready() {
                        break;
                    }
                }
            }
            if let (Some(Ok(Piece::Plain(events))), false) = (&next, self.answering.is_ready()) {
                self.as_it_came = true;
                return events.clone();
            }
            self.take(next, &mut out);
            while self.answering.is_ready() && !self.ended {
                let next = self.answering.next_piece().await;
                self.take(next, &mut out);
            }
        }
        out.into()
    }

    /// Caches a complete response. Broken responses, keep-alive comments and oversized responses are excluded.
    fn remember(&mut self, bytes: &Bytes) {
        let Some(keeping) = self.keeping.as_mut().filter(|_| !bytes.starts_with(b":")) else { return };
        keeping.said.extend_from_slice(bytes);
        if keeping.said.len() > LARGEST {
            self.keeping = None;
        } else if self.ended
            && let Some(Keeping { place, said }) = self.keeping.take()
        {
            let (provider, model) = self.answering.record().answered_by();
            place.keep(said.into(), true, provider, model);
        }
    }

    fn take(&mut self, next: Option<Result<Piece, route::Error>>, out: &mut Vec<u8>) {
        match next {
            Some(Ok(piece)) => self.write(piece, out),
            Some(Err(error)) => {
                self.ended = true;
                self.keeping = None;
                let failure = Failure::from(error).body();
                out.extend_from_slice(format!("data: {failure}\n\n").as_bytes());
            }
            None => {
                self.ended = true;
                self.end(out);
            }
        }
    }

    /// Passes events in OpenAI's format through, and translates all other events.
    fn write(&mut self, piece: Piece, out: &mut Vec<u8>) {
        let (data, counts) = match piece {
            Piece::Plain(events) => {
                self.as_it_came = true;
                out.extend_from_slice(&events);
                return;
            }
            Piece::Event { deltas, data: None, .. } => {
                deltas.iter().for_each(|delta| self.encoder.delta(delta, out));
                return;
            }
            Piece::Event { data: Some(data), counts, .. } => (data, counts),
        };
        self.as_it_came = true;
        if data.trim_start().starts_with("[DONE]") {
            return;
        }
        match counts {
            true => self.counts.taken_from(&data).iter().for_each(|left| put(left, out)),
            false => put(&data, out),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if !self.as_it_came {
            self.encoder.end(out);
            return;
        }
        self.counts.told().iter().for_each(|counts| put(counts, out));
        put("[DONE]", out);
    }
}
