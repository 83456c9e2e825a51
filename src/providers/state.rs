//! How a provider is doing, as far as its last answers told. Pure: the clock is handed in.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Error, ModelInfo};

/// What is known of a provider.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// The models it listed last, by their names; none before it was asked.
    pub listed: Option<Arc<Vec<ModelInfo>>>,
    /// Why it could not list them the last time.
    pub not_listed: Option<Error>,
    /// Why its last answer to a prompt was none.
    pub failing: Option<Error>,
    /// How long its last good answer took to come.
    pub latency: Option<Duration>,
    /// Models it said it does not have, and when; few, and soon forgotten.
    missing: Vec<(String, Instant)>,
}

/// How many missing models are remembered, and for how long.
const MOST_MISSING: usize = 64;
const MISSING_FOR: Duration = Duration::from_secs(600);

impl State {
    /// Told what became of its list of models; tells whether the models are others than before.
    pub(super) fn list(&mut self, result: Result<Vec<ModelInfo>, Error>) -> bool {
        match result {
            Ok(mut models) => {
                models.sort_by(|a, b| a.id.cmp(&b.id));
                let changed = self.listed.as_ref().is_none_or(|before| **before != models);
                self.listed = Some(Arc::new(models));
                self.not_listed = None;
                changed
            }
            // What it listed before is still the best that is known.
            Err(error) => {
                self.not_listed = Some(error);
                false
            }
        }
    }

    /// Told how a call for an answer ended.
    pub(super) fn answer(&mut self, model: &str, result: Result<(), &Error>, took: Duration, now: Instant) {
        self.missing.retain(|(name, at)| name != model && now.duration_since(*at) < MISSING_FOR);
        match result {
            Ok(()) => {
                self.latency = Some(took);
                self.failing = None;
            }
            // Says nothing of the provider.
            Err(Error::BadRequest { .. } | Error::Untranslatable(_)) => {}
            Err(Error::ModelNotFound) if self.missing.len() < MOST_MISSING => {
                self.missing.push((model.to_owned(), now))
            }
            Err(Error::ModelNotFound) => {}
            Err(error) => self.failing = Some(error.clone()),
        }
    }

    /// Whether it is known not to serve a model: it said so, or its list is known and lacks it.
    pub(super) fn lacks(&self, model: &str, now: Instant) -> bool {
        let missing = self.missing.iter().any(|(name, at)| name == model && now.duration_since(*at) < MISSING_FOR);
        let listed = self.listed.as_ref().filter(|models| !models.is_empty());
        missing || listed.is_some_and(|models| !models.iter().any(|listed| listed.is_called(model)))
    }

    /// One word: `up`, `failing`, `resting` where it is left alone for a while, or `unknown` before it was asked.
    pub fn word(&self, resting: bool) -> &'static str {
        match self.failing.as_ref().or(self.not_listed.as_ref()) {
            _ if resting => "resting",
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
        assert_eq!((state.word(false), state.word(true)), ("up", "resting"));
        state.answer("a", Err(&Error::Timeout), Duration::ZERO, Instant::now());
        assert_eq!((state.word(false), state.not_listed.is_none()), ("failing", true));
    }
}
