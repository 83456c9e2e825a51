//! Suggestions for the arguments of prompts and resource templates.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Gives the values that could stand for what was typed so far, best first.
#[derive(Clone)]
pub struct Completer(Arc<Suggest>);

type Suggest = dyn Fn(&str, &HashMap<String, String>) -> Vec<String> + Send + Sync;

/// The protocol's bound on one reply.
pub(crate) const MAX_VALUES: usize = 100;

impl Completer {
    /// `suggest` gets the text typed and the arguments already settled.
    pub fn new(suggest: impl Fn(&str, &HashMap<String, String>) -> Vec<String> + Send + Sync + 'static) -> Completer {
        Completer(Arc::new(suggest))
    }

    /// Those of a fixed list that begin with what was typed.
    pub fn of(values: impl IntoIterator<Item = impl Into<String>>) -> Completer {
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
