//! Suggestions for the arguments of prompts and resource templates.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Returns suggestions for the typed text, best first.
#[derive(Clone)]
pub struct Completer(Arc<SuggestFn>);

type SuggestFn = dyn Fn(&str, &HashMap<String, String>) -> Vec<String> + Send + Sync;

/// Maximum number of values per reply, set by the protocol.
pub(crate) const MAX_VALUES: usize = 100;

impl Completer {
    /// `suggest` gets the typed text and the arguments that already have a value.
    pub fn new(suggest: impl Fn(&str, &HashMap<String, String>) -> Vec<String> + Send + Sync + 'static) -> Completer {
        Completer(Arc::new(suggest))
    }

    /// Suggests the values of a fixed list that start with the typed text.
    pub fn from_values(values: impl IntoIterator<Item = impl Into<String>>) -> Completer {
        let values: Vec<String> = values.into_iter().map(Into::into).collect();
        Completer::new(move |typed, _| values.iter().filter(|value| value.starts_with(typed)).cloned().collect())
    }

    pub(crate) fn suggest(&self, typed: &str, settled: &HashMap<String, String>) -> Vec<String> {
        (self.0)(typed, settled)
    }
}

impl fmt::Debug for Completer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Completer")
    }
}
