//! Whether a classification server can be used, for people who look after it.

use super::Error;

/// Whether a classification server can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It was not reached yet.
    Starting,
    Ready {
        categories: usize,
    },
    /// It is not used for now; it is looked after again by itself.
    Down(Error),
}

impl State {
    pub fn is_ready(&self) -> bool {
        matches!(self, State::Ready { .. })
    }

    /// Takes the new state, and tells the log if it is another kind of state: once per change, not once per prompt.
    /// Returns whether anything is new.
    pub(super) fn change_to(&mut self, new: State) -> bool {
        let changed = *self != new;
        match (&*self, &new) {
            (State::Down(_), State::Down(_)) | (State::Ready { .. }, State::Ready { .. }) => {}
            (_, State::Down(error)) => tracing::warn!(%error, "the external classifier is not used for now"),
            (State::Down(_), State::Ready { categories }) => {
                tracing::info!(categories, "the external classifier is back")
            }
            (_, State::Ready { categories }) => tracing::info!(categories, "the external classifier is ready"),
            (_, State::Starting) => {}
        }
        *self = new;
        changed
    }
}
