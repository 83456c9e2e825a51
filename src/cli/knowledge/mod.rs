//! Knowledge base commands, one file each.
//!
//! A command calls the tools of the server that has the knowledge base open. Without a server, it calls them in its own
//! process; `peer` hides the difference. The output corresponds to that of the tool, and `--json` prints the tool's
//! result.

mod add;
pub(super) mod backend;
mod clear;
mod confirm;
pub(super) mod error;
mod import_summary;
mod interrupt;
mod maintenance;
mod migrate;
mod paths;
mod remove;
pub(super) mod resolve_base;
mod resolve_id;
mod resumed_tasks;
pub(super) mod search;
mod show;
pub(super) mod snippet;
mod status;
mod tasks;

use std::collections::HashSet;
use std::io::Write;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use self::backend::Backend;
use self::interrupt::Interrupt;
use super::CommandResult;
use super::progress::Progress;
use crate::config::LoadedConfig;
use crate::knowledge::document::BaseName;

#[derive(Debug, Subcommand)]
pub(super) enum KnowledgeCommand {
    /// Add documents to the knowledge base: files, folders or patterns
    Add(add::Add),
    /// Search the knowledge base
    Search(search::Search),
    /// List the documents of the knowledge base, or print the text of one
    Show(show::Show),
    /// Remove documents from the knowledge base
    Remove(remove::Remove),
    /// Remove all documents from the knowledge base
    Clear(clear::Clear),
    /// Show knowledge base statistics and health
    Status(status::Status),
    /// List the tasks that add documents, or cancel one
    Tasks(tasks::Tasks),
    /// Check, repair, back up, restore and migrate the knowledge base
    #[command(subcommand)]
    Knowledge(maintenance::MaintenanceCommand),
}

/// Options of most commands.
#[derive(Debug, Args)]
pub(super) struct CommonOptions {
    /// Knowledge base to use instead of `default`
    #[arg(long, visible_alias = "base", value_name = "NAME")]
    pub(super) knowledge_base: Option<BaseName>,
    /// Print the result of the tool as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Log targets that are silenced, because these commands report the same themselves.
pub(super) const QUIET_MODULES: &[&str] = super::ask::QUIET_MODULES;

pub(super) fn run(command: &KnowledgeCommand, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match command {
            KnowledgeCommand::Tasks(command) => tasks::run(command, loaded, out).await,
            KnowledgeCommand::Knowledge(command) => maintenance::run(command, loaded, out).await,
            _ => run_with_backend(command, loaded, out).await,
        }
    })
}

/// Runs a command that calls tools.
async fn run_with_backend(command: &KnowledgeCommand, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    match command {
        KnowledgeCommand::Add(command) => command.check()?,
        KnowledgeCommand::Search(command) => command.check()?,
        _ => {}
    }
    // Installed before opening, so that no interruption can end the process halfway.
    let interrupt = matches!(command, KnowledgeCommand::Add(_)).then(Interrupt::watch);
    let opening = Progress::with_message("opening the knowledge base …");
    let peer = match command {
        KnowledgeCommand::Add(_) => Backend::find(&loaded.config).await?,
        _ => Backend::find_without_tasks(&loaded.config).await?,
    };
    drop(opening);
    let end = match (command, &interrupt) {
        (KnowledgeCommand::Add(command), Some(interrupt)) => add::run(command, &peer, interrupt, out).await,
        (KnowledgeCommand::Search(command), _) => search::run(command, &peer, out).await,
        (KnowledgeCommand::Show(command), _) => show::run(command, &peer, out).await,
        (KnowledgeCommand::Remove(command), _) => remove::run(command, &peer, out).await,
        (KnowledgeCommand::Clear(command), _) => clear::run(command, &peer, out).await,
        (KnowledgeCommand::Status(command), _) => status::run(command, &peer, out).await,
        (KnowledgeCommand::Add(_) | KnowledgeCommand::Tasks(_) | KnowledgeCommand::Knowledge(_), _) => {
            Ok(ExitCode::SUCCESS)
        }
    };
    peer.finish().await;
    end
}

impl KnowledgeCommand {
    /// Whether the command handles interruptions itself.
    pub(super) fn handles_interrupt(&self) -> bool {
        matches!(
            self,
            KnowledgeCommand::Add(_) | KnowledgeCommand::Knowledge(maintenance::MaintenanceCommand::Migrate(_))
        )
    }
}

impl CommonOptions {
    fn base(&self) -> Option<&str> {
        self.knowledge_base.as_ref().map(BaseName::as_str)
    }

    /// Adds the selected knowledge base to the arguments of a tool.
    fn arguments(&self, mut arguments: Value) -> Value {
        if let Some(name) = &self.knowledge_base {
            arguments["knowledge_base"] = json!(name);
        }
        arguments
    }
}

/// A string member, or an empty string.
pub(super) fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}

fn number(value: &Value, member: &str) -> u64 {
    value[member].as_u64().unwrap_or_default()
}

/// `1 file`, `5 files`.
fn counted(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// Unique prefixes of ids, which all commands accept: eight characters, or more if that is ambiguous.
fn short_ids<'i>(ids: impl Iterator<Item = &'i str>) -> Vec<String> {
    const MIN_CHARS: usize = 8;
    let ids: Vec<&str> = ids.collect();
    let prefix = |id: &str, chars: usize| id.chars().take(chars).collect::<String>();
    let whole = ids.iter().collect::<HashSet<_>>().len();
    let longest = ids.iter().map(|id| id.chars().count()).max().unwrap_or_default();
    let is_unique = |chars: &usize| ids.iter().map(|id| prefix(id, *chars)).collect::<HashSet<_>>().len() == whole;
    let chars = (MIN_CHARS..longest).find(is_unique).unwrap_or(longest);
    ids.iter().map(|id| prefix(id, chars)).collect()
}

/// A human-readable size. The specification's MB is 1,048,576 bytes (K-28).
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_ids_are_unique() {
        assert_eq!(short_ids(["0123456789", "abcdefghij"].into_iter()), ["01234567", "abcdefgh"]);
        assert_eq!(short_ids(["0123456789", "0123456780"].into_iter()), ["0123456789", "0123456780"]);
        assert_eq!(short_ids(["short", "short"].into_iter()), ["short", "short"]);
        assert!(short_ids(std::iter::empty()).is_empty());
    }

    #[test]
    fn sizes_have_a_suitable_unit() {
        assert_eq!([0, 1023, 1536, 3 << 20].map(size), ["0 B", "1023 B", "1.5 KB", "3.0 MB"]);
        assert_eq!([0, 1, 2].map(|count| counted(count, "file")), ["0 files", "1 file", "2 files"]);
    }
}
