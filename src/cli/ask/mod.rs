//! `corbie ask`: routes one prompt to a model and streams the answer.

mod documents;
mod explain;
mod grounding;
mod prompt;
mod stream_output;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};
use tokio_util::task::AbortOnDropHandle;

use self::stream_output::StreamOutput;
use super::exit::{INTERRUPTED, UsageError};
use super::sanitized_stdout::{DIM, RESET};
use super::{CommandResult, json_output, sanitize_line};
use crate::app::{self, App};
use crate::colour;
use crate::config::LoadedConfig;
use crate::knowledge::document::BaseName;
use crate::providers::chat::{ChatRole, ContentPart, Message, StopReason};
use crate::providers::{Chat, Delta};
use crate::route::methods::UsageOutput;
use crate::route::{self, DecisionRecord, RoutedCompletion, Router};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie ask \"Why is the sky blue?\"
  corbie ask --explain \"Why is the sky blue?\"
  git diff | corbie ask \"Write a commit message for this:\" -
  corbie ask --documents \"How many days of holiday do new colleagues get?\"")]
pub(super) struct Ask {
    /// The prompt; words are joined. Reads stdin without words, or if the last word is `-`
    #[arg(value_name = "PROMPT", allow_negative_numbers = true)]
    words: Vec<String>,
    /// Model to use, such as gpt-4o or anthropic/claude-sonnet-5, instead of routing the prompt
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// System prompt
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Maximum number of tokens in the answer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,
    /// Answer from the documents of the knowledge base and list the sources
    #[arg(long, conflicts_with_all = ["system", "thinking", "explain"])]
    documents: bool,
    /// Knowledge base to use instead of `default`
    #[arg(long, visible_alias = "base", value_name = "NAME", requires = "documents")]
    knowledge_base: Option<BaseName>,
    /// Print the model's reasoning to stderr
    #[arg(long)]
    thinking: bool,
    /// Explain the routing decision without sending the prompt
    #[arg(long)]
    explain: bool,
    /// Print JSON with the answer, model, tokens and routing decision, at the end
    #[arg(long)]
    json: bool,
}

/// Log targets that are silenced, because this command reports the same itself.
pub(super) const QUIET_MODULES: &[&str] = &["corbie_router", "corbie_llm"];

/// Output of `--json`.
#[derive(Serialize)]
struct AnswerOutput<'a> {
    answer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<String>,
    model: Option<&'a str>,
    provider: Option<&'a str>,
    /// Finish reason, with the values of `chat_completion`.
    stop: Value,
    usage: UsageOutput,
    decision: &'a DecisionRecord,
}

/// Time limit for writing a rebuilt index.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn run(command: &Ask, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    let prompt = prompt::read_prompt(&command.words, std::io::stdin().lock()).map_err(
        |error| -> Box<dyn std::error::Error> {
            match error.is_wrong_usage() {
                true => UsageError::Value(error.to_string()).into(),
                false => error.into(),
            }
        },
    )?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let _watching = AbortOnDropHandle::new(tokio::spawn(exit_on_interrupt()));
        if command.documents {
            return documents::run(command, &prompt, loaded, out).await;
        }
        let app = app::build(&loaded.config)?;
        prepare(&app).await;
        let end = answer(command, prompt, &app.router, out).await;
        if let Some(knowledge) = &app.knowledge {
            knowledge.shut_down(Instant::now() + FINISH_TIMEOUT).await;
        }
        end
    })
}

async fn answer(command: &Ask, prompt: String, router: &Router, out: &mut dyn Write) -> CommandResult {
    // Detect local servers, so that a prompt is routed as `corbie serve` would route it. Without a local server, this
    // takes no time.
    router.providers().detect_local_servers().await;
    if command.explain {
        return explain::explain(router, &prompt, command.model.as_deref(), command.json, out).await;
    }
    let (question, model) = (command.chat(prompt).into(), command.model.clone());
    let ask = route::RouteRequest { request: question, model, ..route::RouteRequest::default() };
    if command.json {
        complete(router, ask, command.thinking, out).await
    } else {
        stream(router, ask, command.thinking, out).await
    }
}

/// Opens the knowledge base in advance if grounding is enabled, as a server does: the time limit for the search is
/// short. Tasks that other processes left behind are not started, because this process would exit before they finish.
async fn prepare(app: &App) {
    let Some(knowledge) = &app.knowledge else { return };
    knowledge.skip_adoption();
    // A failure costs only the passages; the prompt is still answered.
    if app.router.settings().grounding.enabled && knowledge.open().await.is_ok() {
        let _ = app.inference.load().await;
    }
}

/// Exits on Ctrl-C immediately: a blocked write to a pager that does not read would delay a graceful shutdown. The
/// connection to the provider closes with the process.
async fn exit_on_interrupt() {
    if tokio::signal::ctrl_c().await.is_ok() {
        let mut stderr = std::io::stderr();
        if stderr.is_terminal() {
            let _ = writeln!(stderr);
        }
        std::process::exit(INTERRUPTED.into());
    }
}

async fn complete(router: &Router, ask: route::RouteRequest, thinking: bool, out: &mut dyn Write) -> CommandResult {
    let waiting = stream_output::waiting_progress();
    let RoutedCompletion { completion, record } = router.complete(ask).await?;
    drop(waiting);
    let thought = |part: &ContentPart| match part {
        ContentPart::Reasoning { text, .. } => Some(text.clone()),
        _ => None,
    };
    let answered = AnswerOutput {
        answer: completion.text(),
        thinking: thinking.then(|| completion.parts.iter().filter_map(thought).collect()),
        model: record.model.as_deref(),
        provider: record.provider.as_deref(),
        stop: match &completion.stop {
            StopReason::Other(word) => json!(word),
            stop => json!(stop),
        },
        usage: completion.usage.into(),
        decision: &record,
    };
    json_output::write(&answered, out)?;
    Ok(ExitCode::SUCCESS)
}

async fn stream(router: &Router, ask: route::RouteRequest, thinking: bool, out: &mut dyn Write) -> CommandResult {
    let mut pieces = StreamOutput::new(out);
    let mut answering = router.stream(ask).await?;
    let mut stopped = StopReason::default();
    while let Some(piece) = answering.next().await {
        match piece {
            Ok(Delta::Text { text }) => pieces.write_answer(&text)?,
            Ok(Delta::Reasoning { text }) if thinking => pieces.write_reasoning(&text)?,
            Ok(Delta::Stopped { stop }) => stopped = stop,
            Ok(_) => {}
            Err(error) => {
                pieces.end()?;
                return Err(error.into());
            }
        }
    }
    pieces.end()?;
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        let told = sanitize_line(&summary(answering.record(), &stopped));
        match colour::is_enabled(true) {
            true => writeln!(stderr, "{DIM}{told}{RESET}")?,
            false => writeln!(stderr, "{told}")?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Ask {
    fn chat(&self, prompt: String) -> Chat {
        let system = self.system.iter().map(|text| Message::text(ChatRole::System, text));
        let messages = system.chain([Message::text(ChatRole::User, prompt)]).collect();
        Chat { messages, max_tokens: self.max_tokens, ..Chat::default() }
    }
}

/// Target, reason, tokens, cost and latency.
fn summary(record: &DecisionRecord, stop: &StopReason) -> String {
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    let mut told = vec![format!("→ {}/{}", name(&record.provider), name(&record.model))];
    told.extend(record.classified.as_ref().map(|classified| classified.category.clone()));
    told.push(reason_text(&record.reason, record.rule.as_deref()));
    if let Some(usage) = record.usage.filter(|usage| usage.prompt + usage.completion > 0) {
        told.push(format!("{} + {} tokens", usage.prompt, usage.completion));
    }
    told.extend(record.cost.map(|cost| format!("cost {}", format_amount(cost))));
    told.push(match record.latency_ms {
        short if short < 1e3 => format!("{short:.0} ms"),
        long => format!("{:.1} s", long / 1e3),
    });
    match stop {
        StopReason::Finished | StopReason::StopSequence | StopReason::Tools => {}
        StopReason::Length => told.push("truncated at the token limit".into()),
        StopReason::Refused => told.push("refused".into()),
        StopReason::Other(word) => told.push(format!("finish reason {word}")),
    }
    told.join(" · ")
}

/// The reason for the model, or the rule that chose it.
fn reason_text(why: &str, rule: Option<&str>) -> String {
    rule.map_or_else(|| why.to_owned(), |rule| format!("rule {rule}"))
}

/// An amount with up to six decimals, without trailing zeros.
fn format_amount(amount: f64) -> String {
    let digits = format!("{amount:.6}");
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::decision_record::{ClassificationRecord, TokenUsage};

    #[test]
    fn the_last_line_tells_who_answered_why_and_what_it_took() {
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
        let told = summary(&record, &StopReason::Length);
        assert_eq!(
            told,
            "→ local/llama3 · math · rule hard · 12 + 34 tokens · cost 0.00046 · 1.2 s · truncated at the token limit"
        );
        let asked = DecisionRecord {
            provider: record.provider,
            model: record.model,
            reason: "requested".into(),
            ..DecisionRecord::default()
        };
        assert_eq!(summary(&asked, &StopReason::Finished), "→ local/llama3 · requested · 0 ms");
    }

    #[test]
    fn amounts_have_no_more_digits_than_they_need() {
        assert_eq!([0.0, 3.0, 0.15, 0.000_001].map(format_amount), ["0", "3", "0.15", "0.000001"]);
    }
}
