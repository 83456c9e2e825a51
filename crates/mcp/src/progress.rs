//! `notifications/progress` with strictly increasing values per token.

use std::sync::Mutex;

use serde_json::{Map, Value, json};

use crate::message::{self, Id};

/// One progress update.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgressUpdate<'a> {
    pub(crate) progress: f64,
    pub(crate) total: Option<f64>,
    pub(crate) message: Option<&'a str>,
}

/// Last reported progress of one token.
#[derive(Debug)]
pub(crate) struct ProgressReporter(Mutex<f64>);

impl Default for ProgressReporter {
    fn default() -> ProgressReporter {
        ProgressReporter(Mutex::new(f64::NEG_INFINITY))
    }
}

impl ProgressReporter {
    /// Passes the notification to `offer`, unless the value does not exceed the last reported one.
    ///
    /// `offer` runs under the lock, so that two threads cannot reorder their notifications; it must not block.
    pub(crate) fn report(&self, token: &Id, step: ProgressUpdate<'_>, offer: impl FnOnce(Vec<u8>)) {
        let mut last = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // JSON has no infinity or NaN.
        if !step.progress.is_finite() || step.progress <= *last {
            return;
        }
        *last = step.progress;
        let mut params = Map::new();
        params.insert("progressToken".into(), json!(token));
        params.insert("progress".into(), json_number(step.progress));
        if let Some(total) = step.total.filter(|total| total.is_finite()) {
            params.insert("total".into(), json_number(total));
        }
        if let Some(message) = step.message {
            params.insert("message".into(), message.into());
        }
        if let Ok(notification) = message::encode_call(None, "notifications/progress", &params) {
            offer(notification);
        }
    }
}

/// Writes whole numbers without a fraction, like clients do.
fn json_number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}
