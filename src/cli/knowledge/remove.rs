//! `corbie remove`: removes documents.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::backend::Backend;
use super::confirm::confirm;
use super::error::KnowledgeError;
use super::{CommonOptions, counted, number, resolve_base, resolve_id, text};
use crate::cli::{CommandResult, json_output, sanitize_line};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie remove handbook.pdf
  corbie remove --yes 3f2a 77c0")]
pub(in crate::cli) struct Remove {
    /// Documents to remove: file names or ID prefixes, as listed by `corbie show`
    #[arg(required = true, value_name = "DOCUMENT")]
    documents: Vec<String>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    pub(super) common: CommonOptions,
}

pub(super) async fn run(command: &Remove, peer: &Backend, out: &mut dyn Write) -> CommandResult {
    resolve_base::must_exist(peer, command.common.base()).await?;
    let ids = resolve_id::resolve_documents(peer, &command.common, &command.documents).await?;
    if !command.yes {
        let mut lost = Vec::new();
        for id in &ids {
            lost.push(describe_loss(peer, command, id).await?);
        }
        let question = format!("This permanently removes {}.", lost.join(", "));
        confirm(&question)?;
    }
    let mut all = true;
    for id in &ids {
        match remove(peer, command, id, true).await {
            Ok(reply) if command.common.json => json_output::write(&reply, out)?,
            Ok(reply) => {
                let chunks = counted(number(&reply, "chunks_removed"), "chunk");
                writeln!(out, "Removed {} ({chunks})", sanitize_line(text(&reply, "filename")))?;
            }
            // Continues with the other documents.
            Err(KnowledgeError::Tool(reply)) => {
                all = false;
                match command.common.json {
                    true => json_output::write(&reply, out)?,
                    false => writeln!(io::stderr(), "corbie: {}", KnowledgeError::Tool(reply))?,
                }
            }
            Err(failure) => return Err(failure.into()),
        }
    }
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn remove(peer: &Backend, command: &Remove, id: &str, confirm: bool) -> Result<Value, KnowledgeError> {
    let arguments = json!({ "document_id": id, "confirm": confirm });
    peer.call("knowledge-remove", command.common.arguments(arguments)).await
}

/// Describes what would be deleted. The tool returns it if the call is not confirmed.
async fn describe_loss(peer: &Backend, command: &Remove, id: &str) -> Result<String, KnowledgeError> {
    match remove(peer, command, id, false).await {
        Err(KnowledgeError::Tool(reply)) if reply["error"] == "confirmation_required" => {
            let document = &reply["document"];
            let chunks = counted(number(document, "chunks"), "chunk");
            Ok(format!("{} ({chunks})", sanitize_line(text(document, "filename"))))
        }
        Err(failure) => Err(failure),
        Ok(_) => Err(KnowledgeError::Rejected("the document was removed without confirmation".into())),
    }
}
