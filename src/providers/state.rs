//! Provider health, derived from recent results. Deterministic: callers pass the clock in.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Error, ModelInfo};

/// Health of a provider.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Models of the last successful listing, sorted by ID; `None` before the first.
    pub listed: Option<Arc<Vec<ModelInfo>>>,
    /// Error of the last listing, if it failed.
    pub not_listed: Option<Error>,
    /// Error of the last prompt, if it failed.
    pub failing: Option<Error>,
    /// Latency of the last successful response.
    pub latency: Option<Duration>,
    /// Models the provider reported as missing, and when. The list is short and entries expire soon.
    missing: Vec<(String, Instant)>,
}

/// Maximum number of missing models remembered, and how long each is remembered.
const MOST_MISSING: usize = 64;
const MISSING_FOR: Duration = Duration::from_secs(600);

impl State {
    /// Records the result of listing the models. Returns whether the models changed.
    pub(super) fn list(&mut self, result: Result<Vec<ModelInfo>, Error>) -> bool {
        match result {
            Ok(mut models) => {
                models.sort_by(|a, b| a.id.cmp(&b.id));
                let changed = self.listed.as_ref().is_none_or(|before| **before != models);
                self.listed = Some(Arc::new(models));
                self.not_listed = None;
                changed
            }
            // The previous list remains the best information available.
            Err(error) => {
                self.not_listed = Some(error);
                false
            }
        }
    }

    /// Records the result of a call.
    pub(super) fn answer(&mut self, model: &str, result: Result<(), &Error>, took: Duration, now: Instant) {
        self.missing.retain(|(name, at)| name != model && now.duration_since(*at) < MISSING_FOR);
        match result {
            Ok(()) => {
                self.latency = Some(took);
                self.failing = None;
            }
            // These errors do not reflect on the provider.
            Err(Error::BadRequest { .. } | Error::Untranslatable(_)) => {}
            Err(Error::ModelNotFound) if self.missing.len() < MOST_MISSING => {
                self.missing.push((model.to_owned(), now))
            }
            Err(Error::ModelNotFound) => {}
            Err(error) => self.failing = Some(error.clone()),
        }
    }

    /// Whether the provider does not serve a model: it reported so, or its list lacks the model.
    pub(super) fn lacks(&self, model: &str, now: Instant) -> bool {
        let missing = self.missing.iter().any(|(name, at)| name == model && now.duration_since(*at) < MISSING_FOR);
        let listed = self.listed.as_ref().filter(|models| !models.is_empty());
        missing || listed.is_some_and(|models| !models.iter().any(|listed| listed.is_called(model)))
    }

    /// Health as one word: `up`, `failing`, `circuit_open` while the circuit is open, or `unknown` before the first contact.
    pub fn word(&self, resting: bool) -> &'static str {
        match self.failing.as_ref().or(self.not_listed.as_ref()) {
            _ if resting => "circuit_open",
            Some(_) => "failing",
            None if self.listed.is_some() || self.latency.is_some() => "up",
            None => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(names: &[&str]) -> Vec<ModelInfo> {
        names.iter().map(|name| ModelInfo::named(*name)).collect()
    }

    #[test]
    fn p06_only_other_models_are_a_change() {
        let mut state = State::default();
        assert!(state.list(Ok(models(&["b", "a"]))));
        assert!(!state.list(Ok(models(&["a", "b"]))), "the order is nobody's news");
        assert!(!state.list(Err(Error::Timeout)));
        assert_eq!(state.listed.as_ref().unwrap().len(), 2, "what it listed before stays");
        assert!(state.list(Ok(models(&["a"]))));
    }

    #[test]
    fn x41_a_model_is_lacking_if_the_list_or_an_answer_says_so_and_until_it_answers() {
        let (mut state, now) = (State::default(), Instant::now());
        assert!(!state.lacks("a", now), "nothing is known");
        state.answer("a", Err(&Error::ModelNotFound), Duration::ZERO, now);
        assert!(state.lacks("a", now) && !state.lacks("a", now + MISSING_FOR));
        state.answer("a", Ok(()), Duration::ZERO, now);
        assert!(!state.lacks("a", now), "another key may have it");
        state.list(Ok(models(&["llama3:latest"])));
        assert!(state.lacks("a", now) && !state.lacks("llama3", now));
    }

    #[test]
    fn failures_of_lists_and_of_answers_are_told_apart() {
        let mut state = State::default();
        assert_eq!(state.word(false), "unknown");
        state.list(Ok(models(&["a"])));
        assert_eq!((state.word(false), state.word(true)), ("up", "circuit_open"));
        state.answer("a", Err(&Error::Timeout), Duration::ZERO, Instant::now());
        assert_eq!((state.word(false), state.not_listed.is_none()), ("failing", true));
    }
}
