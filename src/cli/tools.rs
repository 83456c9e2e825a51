//! `corbie tools list` and `corbie tools call`: lists and calls tools without a client.

use std::io::Write;
use std::process::ExitCode;

use clap::Subcommand;
use corbie_mcp::CallResult;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::progress::Progress;
use super::table::{Align, write_list};
use super::{CommandResult, json_output, sanitize_line, value_parsers};
use crate::app::{self, App};
use crate::config::LoadedConfig;
use crate::config::trust::Via;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  corbie tools list
  corbie tools call classify_text '{\"text\": \"what is 2 + 2?\"}'")]
pub(super) enum ToolsCommand {
    /// List all tools with the first line of their descriptions
    #[command(after_help = "\
Examples:
  corbie tools list
  corbie tools list --json")]
    List {
        /// Print the complete list as JSON, as in `tools/list`
        #[arg(long)]
        json: bool,
    },
    /// Call a tool and print its result; exits with 1 if the tool fails
    #[command(after_help = "\
Examples:
  corbie tools call inspect_server
  corbie tools call classify_text '{\"text\": \"what is 2 + 2?\"}'")]
    Call {
        /// Name of the tool
        name: String,
        /// Arguments of the tool as a JSON object
        #[arg(value_name = "JSON", default_value = "{}", value_parser = value_parsers::json_object)]
        arguments: Map<String, Value>,
        /// Print the complete result as JSON
        #[arg(long)]
        json: bool,
    },
}

/// The error for an unknown tool, with advice in terms of this command line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UnknownTool(String);

impl UnknownTool {
    pub(super) fn because(why: impl std::fmt::Display) -> UnknownTool {
        UnknownTool(why.to_string().replace("`tools/list`", "`corbie tools list`"))
    }
}

pub(super) fn run(command: &ToolsCommand, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let App { server, knowledge, .. } = app::build_loaded(loaded)?;
        // The local user has the same trust as a stdio client.
        let trust = loaded.config.trust.level(Via::Stdio).into();
        match command {
            ToolsCommand::List { json } => {
                let tools = server.registry().list_registered_tools();
                if *json {
                    json_output::write(&json!({ "tools": tools }), out)?;
                } else {
                    write_tools(&tools, out)?;
                }
                Ok(ExitCode::SUCCESS)
            }
            ToolsCommand::Call { name, arguments, json } => {
                let params = json!({ "name": name, "arguments": arguments });
                server.registry().find(name).map_err(UnknownTool::because)?;
                let progress = Progress::with_message(&format!("calling {name} …"));
                let result = server.request(trust, "tools/call", &params).await;
                if let Some(knowledge) = knowledge {
                    // Running work finishes or resumes at the next start, and the index is saved.
                    knowledge.shut_down(server.drain_deadline()).await;
                }
                drop(progress);
                let result = result?;
                let called = CallResult::deserialize(&result)?;
                if *json {
                    json_output::write(&result, out)?;
                } else {
                    for content in &called.content {
                        match content.as_text() {
                            Some(text) => writeln!(out, "{text}")?,
                            None => writeln!(out, "{}", json!(content))?,
                        }
                    }
                }
                Ok(if called.is_error { ExitCode::FAILURE } else { ExitCode::SUCCESS })
            }
        }
    })
}

fn write_tools(tools: &[Value], out: &mut dyn Write) -> std::io::Result<()> {
    let text = |tool: &Value, member: &str| {
        sanitize_line(tool[member].as_str().unwrap_or_default().lines().next().unwrap_or_default())
    };
    let rows: Vec<Vec<String>> = tools.iter().map(|tool| vec![text(tool, "name"), text(tool, "description")]).collect();
    write_list(&[Align::Left, Align::Wrap], &rows, out)
}
