//! HMAC keys for client-held state: an instance key, and a key shared with other instances.
//!
//! The shared key may arrive late, since a program may load it from a database. Until then the instance key is used,
//! and its state is valid only on this instance.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use serde_json::{Map, Value};

use crate::error::Error;
use crate::request_state::{RequestState, StateKey};

#[derive(Debug)]
pub(crate) struct StateKeys {
    instance: StateKey,
    shared: ArcSwapOption<StateKey>,
}

impl StateKeys {
    pub(crate) fn new(shared: Option<StateKey>) -> StateKeys {
        StateKeys { instance: StateKey::random(), shared: ArcSwapOption::from_pointee(shared) }
    }

    pub(crate) fn set_shared(&self, key: StateKey) {
        self.shared.store(Some(Arc::new(key)));
    }

    pub(crate) fn shared(&self) -> Option<Arc<StateKey>> {
        self.shared.load_full()
    }

    pub(crate) fn seal(&self, caller: &str, request: &str, answers: Map<String, Value>) -> String {
        let shared = self.shared.load();
        shared.as_deref().unwrap_or(&self.instance).seal(caller, request, answers)
    }

    /// Opens state sealed with the shared key, or with the instance key before the shared key was set.
    pub(crate) fn open(&self, sealed: &str, caller: &str, request: &str) -> Result<RequestState, Error> {
        let own = || self.instance.open(sealed, caller, request);
        match self.shared.load().as_deref() {
            Some(shared) => shared.open(sealed, caller, request).or_else(|_| own()),
            None => own(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_began_before_the_key_was_known_can_still_go_on() {
        let (here, there) = (StateKeys::new(None), StateKeys::new(Some(StateKey::from_secret(b"shared"))));
        let before = here.seal("ann", "r1", Map::new());
        here.set_shared(StateKey::from_secret(b"shared"));
        let after = here.seal("ann", "r1", Map::new());
        assert!(here.open(&before, "ann", "r1").is_ok() && there.open(&before, "ann", "r1").is_err());
        assert!(here.open(&after, "ann", "r1").is_ok() && there.open(&after, "ann", "r1").is_ok());
    }
}
