//! `corbie ask --explain`: shows the routing decision for a prompt.

use std::io::Write;
use std::process::ExitCode;

use super::super::exit::with_cli_commands;
use super::super::{CommandResult, json_output, sanitize_line};
use super::grounding::{self, NotSearched};
use super::summary::{format_amount, reason_text};
use crate::config::providers::Price;
use crate::route::tools::{CandidateOutput, RouteExplanation};
use crate::route::{self, DocumentAccess, Router};

/// Maximum characters of a system prompt that are shown.
const MAX_PROMPT_CHARS: usize = 72;

pub(super) async fn explain(
    router: &Router,
    prompt: &str,
    model: Option<&str>,
    json: bool,
    out: &mut dyn Write,
) -> CommandResult {
    let (plan, no_provider) = router.explain(prompt, model, DocumentAccess::Search).await;
    let not_asked = match router.settings().grounding.enabled && plan.grounding.is_none() {
        false => None,
        true if model.is_some() => Some(NotSearched::ModelNamed),
        true if plan.decision.is_pinned_local() => Some(NotSearched::PinnedLocal),
        true => Some(NotSearched::Failed),
    };
    let explained = RouteExplanation::of(plan);
    if json {
        json_output::write(&explained, out)?;
        return Ok(ExitCode::SUCCESS);
    }
    write(&explained, not_asked, no_provider.as_ref(), out)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints one line per decision. `no_provider` is the error that a request would return.
fn write(
    explained: &RouteExplanation,
    not_asked: Option<NotSearched>,
    no_provider: Option<&route::Error>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let mut line = |label: &str, text: &str| writeln!(out, "{label:<15}{}", sanitize_line(text));
    line("category", &category(explained))?;
    line("reasoning", if explained.use_reasoning { "yes" } else { "no" })?;
    if let Some(prompt) = explained.system_prompt.as_ref().filter(|prompt| !prompt.trim().is_empty()) {
        let more = if prompt.chars().nth(MAX_PROMPT_CHARS).is_some() { "…" } else { "" };
        line("system prompt", &format!("{}{more}", prompt.chars().take(MAX_PROMPT_CHARS).collect::<String>()))?;
    }
    let first = explained.candidates.first().map(|first| format!("{}/{}", first.provider, first.model));
    let grounds = explained.documents.as_ref().map(|documents| grounding::lines(documents, first.as_deref()));
    for (label, text) in grounds.unwrap_or_else(|| not_asked.map(NotSearched::line).into_iter().collect()) {
        line(label, &text)?;
    }
    if let Some(no_provider) = no_provider {
        line("error", &with_cli_commands(no_provider))?;
    }
    let groups = explained.candidates.chunk_by(|a, b| (&a.provider, &a.model) == (&b.provider, &b.model));
    for (place, group) in groups.enumerate() {
        line(if place == 0 { "model" } else { "failover" }, &candidate(&group[0], group.len()))?;
    }
    if !explained.unavailable_models.is_empty() && !explained.candidates.is_empty() {
        line("skipped", &format!("{} (no provider offers it)", explained.unavailable_models.join(", ")))?;
    }
    Ok(())
}

/// The effective category and its confidence.
fn category(explained: &RouteExplanation) -> String {
    let Some(category) = &explained.category else { return "none (the prompt was not classified)".into() };
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let method = explained.method.as_deref().unwrap_or_default();
    match explained.probabilities.first().filter(|_| explained.used_fallback) {
        Some(first) => {
            format!(
                "{category} (fallback, because the confidence of {} is only {}; method {method})",
                first.category,
                percent(first.score)
            )
        }
        None => {
            format!("{category} (confidence {}, method {method})", percent(explained.confidence.unwrap_or_default()))
        }
    }
}

fn candidate(candidate: &CandidateOutput, keys: usize) -> String {
    let CandidateOutput { provider, model, rule, .. } = candidate;
    let mut told = vec![format!("{provider}/{model}"), reason_text(candidate.reason, rule.as_deref())];
    if keys > 1 {
        told.push(format!("{keys} API keys"));
    }
    if let Some(Price { input, output, .. }) = candidate.price {
        told.push(format!("{} input, {} output per million tokens", format_amount(input), format_amount(output)));
    }
    told.join(" · ")
}
