//! Recorded requests, and failure counts of flaky models.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use http::request::Parts;
use serde_json::{Map, Value, json};

const MAX_REQUESTS: usize = 100;

/// For longer bodies, only the length is recorded.
const MAX_LOGGED_BODY: usize = 1024 * 1024;

/// Shared by all connections.
#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    // Held briefly, never across an await.
    state: Mutex<LogState>,
}

#[derive(Debug, Default)]
struct LogState {
    requests: VecDeque<Value>,
    /// By key and model.
    failures: HashMap<(String, String), u32>,
}

impl RequestLog {
    /// Records a request. `None` means that the body was too long to read.
    pub(crate) fn record(&self, head: &Parts, body: Option<&Bytes>) {
        let request = json!({
            "method": head.method.as_str(),
            "path": head.uri.to_string(),
            "headers": headers(head),
            "body": body.map(body_value),
        });
        let mut memory = self.lock_state();
        memory.requests.push_back(request);
        if memory.requests.len() > MAX_REQUESTS {
            memory.requests.pop_front();
        }
    }

    /// The last requests, oldest first.
    pub(crate) fn requests(&self) -> Value {
        self.lock_state().requests.iter().cloned().collect()
    }

    pub(crate) fn clear(&self) {
        *self.lock_state() = LogState::default();
    }

    /// Whether a flaky model still fails: it does so `times` times for each key.
    pub(crate) fn fails_again(&self, key: &str, model: &str, times: u32) -> bool {
        let mut memory = self.lock_state();
        let failed = memory.failures.entry((key.to_owned(), model.to_owned())).or_default();
        *failed = failed.saturating_add(1);
        *failed <= times
    }

    fn lock_state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Headers by name; repeated ones are joined, as in HTTP.
fn headers(head: &Parts) -> Map<String, Value> {
    let mut shown = Map::new();
    for name in head.headers.keys() {
        let values = head.headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        shown.insert(name.to_string(), values.collect::<Vec<_>>().join(", ").into());
    }
    shown
}

fn body_value(body: &Bytes) -> Value {
    match body.len() {
        0 => Value::Null,
        1..=MAX_LOGGED_BODY => {
            serde_json::from_slice(body).unwrap_or_else(|_| String::from_utf8_lossy(body).into_owned().into())
        }
        length => json!({"length": length}),
    }
}
