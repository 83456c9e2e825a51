//! Reasoning parameters: `thinking` and `output_config.effort`.
//!
//! Models differ: the newest decide adaptively how much to reason and take only an effort, the oldest require a budget.
//! If the capabilities of a model exclude one form, the other is sent. For an unknown model the API reports the error.

use serde_json::{Map, Value, json};

use super::messages;
use crate::UnsupportedParameters;
use crate::chat::{Chat, Effort, Reasoning, ToolChoice};

/// Default output limit, since the API requires a number.
///
/// Reasoning counts towards it and most models reason by default, so the former 4096 could be used up before the first
/// word. Every current model supports this many. It stays below the limit from which the API requires streaming (about
/// 21,000 tokens, ten minutes), since most clients request a buffered response.
const DEFAULT_MAX_TOKENS: u32 = 16_384;

/// A client that requests reasoning wants to see it; some models omit it by default.
const DISPLAY: &str = "summarized";

/// Minimum thinking budget of the API.
const MIN_BUDGET: u32 = 1024;

/// Reasoning parameters of a request, and the resulting output limit.
#[derive(Debug, Default)]
pub(super) struct ReasoningPlan {
    pub(super) thinking: Option<Value>,
    pub(super) effort: Option<&'static str>,
    pub(super) max_tokens: u32,
}

impl ReasoningPlan {
    /// Whether reasoning is enabled. The API then accepts no `temperature` and restricts `top_p`.
    pub(super) fn is_reasoning_enabled(&self) -> bool {
        self.thinking.as_ref().is_some_and(enables_reasoning)
    }
}

pub(super) fn plan(chat: &Chat, refuses: UnsupportedParameters) -> ReasoningPlan {
    let plain =
        || ReasoningPlan { max_tokens: chat.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS), ..ReasoningPlan::default() };
    // A forced tool call excludes reasoning. The tool call takes precedence, because the client requires it.
    let forced = matches!(chat.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)))
        && !chat.tools.is_empty()
        && !refuses.forced_tool;
    let adaptive = |effort: Option<Effort>| ReasoningPlan {
        thinking: (!forced).then(|| json!({"type": "adaptive", "display": DISPLAY})),
        effort: effort.filter(|_| !refuses.reasoning_effort).map(|effort| effort_value(effort, refuses)),
        ..plain()
    };
    let within = |tokens: u32| match forced || messages::continues_without_signature(&chat.messages) {
        true => plain(),
        false => budget(tokens.max(MIN_BUDGET), chat.max_tokens).unwrap_or_else(plain),
    };
    match chat.reasoning.filter(|_| !refuses.reasoning) {
        None => plain(),
        Some(Reasoning::Off | Reasoning::Budget(0)) => ReasoningPlan { thinking: disabled_value(refuses), ..plain() },
        Some(Reasoning::On) if refuses.reasoning_adaptive => within(Effort::Medium.tokens()),
        Some(Reasoning::On) => adaptive(None),
        Some(Reasoning::Effort(effort)) if refuses.reasoning_adaptive => {
            ReasoningPlan { effort: adaptive(Some(effort)).effort, ..within(effort.tokens()) }
        }
        Some(Reasoning::Effort(effort)) => adaptive(Some(effort)),
        Some(Reasoning::Budget(tokens)) if refuses.reasoning_budget => adaptive(Some(Effort::of_tokens(tokens))),
        Some(Reasoning::Budget(tokens)) => within(tokens),
    }
}

/// Whether a body uses a reasoning parameter that the model rejects.
pub(super) fn is_unsupported(body: &Map<String, Value>, refuses: UnsupportedParameters) -> bool {
    let kind = body.get("thinking").and_then(|thinking| thinking.get("type")).and_then(Value::as_str);
    let effort = body.get("output_config").and_then(|config| config.get("effort"));
    refuses.reasoning_effort && effort.is_some()
        || refuses.reasoning_max && effort.is_some_and(|effort| effort == "max")
        || match kind {
            Some("adaptive") => refuses.reasoning_adaptive,
            Some("enabled") => refuses.reasoning_budget,
            Some("disabled") => refuses.reasoning_off,
            Some("between_tools") => refuses.reasoning_between_tools,
            _ => false,
        }
}

/// Whether a `thinking` value makes the model reason before it answers.
pub(super) fn enables_reasoning(thinking: &Value) -> bool {
    thinking["type"] != "disabled" && thinking["type"] != "between_tools"
}

/// The closest setting to disabled reasoning; `None` if the model always reasons.
fn disabled_value(refuses: UnsupportedParameters) -> Option<Value> {
    let kinds = [("disabled", refuses.reasoning_off), ("between_tools", refuses.reasoning_between_tools)];
    kinds.iter().find(|(_, refused)| !refused).map(|(kind, _)| json!({"type": kind}))
}

/// Parses the reasoning parameters of a request in this protocol.
pub(super) fn parse(body: &Map<String, Value>) -> Option<Reasoning> {
    let thinking = body.get("thinking").and_then(|thinking| thinking.get("type")).and_then(Value::as_str);
    let effort =
        body.get("output_config").and_then(|config| config.get("effort")).and_then(Value::as_str).and_then(effort);
    match thinking {
        Some("disabled" | "between_tools") => Some(Reasoning::Off),
        Some("enabled") => {
            let tokens = body["thinking"].get("budget_tokens").and_then(Value::as_u64);
            tokens.and_then(|tokens| u32::try_from(tokens).ok()).map(Reasoning::Budget).or(Some(Reasoning::On))
        }
        Some(_) => Some(effort.map_or(Reasoning::On, Reasoning::Effort)),
        None => effort.map(Reasoning::Effort),
    }
}

/// Reasoning counts towards `max_tokens`. If the limit leaves no room for it, reasoning is omitted.
fn budget(tokens: u32, limit: Option<u32>) -> Option<ReasoningPlan> {
    let (tokens, max_tokens) = match limit {
        Some(limit) => (tokens.min(limit.saturating_sub(1)), limit),
        None => (tokens, tokens.saturating_add(DEFAULT_MAX_TOKENS)),
    };
    let thinking = json!({"type": "enabled", "budget_tokens": tokens, "display": DISPLAY});
    (tokens >= MIN_BUDGET).then_some(ReasoningPlan { thinking: Some(thinking), effort: None, max_tokens })
}

fn effort_value(effort: Effort, refuses: UnsupportedParameters) -> &'static str {
    match effort {
        Effort::Max if refuses.reasoning_max => "high",
        Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::Max => "max",
    }
}

fn effort(word: &str) -> Option<Effort> {
    match word {
        "low" => Some(Effort::Low),
        "medium" => Some(Effort::Medium),
        "high" => Some(Effort::High),
        "xhigh" | "max" => Some(Effort::Max),
        _ => None,
    }
}
