//! How an answer was routed, in headers: no SDK stumbles over those.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::route::Record;

/// Adds what is known of the decision.
pub(super) fn add(headers: &mut HeaderMap, record: &Record) {
    let mut put = |name: &'static str, value: &str| {
        // A name that no header can carry is left out.
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    put("x-corbie-decision", &record.id.to_string());
    put("x-corbie-why", &record.why);
    put("x-corbie-attempts", &record.attempts.len().to_string());
    put("x-corbie-reasoning", if record.use_reasoning { "true" } else { "false" });
    for (name, value) in [
        ("x-corbie-provider", &record.provider),
        ("x-corbie-model", &record.model),
        ("x-corbie-rule", &record.rule),
        ("x-corbie-category", &record.classified.as_ref().map(|classified| classified.category.clone())),
    ] {
        if let Some(value) = value {
            put(name, value);
        }
    }
    if let Some(cost) = record.cost {
        put("x-corbie-cost", &cost.to_string());
    }
}
