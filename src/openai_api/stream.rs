//! An answer in pieces, as events. Dropped with its connection, it takes the call to the provider along.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;

use super::failure::Failure;
use crate::providers::Delta;
use crate::providers::openai::Encoder;
use crate::providers::stream::Piece;
use crate::route::Answering;

/// How often a silent stream gets a sign of life, so that nothing between closes it.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

struct Writing {
    answering: Answering,
    encoder: Encoder,
    /// The caller wants to be told of tokens. We ask providers for them in any case.
    with_usage: bool,
    /// The provider has said itself that this is the end.
    done: bool,
    ended: bool,
}

/// The events. What is ready is written together; an answer that breaks ends with an error and without `[DONE]`.
pub(super) fn events(
    answering: Answering,
    encoder: Encoder,
    with_usage: bool,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let writing = Writing { answering, encoder, with_usage, done: false, ended: false };
    unfold(writing, |mut writing| async move {
        if writing.ended {
            return None;
        }
        let bytes = writing.next().await;
        Some((Ok(bytes), writing))
    })
}

impl Writing {
    async fn next(&mut self) -> Bytes {
        let mut out = Vec::new();
        while out.is_empty() || (self.answering.is_ready() && !self.ended) {
            let Ok(next) = tokio::time::timeout(KEEP_ALIVE, self.answering.next_piece()).await else {
                return Bytes::from_static(b": still waiting\n\n");
            };
            match next {
                Some(Ok(piece)) => self.write(&piece, &mut out),
                Some(Err(error)) => {
                    self.ended = true;
                    let failure = Failure::from(error).body();
                    out.extend_from_slice(format!("data: {failure}\n\n").as_bytes());
                }
                None => {
                    self.ended = true;
                    if !self.done {
                        self.encoder.end(&mut out);
                    }
                }
            }
            if self.ended {
                break;
            }
        }
        out.into()
    }

    /// An event of the same protocol goes on as it came; others are translated.
    fn write(&mut self, piece: &Piece, out: &mut Vec<u8>) {
        let Some(data) = &piece.data else {
            piece.deltas.iter().for_each(|delta| self.encoder.delta(delta, out));
            return;
        };
        let about_tokens = matches!(&piece.deltas[..], [Delta::Used { .. }]);
        if about_tokens && !self.with_usage {
            return;
        }
        self.done |= data.trim_start().starts_with("[DONE]");
        out.extend_from_slice(b"data: ");
        // Data of several lines would need the word before each of them; JSON has no need for more than one.
        out.extend(data.bytes().map(|byte| if byte == b'\n' { b' ' } else { byte }));
        out.extend_from_slice(b"\n\n");
    }
}
