//! Failover: iterates over the candidates until one responds or none is left.

use std::time::Instant as Clock;

use tokio::time::Instant;

use super::Contender;
use crate::providers;
use crate::providers::call::{Hope, Outcome};
use crate::route::candidates::Candidate;
use crate::route::decide::Why;
use crate::route::error::Error;
use crate::route::journey::Journey;

/// Iterator over the candidates of a request.
pub(super) struct Walk<'a> {
    candidates: &'a [Contender],
    failover: bool,
    deadline: Instant,
    asked: usize,
    /// Whether trying another candidate is pointless.
    is_over: bool,
    worst: Option<Error>,
}

impl<'a> Walk<'a> {
    pub(super) fn along(candidates: &'a [Contender], failover: bool, deadline: Instant) -> Walk<'a> {
        Walk { candidates, failover, deadline, asked: 0, is_over: false, worst: None }
    }

    /// The next candidate, and which alternatives remain if it fails.
    pub(super) fn step(&mut self) -> Option<(&'a Contender, Hope)> {
        let contender = self.candidates.get(self.asked).filter(|_| !self.is_over)?;
        self.asked += 1;
        let next = self.candidates.get(self.asked).map(|next| &next.candidate);
        Some((contender, hope(self.failover, &contender.candidate, next)))
    }

    /// Records the outcome of a call. Returns the response if it succeeded.
    pub(super) fn attempted<T>(
        &mut self,
        contender: &Contender,
        outcome: Outcome<T>,
        started: Clock,
        journey: &mut Journey,
    ) -> Option<T> {
        let Contender { provider, candidate, .. } = contender;
        let Outcome { result, attempts } = outcome;
        journey.attempted(provider, candidate, attempts, started, result.as_ref().err());
        let error = match result {
            Ok(answer) => {
                journey.chosen(provider, candidate);
                return Some(answer);
            }
            Err(error) => error,
        };
        self.is_over = !(goes_on(self.failover, &error, candidate) && Instant::now() < self.deadline);
        let (provider, model, asked) = (provider.name.clone(), candidate.model.clone(), self.asked);
        self.worst = Some(Error::Provider { provider, model, error, asked }.unless(self.worst.take()));
        None
    }

    /// Why no candidate responded.
    pub(super) fn failed(self) -> Error {
        self.worst.expect("a plan that was resolved has somebody to ask")
    }
}

/// Whether to try the next candidate. A missing model that was only recommended is skipped even without failover
///
fn goes_on(failover: bool, error: &providers::Error, candidate: &Candidate) -> bool {
    let missing = *error == providers::Error::ModelNotFound && candidate.why != Why::Asked;
    error.another_may_help() && (missing || failover)
}

fn hope(failover: bool, candidate: &Candidate, next: Option<&Candidate>) -> Hope {
    let next = next.filter(|_| failover);
    let same = |next: &Candidate| next.provider == candidate.provider && next.model == candidate.model;
    Hope { key: next.is_some_and(same), anybody: next.is_some() }
}
