//! An answer in pieces, as events. Dropped with its connection, it takes the call to the provider along.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;

use super::failure::Failure;
use crate::providers::openai::Encoder;
use crate::route::Answering;

/// How often a silent stream gets a sign of life, so that nothing between closes it.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

struct Writing {
    answering: Answering,
    encoder: Encoder,
    ended: bool,
}

/// The events. What is ready is written together; an answer that breaks ends with an error and without `[DONE]`.
pub(super) fn events(answering: Answering, encoder: Encoder) -> impl Stream<Item = Result<Bytes, Infallible>> {
    unfold(Writing { answering, encoder, ended: false }, |mut writing| async move {
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
            let Ok(next) = tokio::time::timeout(KEEP_ALIVE, self.answering.next()).await else {
                return Bytes::from_static(b": still waiting\n\n");
            };
            match next {
                Some(Ok(delta)) => self.encoder.delta(&delta, &mut out),
                Some(Err(error)) => {
                    self.ended = true;
                    let failure = Failure::from(error).body();
                    out.extend_from_slice(format!("data: {failure}\n\n").as_bytes());
                }
                None => {
                    self.ended = true;
                    self.encoder.end(&mut out);
                }
            }
            if self.ended {
                break;
            }
        }
        out.into()
    }
}
