//! The last line of an answer: target, reason, tokens, cost and latency.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use super::super::sanitize_line;
use super::super::sanitized_stdout::{DIM, RESET};
use crate::colour;
use crate::providers::chat::StopReason;
use crate::route::DecisionRecord;

/// What the line shows of a decision.
#[derive(Debug, Default)]
pub(super) struct AnswerSummary {
    provider: String,
    model: String,
    category: Option<String>,
    reason: String,
    rule: Option<String>,
    /// Input and output tokens.
    tokens: Option<(u64, u64)>,
    cost: Option<f64>,
    latency_ms: f64,
}

impl AnswerSummary {
    pub(super) fn of(record: &DecisionRecord) -> AnswerSummary {
        AnswerSummary {
            provider: record.provider.clone().unwrap_or_default(),
            model: record.model.clone().unwrap_or_default(),
            category: record.classified.as_ref().map(|classified| classified.category.clone()),
            reason: record.reason.clone(),
            rule: record.rule.clone(),
            tokens: record.usage.map(|usage| (usage.prompt, usage.completion)),
            cost: record.cost,
            latency_ms: record.latency_ms,
        }
    }

    /// The record of a running server. `latency_ms` is used if the record has none.
    pub(super) fn from_json(record: &Value, latency_ms: f64) -> AnswerSummary {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let usage = &record["usage"];
        AnswerSummary {
            provider: text(&record["provider"]).unwrap_or_default(),
            model: text(&record["model"]).unwrap_or_default(),
            category: text(&record["classified"]["category"]),
            reason: text(&record["reason"]).unwrap_or_default(),
            rule: text(&record["rule"]),
            tokens: usage["prompt"].as_u64().zip(usage["completion"].as_u64()),
            cost: record["cost"].as_f64(),
            latency_ms: record["latency_ms"].as_f64().unwrap_or(latency_ms),
        }
    }

    fn line(&self, stop: &StopReason) -> String {
        let mut parts = vec![format!("→ {}/{}", self.provider, self.model)];
        parts.extend(self.category.clone());
        parts.push(reason_text(&self.reason, self.rule.as_deref()));
        if let Some((prompt, completion)) = self.tokens.filter(|(prompt, completion)| prompt + completion > 0) {
            parts.push(format!("{prompt} + {completion} tokens"));
        }
        parts.extend(self.cost.map(|cost| format!("cost {}", format_amount(cost))));
        parts.push(match self.latency_ms {
            short if short < 1e3 => format!("{short:.0} ms"),
            long => format!("{:.1} s", long / 1e3),
        });
        match stop {
            StopReason::Finished | StopReason::StopSequence | StopReason::Tools => {}
            StopReason::Length => parts.push("truncated at the token limit".into()),
            StopReason::Refused => parts.push("refused".into()),
            StopReason::Other(word) => parts.push(format!("finish reason {word}")),
        }
        parts.join(" · ")
    }
}

/// Writes the line to stderr, if that is a terminal.
pub(super) fn write_summary(summary: &AnswerSummary, stop: &StopReason) -> io::Result<()> {
    let mut stderr = io::stderr();
    if !stderr.is_terminal() {
        return Ok(());
    }
    let line = sanitize_line(&summary.line(stop));
    match colour::is_enabled(true) {
        true => writeln!(stderr, "{DIM}{line}{RESET}"),
        false => writeln!(stderr, "{line}"),
    }
}

/// The reason for the model, or the rule that chose it.
pub(super) fn reason_text(why: &str, rule: Option<&str>) -> String {
    rule.map_or_else(|| why.to_owned(), |rule| format!("rule {rule}"))
}

/// An amount with up to six decimals, without trailing zeros.
pub(super) fn format_amount(amount: f64) -> String {
    let digits = format!("{amount:.6}");
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::decision_record::{ClassificationRecord, TokenUsage};

    #[test]
    fn summary_has_target_reason_tokens_cost_and_latency() {
        let record = DecisionRecord {
            provider: Some("local".into()),
            model: Some("llama3".into()),
            classified: Some(ClassificationRecord { category: "math".into(), ..ClassificationRecord::default() }),
            reason: "rule".into(),
            rule: Some("hard".into()),
            usage: Some(TokenUsage { prompt: 12, completion: 34, ..TokenUsage::default() }),
            cost: Some(0.000_46),
            latency_ms: 1234.0,
            ..DecisionRecord::default()
        };
        let expected =
            "→ local/llama3 · math · rule hard · 12 + 34 tokens · cost 0.00046 · 1.2 s · truncated at the token limit";
        assert_eq!(AnswerSummary::of(&record).line(&StopReason::Length), expected);
        let json = serde_json::to_value(&record).unwrap();
        assert_eq!(AnswerSummary::from_json(&json, 0.0).line(&StopReason::Length), expected, "the same from JSON");
        let requested = DecisionRecord {
            provider: record.provider,
            model: record.model,
            reason: "requested".into(),
            ..DecisionRecord::default()
        };
        assert_eq!(AnswerSummary::of(&requested).line(&StopReason::Finished), "→ local/llama3 · requested · 0 ms");
    }

    #[test]
    fn amounts_have_no_trailing_zeros() {
        assert_eq!([0.0, 3.0, 0.15, 0.000_001].map(format_amount), ["0", "3", "0.15", "0.000001"]);
    }
}
