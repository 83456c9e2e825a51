//! `corbie ask`: routes one prompt to a model and streams the answer.

mod documents;
mod explain;
mod grounding;
mod prompt;
mod running_server;
mod stream_output;
mod summary;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};
use tokio_util::task::AbortOnDropHandle;

pub(super) use self::running_server::ServerError;
use self::stream_output::StreamOutput;
use self::summary::{AnswerSummary, write_summary};
use super::exit::{INTERRUPTED, UsageError};
use super::{CommandResult, json_output};
use crate::app::{self, App};
use crate::config::LoadedConfig;
use crate::knowledge::document::BaseName;
use crate::providers::chat::{ChatRole, ContentPart, Message, StopReason};
use crate::providers::{Chat, Delta};
use crate::route::methods::UsageOutput;
use crate::route::{self, RoutedCompletion, Router};

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
struct AnswerOutput<'a, Decision> {
    answer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<String>,
    model: Option<&'a str>,
    provider: Option<&'a str>,
    /// Finish reason, with the values of `chat_completion`.
    stop: Value,
    usage: UsageOutput,
    decision: &'a Decision,
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
        if !command.explain
            && let Some(end) = running_server::ask(command, &prompt, loaded, out).await
        {
            return end;
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
        stop: stop_json(&completion.stop),
        usage: completion.usage.into(),
        decision: &record,
    };
    json_output::write(&answered, out)?;
    Ok(ExitCode::SUCCESS)
}

fn stop_json(stop: &StopReason) -> Value {
    match stop {
        StopReason::Other(word) => json!(word),
        stop => json!(stop),
    }
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
    write_summary(&AnswerSummary::of(answering.record()), &stopped)?;
    Ok(ExitCode::SUCCESS)
}

impl Ask {
    fn chat(&self, prompt: String) -> Chat {
        let system = self.system.iter().map(|text| Message::text(ChatRole::System, text));
        let messages = system.chain([Message::text(ChatRole::User, prompt)]).collect();
        Chat { messages, max_tokens: self.max_tokens, ..Chat::default() }
    }
}
