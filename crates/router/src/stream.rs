//! A routed streaming response and its decision record.

use std::time::Duration;

use tokio::time::Instant;

use super::decision_record::DecisionRecord;
use super::error::Error;
use super::routed_request::RoutedRequest;
use super::stream_usage::StreamUsage;
use corbie_config::providers::Price;
use corbie_llm::stream::{ChatStream, StreamPiece};
use corbie_llm::{self as providers, Delta};

/// A streaming response. If dropped early, it counts as cancelled and the connection to the provider is closed.
#[derive(Debug)]
pub struct RoutedStream {
    stream: ChatStream,
    request: RoutedRequest,
    price: Option<Price>,
    usage: StreamUsage,
    ended: bool,
}

impl RoutedStream {
    /// `prompt_tokens` is an estimate; `limit` bounds the duration of the stream.
    pub(super) fn new(
        mut stream: ChatStream,
        request: RoutedRequest,
        price: Option<Price>,
        prompt_tokens: u64,
        limit: Duration,
    ) -> RoutedStream {
        stream.set_deadline(Instant::now() + limit);
        RoutedStream { stream, request, price, usage: StreamUsage::new(prompt_tokens), ended: false }
    }

    /// The decision record; complete once the stream has ended.
    pub fn record(&self) -> &DecisionRecord {
        self.request.record()
    }

    /// From here on, events in OpenAI's format are passed through.
    pub fn enable_passthrough(&mut self) {
        self.stream.enable_passthrough();
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
        self.usage.count_events(1);
        self.observe(next, std::slice::from_ref)
    }

    /// The next event.
    pub async fn next_piece(&mut self) -> Option<Result<StreamPiece, Error>> {
        if self.ended {
            return None;
        }
        let next = self.stream.next_piece().await;
        let events = next.as_ref().and_then(|next| next.as_ref().ok()).map_or(0, StreamPiece::events);
        self.usage.count_events(events);
        self.observe(next, StreamPiece::deltas)
    }

    /// Counts tokens, and finalizes the record at the end.
    fn observe<T>(
        &mut self,
        next: Option<Result<T, providers::Error>>,
        deltas: impl FnOnce(&T) -> &[Delta],
    ) -> Option<Result<T, Error>> {
        match next {
            Some(Ok(next)) => {
                self.usage.record(deltas(&next));
                Some(Ok(next))
            }
            Some(Err(error)) => {
                self.ended = true;
                let error = self.stream_error(error);
                self.charge();
                Some(Err(self.request.fail(error)))
            }
            None => {
                self.ended = true;
                self.request.succeed(self.usage.reported(), self.price);
                None
            }
        }
    }

    /// Charges the caller for the tokens received so far, also if the stream is incomplete.
    fn charge(&mut self) {
        self.request.spend(self.usage.charged(), self.price);
    }

    fn stream_error(&self, error: providers::Error) -> Error {
        let record = self.request.record();
        Error::Provider {
            provider: record.provider.clone().unwrap_or_default(),
            model: record.model.clone().unwrap_or_default(),
            error,
            asked: record.attempts.len(),
        }
    }
}

impl Drop for RoutedStream {
    fn drop(&mut self) {
        if !self.ended {
            self.charge();
        }
    }
}
