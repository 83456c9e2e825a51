//! Provider health, derived from recent results. Deterministic: callers pass the clock in.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Error, ModelInfo};

/// Health of a provider.
#[derive(Debug, Clone, Default)]
pub struct ProviderHealth {
    /// Models of the last successful listing, sorted by ID; `None` before the first.
    pub models: Option<Arc<Vec<ModelInfo>>>,
    /// Error of the last listing, if it failed.
    pub listing_error: Option<Error>,
    /// Error of the last prompt, if it failed.
    pub last_error: Option<Error>,
    /// Latency of the last successful response.
    pub latency: Option<Duration>,
    /// Models the provider reported as missing, and when. The list is short and entries expire soon.
    missing: Vec<(String, Instant)>,
}

/// Maximum number of missing models remembered, and how long each is remembered.
const MAX_MISSING_MODELS: usize = 64;
const MISSING_MODEL_TTL: Duration = Duration::from_secs(600);

impl ProviderHealth {
    /// Records the result of listing the models. Returns whether the models changed.
    pub(super) fn record_listing(&mut self, result: Result<Vec<ModelInfo>, Error>) -> bool {
        match result {
            Ok(mut models) => {
                models.sort_by(|a, b| a.id.cmp(&b.id));
                let changed = self.models.as_ref().is_none_or(|before| **before != models);
                self.models = Some(Arc::new(models));
                self.listing_error = None;
                changed
            }
            // The previous list remains the best information available.
            Err(error) => {
                self.listing_error = Some(error);
                false
            }
        }
    }

    /// Records the result of a call.
    pub(super) fn record_call(&mut self, model: &str, result: Result<(), &Error>, took: Duration, now: Instant) {
        self.missing.retain(|(name, at)| name != model && now.duration_since(*at) < MISSING_MODEL_TTL);
        match result {
            Ok(()) => {
                self.latency = Some(took);
                self.last_error = None;
            }
            // These errors do not reflect on the provider.
            Err(Error::BadRequest { .. } | Error::Unsupported(_)) => {}
            Err(Error::ModelNotFound) if self.missing.len() < MAX_MISSING_MODELS => {
                self.missing.push((model.to_owned(), now))
            }
            Err(Error::ModelNotFound) => {}
            Err(error) => self.last_error = Some(error.clone()),
        }
    }

    /// Whether the provider does not serve a model: it reported so, or its list lacks the model.
    pub(super) fn lacks(&self, model: &str, now: Instant) -> bool {
        let missing =
            self.missing.iter().any(|(name, at)| name == model && now.duration_since(*at) < MISSING_MODEL_TTL);
        let listed = self.models.as_ref().filter(|models| !models.is_empty());
        missing || listed.is_some_and(|models| !models.iter().any(|listed| listed.matches_name(model)))
    }

    /// Health as one word: `up`, `failing`, `circuit_open` while the circuit is open, or `unknown` before the first contact.
    pub fn as_str(&self, resting: bool) -> &'static str {
        match self.last_error.as_ref().or(self.listing_error.as_ref()) {
            _ if resting => "circuit_open",
            Some(_) => "failing",
            None if self.models.is_some() || self.latency.is_some() => "up",
            None => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(names: &[&str]) -> Vec<ModelInfo> {
        names.iter().map(|name| ModelInfo::from_id(*name)).collect()
    }

    #[test]
    fn p06_only_other_models_are_a_change() {
        let mut state = ProviderHealth::default();
        assert!(state.record_listing(Ok(models(&["b", "a"]))));
        assert!(!state.record_listing(Ok(models(&["a", "b"]))), "the order is nobody's news");
        assert!(!state.record_listing(Err(Error::Timeout)));
        assert_eq!(state.models.as_ref().unwrap().len(), 2, "what it listed before stays");
        assert!(state.record_listing(Ok(models(&["a"]))));
    }

    #[test]
    fn x41_a_model_is_lacking_if_the_list_or_an_answer_says_so_and_until_it_answers() {
        let (mut state, now) = (ProviderHealth::default(), Instant::now());
        assert!(!state.lacks("a", now), "nothing is known");
        state.record_call("a", Err(&Error::ModelNotFound), Duration::ZERO, now);
        assert!(state.lacks("a", now) && !state.lacks("a", now + MISSING_MODEL_TTL));
        state.record_call("a", Ok(()), Duration::ZERO, now);
        assert!(!state.lacks("a", now), "another key may have it");
        state.record_listing(Ok(models(&["llama3:latest"])));
        assert!(state.lacks("a", now) && !state.lacks("llama3", now));
    }

    #[test]
    fn failures_of_lists_and_of_answers_are_told_apart() {
        let mut state = ProviderHealth::default();
        assert_eq!(state.as_str(false), "unknown");
        state.record_listing(Ok(models(&["a"])));
        assert_eq!((state.as_str(false), state.as_str(true)), ("up", "circuit_open"));
        state.record_call("a", Err(&Error::Timeout), Duration::ZERO, Instant::now());
        assert_eq!((state.as_str(false), state.listing_error.is_none()), ("failing", true));
    }
}
