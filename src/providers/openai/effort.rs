//! How much a model thinks: `reasoning_effort`, and what goes with it or does not.

use super::members::Members;
use crate::providers::Refuses;
use crate::providers::chat::{Effort, Reasoning};

/// The word for how much to think. Not every model takes every word, so those are used that most models of today do:
/// `low` for `minimal`, which ended with GPT-5, and `xhigh` for `max`, which began with GPT-5.6.
pub(super) fn word(reasoning: Reasoning, refuses: Refuses) -> Option<&'static str> {
    let effort = match reasoning {
        // The least that every model takes which cannot be told not to think.
        Reasoning::Off | Reasoning::Budget(0) if refuses.reasoning_off => Effort::Low,
        Reasoning::Off | Reasoning::Budget(0) => return Some("none"),
        // As much as the model finds right, which is what it does when told nothing.
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

/// Whether a body asks for an effort that the model refuses.
pub(super) fn is_refused(body: &Members, refuses: Refuses) -> bool {
    match asked(body) {
        Some("none") => refuses.reasoning_off,
        Some("xhigh" | "max") => refuses.reasoning_max,
        _ => false,
    }
}

/// Whether the model, thinking as the body asks it to, refuses a temperature and its like.
pub(super) fn refuses_sampling(body: &Members, refuses: Refuses) -> bool {
    match asked(body) {
        Some("none") => false,
        Some(_) => refuses.sampling_while_reasoning || refuses.sampling_unless_reasoning_off,
        None => refuses.sampling_unless_reasoning_off,
    }
}

/// The word that a body asks with.
pub(super) fn asked(body: &Members) -> Option<&str> {
    body.get("reasoning_effort")?.strip_prefix('"')?.strip_suffix('"')
}
