//! Reasoning effort: `reasoning_effort` and the sampling parameters it excludes.

use super::json_scan::LazyObject;
use crate::UnsupportedParameters;
use crate::chat::{Effort, Reasoning};

/// The effort value. Models differ in the accepted values, so these are the ones most current models accept: `low` for
/// `minimal`, which ended with GPT-5, and `xhigh` for `max`, which was introduced with GPT-5.6.
pub(super) fn effort_value(reasoning: Reasoning, refuses: UnsupportedParameters) -> Option<&'static str> {
    let effort = match reasoning {
        // The lowest effort that every model accepts if reasoning cannot be disabled.
        Reasoning::Off | Reasoning::Budget(0) if refuses.reasoning_off => Effort::Low,
        Reasoning::Off | Reasoning::Budget(0) => return Some("none"),
        // The model decides, which is its default.
        Reasoning::On => return None,
        Reasoning::Effort(effort) => effort,
        Reasoning::Budget(tokens) => Effort::of_tokens(tokens),
    };
    Some(match effort {
        Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::Max if refuses.reasoning_max => "high",
        Effort::Max => "xhigh",
    })
}

/// Whether a body requests an effort that the model rejects.
pub(super) fn is_unsupported(body: &LazyObject, refuses: UnsupportedParameters) -> bool {
    match requested_effort(body) {
        Some("none") => refuses.reasoning_off,
        Some("xhigh" | "max") => refuses.reasoning_max,
        _ => false,
    }
}

/// Whether the model rejects sampling parameters at the requested effort.
pub(super) fn rejects_sampling(body: &LazyObject, refuses: UnsupportedParameters) -> bool {
    match requested_effort(body) {
        Some("none") => false,
        Some(_) => refuses.sampling_while_reasoning || refuses.sampling_unless_reasoning_off,
        None => refuses.sampling_unless_reasoning_off,
    }
}

/// The effort value of a body.
pub(super) fn requested_effort(body: &LazyObject) -> Option<&str> {
    body.get("reasoning_effort")?.strip_prefix('"')?.strip_suffix('"')
}
