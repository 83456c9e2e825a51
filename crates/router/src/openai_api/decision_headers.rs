//! Routing decision as response headers, which all SDKs tolerate.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::DecisionRecord;

/// Adds the headers for a decision.
pub(super) fn add(headers: &mut HeaderMap, record: &DecisionRecord) {
    let mut put = |name: &'static str, value: &str| {
        // Values that are invalid in a header are omitted.
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    put("x-corbie-decision", &record.id.to_string());
    put("x-corbie-reason", &record.reason);
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
