//! Knowledge base commands, one file each.
//!
//! A command calls the tools of the server that has the knowledge base open. Without a server, it calls them in its own
//! process; `peer` hides the difference. The output corresponds to that of the tool, and `--json` prints the tool's
//! result.

mod add;
pub(super) mod base;
mod clear;
mod confirm;
pub(super) mod failure;
mod id;
mod interrupt;
mod keep;
mod migrate;
mod paths;
pub(super) mod peer;
mod remove;
mod resumed;
pub(super) mod search;
mod show;
pub(super) mod snippet;
mod status;
mod tally;
mod tasks;

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use self::interrupt::Interrupt;
use self::peer::Peer;
use super::End;
use super::progress::Progress;
use crate::config::Loaded;
use crate::knowledge::document::BaseName;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
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
    Knowledge(keep::Command),
}

/// Options of most commands.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// Knowledge base to use instead of `default`
    #[arg(long, visible_alias = "base", value_name = "NAME")]
    pub(super) knowledge_base: Option<BaseName>,
    /// Print the result of the tool as JSON on one line
    #[arg(long)]
    pub(super) json: bool,
}

/// Log targets that are silenced, because these commands report the same themselves.
pub(super) const TOLD: &[&str] = super::ask::TOLD;

pub(super) fn run(command: &Command, loaded: &Loaded, out: &mut dyn Write) -> End {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Tasks(command) => tasks::run(command, loaded, out).await,
            Command::Knowledge(command) => keep::run(command, loaded, out).await,
            _ => with_peer(command, loaded, out).await,
        }
    })
}

/// Runs a command that calls tools.
async fn with_peer(command: &Command, loaded: &Loaded, out: &mut dyn Write) -> End {
    match command {
        Command::Add(command) => command.check()?,
        Command::Search(command) => command.check()?,
        _ => {}
    }
    // Installed before opening, so that no interruption can end the process halfway.
    let interrupt = matches!(command, Command::Add(_)).then(Interrupt::watch);
    let opening = Progress::of("opening the knowledge base …");
    let peer = match command {
        Command::Add(_) => Peer::find(&loaded.config).await?,
        _ => Peer::find_for_a_moment(&loaded.config).await?,
    };
    drop(opening);
    let end = match (command, &interrupt) {
        (Command::Add(command), Some(interrupt)) => add::run(command, &peer, interrupt, out).await,
        (Command::Search(command), _) => search::run(command, &peer, out).await,
        (Command::Show(command), _) => show::run(command, &peer, out).await,
        (Command::Remove(command), _) => remove::run(command, &peer, out).await,
        (Command::Clear(command), _) => clear::run(command, &peer, out).await,
        (Command::Status(command), _) => status::run(command, &peer, out).await,
        (Command::Add(_) | Command::Tasks(_) | Command::Knowledge(_), _) => Ok(ExitCode::SUCCESS),
    };
    peer.finish().await;
    end
}

impl Command {
    /// Whether the command handles interruptions itself.
    pub(super) fn undoes(&self) -> bool {
        matches!(self, Command::Add(_) | Command::Knowledge(keep::Command::Migrate(_)))
    }
}

impl Common {
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
    fn sizes_are_told_in_the_unit_that_suits_them() {
        assert_eq!([0, 1023, 1536, 3 << 20].map(size), ["0 B", "1023 B", "1.5 KB", "3.0 MB"]);
        assert_eq!([0, 1, 2].map(|count| counted(count, "file")), ["0 files", "1 file", "2 files"]);
    }
}
