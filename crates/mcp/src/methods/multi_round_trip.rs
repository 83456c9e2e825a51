//! Multi round-trip requests: runs handlers that may need answers from the client.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::client_requests::{ClientChannel, RoundTripState};
use crate::context::Context;
use crate::dispatch::MethodCall;
use crate::error::Error;
use crate::reply::{MethodReply, ResultType};
use crate::request_state;
use crate::version::Era;

/// Answers and state of a repeated request.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RoundTripInput {
    #[serde(rename = "inputResponses", default)]
    pub(crate) responses: Option<Map<String, Value>>,
    #[serde(rename = "requestState", default)]
    pub(crate) state: Option<String>,
}

/// The client request mode of a call, and the digest to seal its answers for the next round.
pub(crate) struct RoundTrip {
    pub(crate) channel: ClientChannel,
    digest: String,
}

/// Why a handler stopped.
pub(crate) enum RoundTripOutcome<T> {
    Finished(T),
    /// It waits for answers to these requests.
    InputRequired(Map<String, Value>),
}

impl RoundTrip {
    /// Opens the state of earlier rounds. `target` is the tool, prompt or resource; `arguments` are those of the call.
    pub(crate) fn begin(
        call: &MethodCall,
        method: &str,
        target: &str,
        arguments: &Value,
        brought: RoundTripInput,
    ) -> Result<RoundTrip, Error> {
        if call.version.era() == Era::Legacy {
            let asking = if call.transport.sink.is_open() { ClientChannel::Stream } else { ClientChannel::Unavailable };
            return Ok(RoundTrip { channel: asking, digest: String::new() });
        }
        // Most calls never send a request to the client, so the digest is computed only to open or seal a state.
        let digest = match &brought.state {
            None => String::new(),
            Some(_) => request_state::request_digest(method, target, arguments),
        };
        let earlier = match &brought.state {
            None => Map::new(),
            Some(state) => {
                let identity = &call.transport.caller.identity;
                call.server.inner().state_keys.open(state, identity, &digest)?.answers
            }
        };
        let rounds = RoundTripState::new(earlier, brought.responses.unwrap_or_default());
        Ok(RoundTrip { channel: ClientChannel::MultiRoundTrip(Arc::new(rounds)), digest })
    }

    /// Runs a handler until it finishes or waits for the client, with a timeout, and catches its panics.
    ///
    /// Time spent waiting for the client does not count towards `limit`. Dropping the returned future drops the
    /// handler.
    pub(crate) async fn run<T>(
        &self,
        context: &Context,
        name: &str,
        limit: Option<Duration>,
        work: impl Future<Output = T>,
    ) -> Result<RoundTripOutcome<T>, Error> {
        let mut work = pin!(AssertUnwindSafe(work).catch_unwind());
        let mut step = |wake: &mut std::task::Context<'_>| match work.as_mut().poll(wake) {
            Poll::Ready(Ok(done)) => Poll::Ready(Ok(RoundTripOutcome::Finished(done))),
            Poll::Ready(Err(_)) => Poll::Ready(Err(Error::internal(
                format!("`{name}` failed unexpectedly without a result"),
                format!("`{name}` panicked"),
            ))),
            Poll::Pending => match &self.channel {
                ClientChannel::MultiRoundTrip(rounds) => match rounds.take_pending() {
                    Some(open) => Poll::Ready(Ok(RoundTripOutcome::InputRequired(open))),
                    None => Poll::Pending,
                },
                _ => Poll::Pending,
            },
        };
        // Most handlers finish on the first poll; only the rest need a timer and a cancellation future.
        if let Poll::Ready(done) = poll_fn(|wake| Poll::Ready(step(wake))).await {
            return done;
        }
        let started = Instant::now();
        let cancelled = context.inner().cancel.cancelled();
        tokio::select! {
            biased;
            done = self.poll_until_stopped(step) => done,
            () = cancelled => Err(Error::Cancelled),
            limit = timeout_elapsed(context, started, limit) => {
                Err(Error::Timeout { tool: name.to_owned(), limit_seconds: limit.as_secs_f64() })
            }
        }
    }

    /// Polls whenever the handler is woken, or when one of its spawned tasks sends a request.
    async fn poll_until_stopped<T>(
        &self,
        mut step: impl FnMut(&mut std::task::Context<'_>) -> Poll<Result<RoundTripOutcome<T>, Error>>,
    ) -> Result<RoundTripOutcome<T>, Error> {
        let ClientChannel::MultiRoundTrip(rounds) = &self.channel else { return poll_fn(step).await };
        loop {
            tokio::select! {
                biased;
                done = poll_fn(&mut step) => return done,
                () = rounds.request_added.notified() => {}
            }
        }
    }

    /// The `input_required` result for these requests.
    pub(crate) fn input_required_reply(
        &self,
        call: &MethodCall,
        method: &str,
        target: &str,
        arguments: &Value,
        open: Map<String, Value>,
    ) -> MethodReply {
        let answers = match &self.channel {
            ClientChannel::MultiRoundTrip(rounds) => rounds.answers().clone(),
            _ => Map::new(),
        };
        let digest = if self.digest.is_empty() {
            request_state::request_digest(method, target, arguments)
        } else {
            self.digest.clone()
        };
        let state = call.server.inner().state_keys.seal(&call.transport.caller.identity, &digest, answers);
        MethodReply {
            kind: ResultType::InputRequired,
            ..MethodReply::new(json!({ "inputRequests": open, "requestState": state }))
        }
    }
}

/// Completes when the timeout has elapsed, not counting time spent waiting for the client.
async fn timeout_elapsed(context: &Context, started: Instant, limit: Option<Duration>) -> Duration {
    const RECHECK_INTERVAL: Duration = Duration::from_secs(1);
    let Some(limit) = limit else { return std::future::pending().await };
    loop {
        let left = (limit + context.client_wait()).saturating_sub(started.elapsed());
        match (left.is_zero(), context.is_waiting_for_client()) {
            (true, false) => return limit,
            (true, true) => tokio::time::sleep(RECHECK_INTERVAL).await,
            (false, _) => tokio::time::sleep(left).await,
        }
    }
}

impl RoundTrip {
    /// For work without a request, such as a task.
    pub(crate) fn detached(asking: ClientChannel) -> RoundTrip {
        RoundTrip { channel: asking, digest: String::new() }
    }
}
