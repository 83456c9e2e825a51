//! `corbie status`: statistics and health of the knowledge base.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::backend::Backend;
use super::{CommonOptions, counted, number, resolve_base, size, text};
use crate::cli::{CommandResult, json_output, sanitize_line};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie status
  corbie status --json")]
pub(in crate::cli) struct Status {
    #[command(flatten)]
    pub(super) common: CommonOptions,
}

/// Exits with 1 if there is a problem, for scripts.
pub(super) async fn run(command: &Status, peer: &Backend, out: &mut dyn Write) -> CommandResult {
    resolve_base::must_exist(peer, command.common.base()).await?;
    let status = peer.call("knowledge-status", command.common.arguments(json!({}))).await?;
    match command.common.json {
        true => json_output::write(&status, out)?,
        false => write_status(&status, matches!(peer, Backend::Server(_)), out)?,
    }
    let healthy = text(&status["health"], "status") == "healthy";
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write_status(status: &Value, is_served: bool, out: &mut dyn Write) -> io::Result<()> {
    let (base, health, tasks) = (&status["knowledge_base"], &status["health"], &status["tasks"]);
    let mut line = |name: &str, value: String| writeln!(out, "{name:16}{}", sanitize_line(&value));
    line("knowledge base", text(base, "name").to_owned())?;
    let (documents, chunks) = (number(base, "document_count"), number(base, "total_chunks"));
    let bytes = size(number(base, "total_size_bytes"));
    line("documents", format!("{documents} ({bytes}, {})", counted(chunks, "chunk")))?;
    line("last updated", status["last_updated"].as_str().unwrap_or("never").to_owned())?;
    line("health", text(health, "status").to_owned())?;
    for issue in health["issues"].as_array().into_iter().flatten() {
        line("", issue.as_str().unwrap_or_default().to_owned())?;
    }
    line("tasks", format!("{} running, {} waiting", number(tasks, "running"), number(tasks, "queued")))?;
    line("model", text(&status["configuration"], "embedding_model").to_owned())?;
    line("storage", text(base, "storage_path").to_owned())?;
    let bases = status["knowledge_bases"].as_array().map(Vec::as_slice).unwrap_or_default();
    if bases.len() > 1 {
        let names: Vec<&str> = bases.iter().filter_map(Value::as_str).collect();
        line("all bases", names.join(", "))?;
    }
    line("server", if is_served { "running" } else { "not running" }.to_owned())
}
