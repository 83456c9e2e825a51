//! `corbie clear`: removes all documents.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::backend::Backend;
use super::confirm::confirm;
use super::{CommonOptions, counted, number, resolve_base, size, text};
use crate::cli::{CommandResult, json_output, sanitize_line};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie clear
  corbie clear --base work --yes")]
pub(in crate::cli) struct Clear {
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    pub(super) common: CommonOptions,
}

/// The specification's megabyte (K-28).
const MB: f64 = 1_048_576.0;

pub(super) async fn run(command: &Clear, peer: &Backend, out: &mut dyn Write) -> CommandResult {
    resolve_base::must_exist(peer, command.common.base()).await?;
    if !command.yes {
        let status = peer.call("knowledge-status", command.common.arguments(json!({}))).await?;
        let base = &status["knowledge_base"];
        let question = format!(
            "This permanently removes all documents of the knowledge base `{}`: {} ({}, {}). Running imports are cancelled.",
            sanitize_line(text(base, "name")),
            counted(number(base, "document_count"), "document"),
            size(number(base, "total_size_bytes")),
            counted(number(base, "total_chunks"), "chunk"),
        );
        confirm(&question)?;
    }
    let arguments = json!({ "confirm": true, "confirmation_phrase": "DELETE ALL" });
    let reply = peer.call("knowledge-clear", command.common.arguments(arguments)).await?;
    if command.common.json {
        json_output::write(&reply, out)?;
    } else {
        let documents = counted(number(&reply, "documents_removed"), "document");
        let freed = (reply["storage_freed_mb"].as_f64().unwrap_or_default() * MB) as u64;
        match freed {
            0 => writeln!(out, "Removed {documents}")?,
            freed => writeln!(out, "Removed {documents}; {} freed", size(freed))?,
        }
    }
    Ok(ExitCode::SUCCESS)
}
