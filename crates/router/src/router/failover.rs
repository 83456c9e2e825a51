//! Failover: iterates over the candidates until one responds or none is left.

use std::time::Instant as Clock;

use tokio::time::Instant;

use super::ResolvedCandidate;
use crate::candidates::FailoverCandidate;
use crate::decide::ChoiceReason;
use crate::error::Error;
use crate::routed_request::RoutedRequest;
use corbie_llm as providers;
use corbie_llm::call::{CallOutcome, FailoverOptions};

/// Iterator over the candidates of a request.
pub(super) struct FailoverIter<'a> {
    candidates: &'a [ResolvedCandidate],
    failover: bool,
    deadline: Instant,
    attempts: usize,
    /// Whether trying another candidate is pointless.
    is_finished: bool,
    error: Option<Error>,
}

impl<'a> FailoverIter<'a> {
    pub(super) fn new(candidates: &'a [ResolvedCandidate], failover: bool, deadline: Instant) -> FailoverIter<'a> {
        FailoverIter { candidates, failover, deadline, attempts: 0, is_finished: false, error: None }
    }

    /// The next candidate, and which alternatives remain if it fails.
    pub(super) fn next_attempt(&mut self) -> Option<(&'a ResolvedCandidate, FailoverOptions)> {
        let contender = self.candidates.get(self.attempts).filter(|_| !self.is_finished)?;
        self.attempts += 1;
        let next = self.candidates.get(self.attempts).map(|next| &next.candidate);
        Some((contender, failover_options(self.failover, &contender.candidate, next)))
    }

    /// Records the outcome of a call. Returns the response if it succeeded.
    pub(super) fn record_outcome<T>(
        &mut self,
        contender: &ResolvedCandidate,
        outcome: CallOutcome<T>,
        started: Clock,
        journey: &mut RoutedRequest,
    ) -> Option<T> {
        let ResolvedCandidate { provider, candidate, .. } = contender;
        let CallOutcome { result, attempts } = outcome;
        journey.record_attempt(provider, candidate, attempts, started, result.as_ref().err());
        let error = match result {
            Ok(answer) => {
                journey.record_choice(provider, candidate);
                return Some(answer);
            }
            Err(error) => error,
        };
        self.is_finished = !(should_fail_over(self.failover, &error, candidate) && Instant::now() < self.deadline);
        let (provider, model, asked) = (provider.name.clone(), candidate.model.clone(), self.attempts);
        self.error = Some(Error::Provider { provider, model, error, asked }.or_more_informative(self.error.take()));
        None
    }

    /// Why no candidate responded.
    pub(super) fn into_error(self) -> Error {
        self.error.expect("a resolved plan has candidates")
    }
}

/// Whether to try the next candidate. A missing model that was only recommended is skipped even without failover
///
fn should_fail_over(failover: bool, error: &providers::Error, candidate: &FailoverCandidate) -> bool {
    let missing = *error == providers::Error::ModelNotFound && candidate.reason != ChoiceReason::Requested;
    error.allows_failover() && (missing || failover)
}

fn failover_options(
    failover: bool,
    candidate: &FailoverCandidate,
    next: Option<&FailoverCandidate>,
) -> FailoverOptions {
    let next = next.filter(|_| failover);
    let same = |next: &FailoverCandidate| next.provider == candidate.provider && next.model == candidate.model;
    FailoverOptions { another_key: next.is_some_and(same), another_target: next.is_some() }
}
