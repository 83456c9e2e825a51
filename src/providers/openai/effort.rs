//! Reasoning effort: `reasoning_effort` and the sampling parameters it excludes.

use super::members::Members;
use crate::providers::Refuses;
use crate::providers::chat::{Effort, Reasoning};

/// The effort value. Models differ in the accepted values, so these are the ones most current models accept: `low` for
/// `minimal`, which ended with GPT-5, and `xhigh` for `max`, which was introduced with GPT-5.6.
pub(super) fn word(reasoning: Reasoning, refuses: Refuses) -> Option<&'static str> {
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
pub(super) fn is_refused(body: &Members, refuses: Refuses) -> bool {
    match asked(body) {
        Some("none") => refuses.reasoning_off,
        Some("xhigh" | "max") => refuses.reasoning_max,
        _ => false,
    }
}

/// Whether the model rejects sampling parameters at the requested effort.
pub(super) fn refuses_sampling(body: &Members, refuses: Refuses) -> bool {
    match asked(body) {
        Some("none") => false,
        Some(_) => refuses.sampling_while_reasoning || refuses.sampling_unless_reasoning_off,
        None => refuses.sampling_unless_reasoning_off,
    }
}

/// The effort value of a body.
pub(super) fn asked(body: &Members) -> Option<&str> {
    body.get("reasoning_effort")?.strip_prefix('"')?.strip_suffix('"')
}
