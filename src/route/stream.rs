//! A routed answer that comes in pieces, and its record when it has come.

use std::time::Duration;

use tokio::time::Instant;

use super::error::Error;
use super::journey::Journey;
use super::record::Record;
use crate::config::providers::Price;
use crate::providers::chat::Usage;
use crate::providers::stream::{Piece, Stream};
use crate::providers::{self, Delta};

/// An answer that is coming. Dropped before its end, it counts as cancelled, and the provider stops.
#[derive(Debug)]
pub struct Answering {
    stream: Stream,
    journey: Journey,
    price: Option<Price>,
    usage: Usage,
    /// About what it costs, for whoever leaves before it is told.
    estimate: Usage,
    ended: bool,
}

impl Answering {
    /// `read` is about how many tokens the model was given; `limit` is how long the rest may take.
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

    /// How it was routed; whole once the stream has ended.
    pub fn record(&self) -> &Record {
        self.journey.record()
    }

    /// From here on, events of OpenAI's protocol are handed on as they came.
    pub fn pass_on(&mut self) {
        self.stream.pass_on();
    }

    /// Whether the next piece is there already.
    pub fn is_ready(&self) -> bool {
        self.stream.is_ready()
    }

    /// Looks whether more has come; does not wait for it.
    pub fn read_ready(&mut self) -> bool {
        !self.ended && self.stream.read_ready()
    }

    /// What comes next, bit by bit; none at the end. A failure is the last that comes, and is never taken for an end.
    pub async fn next(&mut self) -> Option<Result<Delta, Error>> {
        if self.ended {
            return None;
        }
        let next = self.stream.next().await;
        self.estimate.completion += 1;
        self.seen(next, std::slice::from_ref)
    }

    /// What comes next, event by event.
    pub async fn next_piece(&mut self) -> Option<Result<Piece, Error>> {
        if self.ended {
            return None;
        }
        let next = self.stream.next_piece().await;
        self.estimate.completion += next.as_ref().and_then(|next| next.as_ref().ok()).map_or(0, Piece::events);
        self.seen(next, Piece::deltas)
    }

    /// Counts the tokens of what came, and notes the end.
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

    /// What was written until now costs its caller, whether or not there is more.
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
