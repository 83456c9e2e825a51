//! Health of an external classification server, for operators.

use super::Error;

/// Whether a classification server is usable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Not reached yet.
    Starting,
    Ready {
        categories: usize,
    },
    /// Not used for now; `RemoteClassifier::follow` reconnects automatically.
    Down(Error),
}

impl State {
    pub fn is_ready(&self) -> bool {
        matches!(self, State::Ready { .. })
    }

    /// Sets the state and logs a change of its kind: once per change, not once per prompt. Returns whether the state
    /// differs from the previous one.
    pub(super) fn transition_to(&mut self, new: State) -> bool {
        let changed = *self != new;
        match (&*self, &new) {
            (State::Down(_), State::Down(_)) | (State::Ready { .. }, State::Ready { .. }) => {}
            (_, State::Down(error)) => {
                tracing::warn!(%error, "external classifier is unavailable; falling back to the \
                local one")
            }
            (State::Down(_), State::Ready { categories }) => {
                tracing::info!(categories, "external classifier has recovered")
            }
            (_, State::Ready { categories }) => tracing::info!(categories, "external classifier is ready"),
            (_, State::Starting) => {}
        }
        *self = new;
        changed
    }
}
