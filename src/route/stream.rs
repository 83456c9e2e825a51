//! A routed streaming response and its decision record.

use std::time::Duration;

use tokio::time::Instant;

use super::error::Error;
use super::journey::Journey;
use super::record::Record;
use crate::config::providers::Price;
use crate::providers::chat::Usage;
use crate::providers::stream::{Piece, Stream};
use crate::providers::{self, Delta};

/// A streaming response. If dropped early, it counts as cancelled and the connection to the provider is closed.
#[derive(Debug)]
pub struct Answering {
    stream: Stream,
    journey: Journey,
    price: Option<Price>,
    usage: Usage,
    /// Estimated usage, charged if the stream is dropped before the provider reports it.
    estimate: Usage,
    ended: bool,
}

impl Answering {
    /// `read` is the estimated number of prompt tokens; `limit` bounds the duration of the stream.
    pub(super) fn new(
        mut stream: Stream,
        journey: Journey,
        price: Option<Price>,
        read: u64,
        limit: Duration,
    ) -> Answering {
        stream.end_by(Instant::now() + limit);
        let estimate = Usage { prompt: read, ..Usage::default() };
        Answering { stream, journey, price, usage: Usage::default(), estimate, ended: false }
    }

    /// The decision record; complete once the stream has ended.
    pub fn record(&self) -> &Record {
        self.journey.record()
    }

    /// From here on, events in OpenAI's format are passed through.
    pub fn pass_on(&mut self) {
        self.stream.pass_on();
    }

    /// Whether the next event is buffered.
    pub fn is_ready(&self) -> bool {
        self.stream.is_ready()
    }

    /// Reads available data without waiting. Returns whether there was any.
    pub fn read_ready(&mut self) -> bool {
        !self.ended && self.stream.read_ready()
    }

    /// The next delta, or `None` at the end. A failure is the last item: a broken stream never looks like a complete
    /// one.
    pub async fn next(&mut self) -> Option<Result<Delta, Error>> {
        if self.ended {
            return None;
        }
        let next = self.stream.next().await;
        self.estimate.completion += 1;
        self.seen(next, std::slice::from_ref)
    }

    /// The next event.
    pub async fn next_piece(&mut self) -> Option<Result<Piece, Error>> {
        if self.ended {
            return None;
        }
        let next = self.stream.next_piece().await;
        self.estimate.completion += next.as_ref().and_then(|next| next.as_ref().ok()).map_or(0, Piece::events);
        self.seen(next, Piece::deltas)
    }

    /// Counts tokens, and finalizes the record at the end.
    fn seen<T>(
        &mut self,
        next: Option<Result<T, providers::Error>>,
        deltas: impl FnOnce(&T) -> &[Delta],
    ) -> Option<Result<T, Error>> {
        match next {
            Some(Ok(next)) => {
                for delta in deltas(&next) {
                    if let Delta::Used { usage } = delta {
                        self.usage = *usage;
                    }
                }
                Some(Ok(next))
            }
            Some(Err(error)) => {
                self.ended = true;
                let error = self.broken(error);
                self.pay();
                Some(Err(self.journey.failed(error)))
            }
            None => {
                self.ended = true;
                self.journey.answered(self.usage, self.price);
                None
            }
        }
    }

    /// Charges the caller for the tokens received so far, also if the stream is incomplete.
    fn pay(&mut self) {
        let told = Some(self.usage).filter(|usage| usage.total() > 0);
        self.journey.spend(told.unwrap_or(self.estimate), self.price);
    }

    fn broken(&self, error: providers::Error) -> Error {
        let record = self.journey.record();
        Error::Provider {
            provider: record.provider.clone().unwrap_or_default(),
            model: record.model.clone().unwrap_or_default(),
            error,
            asked: record.attempts.len(),
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if !self.ended {
            self.pay();
        }
    }
}
