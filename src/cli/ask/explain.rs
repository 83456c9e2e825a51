//! `corbie ask --explain`: shows the routing decision for a prompt.

use std::io::Write;
use std::process::ExitCode;

use serde_json::json;

use super::super::ending::in_commands;
use super::super::{End, one_line};
use super::grounds::{self, NotAsked};
use super::{money, why};
use crate::config::providers::Price;
use crate::route::tools::{Candidate, Explained};
use crate::route::{self, Documents, Router};

/// Maximum characters of a system prompt that are shown.
const SHOWN: usize = 72;

pub(super) async fn explain(
    router: &Router,
    prompt: &str,
    model: Option<&str>,
    json: bool,
    out: &mut dyn Write,
) -> End {
    let (plan, nobody) = router.explain(prompt, model, Documents::Asked).await;
    let not_asked = match router.settings().grounding.enabled && plan.grounds.is_none() {
        false => None,
        true if model.is_some() => Some(NotAsked::ModelNamed),
        true if plan.decision.stays() => Some(NotAsked::Stays),
        true => Some(NotAsked::Failed),
    };
    let explained = Explained::of(plan);
    if json {
        writeln!(out, "{:#}", json!(explained))?;
        return Ok(ExitCode::SUCCESS);
    }
    write(&explained, not_asked, nobody.as_ref(), out)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints one line per decision. `nobody` is the error that a request would return if no provider can serve it.
fn write(
    explained: &Explained,
    not_asked: Option<NotAsked>,
    nobody: Option<&route::Error>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let mut line = |label: &str, text: &str| writeln!(out, "{label:<12}{}", one_line(text));
    line("category", &category(explained))?;
    line("reasoning", if explained.use_reasoning { "yes" } else { "no" })?;
    if let Some(prompt) = explained.system_prompt.as_ref().filter(|prompt| !prompt.trim().is_empty()) {
        let more = if prompt.chars().nth(SHOWN).is_some() { "…" } else { "" };
        line("told first", &format!("{}{more}", prompt.chars().take(SHOWN).collect::<String>()))?;
    }
    let first = explained.candidates.first().map(|first| format!("{}/{}", first.provider, first.model));
    let grounds = explained.documents.as_ref().map(|documents| grounds::lines(documents, first.as_deref()));
    for (label, text) in grounds.unwrap_or_else(|| not_asked.map(NotAsked::line).into_iter().collect()) {
        line(label, &text)?;
    }
    if let Some(nobody) = nobody {
        line("asked", &format!("nobody: {}", in_commands(nobody)))?;
    }
    let groups = explained.candidates.chunk_by(|a, b| (&a.provider, &a.model) == (&b.provider, &b.model));
    for (place, group) in groups.enumerate() {
        line(if place == 0 { "asked" } else { "then" }, &candidate(&group[0], group.len()))?;
    }
    if !explained.unavailable_models.is_empty() && !explained.candidates.is_empty() {
        line("passed over", &format!("{}; nobody serves it", explained.unavailable_models.join(", ")))?;
    }
    Ok(())
}

/// The effective category and its confidence.
fn category(explained: &Explained) -> String {
    let Some(category) = &explained.category else { return "none; the prompt was not looked at".into() };
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let method = explained.method.as_deref().unwrap_or_default();
    match explained.probabilities.first().filter(|_| explained.used_fallback) {
        Some(first) => {
            format!(
                "{category}, as {} at {} is not sure enough; decided by {method}",
                first.category,
                percent(first.score)
            )
        }
        None => format!("{category}, {} sure; decided by {method}", percent(explained.confidence.unwrap_or_default())),
    }
}

fn candidate(candidate: &Candidate, keys: usize) -> String {
    let Candidate { provider, model, rule, .. } = candidate;
    let mut told = vec![format!("{provider}/{model}"), why(candidate.reason, rule.as_deref())];
    if keys > 1 {
        told.push(format!("with {keys} keys"));
    }
    if let Some(Price { input, output, .. }) = candidate.price {
        told.push(format!("{} in, {} out per million tokens", money(input), money(output)));
    }
    told.join(" · ")
}
