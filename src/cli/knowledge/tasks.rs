//! `corbie tasks`: lists and cancels the tasks of all processes.
//!
//! The tasks are read from the store, which has those of all processes. Only the process that runs a task knows its
//! exact progress.

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use corbie_mcp::LineClient;
use serde_json::{Value, json};

use super::error::KnowledgeError;
use super::import_summary::ImportSummary;
use super::{backend, maintenance, resolve_id, short_ids, text};
use crate::cli::table::{Align, write_table};
use crate::cli::{CommandResult, json_output, sanitize_line};
use crate::config::LoadedConfig;
use crate::knowledge;
use crate::knowledge::date;
use crate::knowledge::document::BaseName;
use crate::knowledge::store::Store;
use crate::knowledge::task::{TaskRecord, TaskState};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  corbie tasks
  corbie tasks --limit 5 --json
  corbie tasks cancel 3f2a")]
pub(in crate::cli) struct Tasks {
    #[command(subcommand)]
    command: Option<TasksCommand>,
    /// Only tasks of this knowledge base
    #[arg(long, visible_alias = "base", value_name = "NAME")]
    knowledge_base: Option<BaseName>,
    /// Maximum number of tasks, newest first
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum TasksCommand {
    /// Cancel a task; documents added before are kept
    #[command(after_help = "\
Examples:
  corbie tasks cancel 3f2a")]
    Cancel {
        /// Task ID or a unique prefix
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn run(command: &Tasks, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    let storage = maintenance::storage_dir(loaded)?;
    match &command.command {
        Some(TasksCommand::Cancel { id, json }) => cancel(id, *json, loaded, out).await,
        None => {
            let tasks = match knowledge::backend::exists(&loaded.config.knowledge) {
                true => open_store(loaded).await?.tasks(command.knowledge_base.as_ref(), command.limit).await?,
                false => Vec::new(),
            };
            let server = backend::connect_to_server(&storage).await?;
            let mut shown = Vec::new();
            for task in &tasks {
                shown.push(to_json(task, progress(task, server.as_ref()).await));
            }
            match command.json {
                true => json_output::write(&json!({ "success": true, "tasks": shown }), out)?,
                false => write_tasks(&shown, out)?,
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Opens the store without adopting the tasks of other processes.
async fn open_store(loaded: &LoadedConfig) -> Result<Store, Box<dyn std::error::Error>> {
    Ok(knowledge::backend::open_store(&loaded.config.knowledge, &maintenance::storage_dir(loaded)?).await?)
}

/// The process that runs the task checks its state, and writes nothing for a cancelled task.
async fn cancel(beginning: &str, json: bool, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    let store = match knowledge::backend::exists(&loaded.config.knowledge) {
        true => Some(open_store(loaded).await?),
        false => None,
    };
    let tasks = match &store {
        Some(store) => store.tasks(None, u32::MAX).await?,
        None => Vec::new(),
    };
    let ids: Vec<String> = tasks.iter().map(|task| task.id.to_string()).collect();
    let id = resolve_id::resolve_task(beginning, &ids)?;
    let task = tasks.iter().find(|task| task.id.to_string() == id);
    let (Some(store), Some(task)) = (store, task) else { return Ok(ExitCode::FAILURE) };
    if !store.cancel_task(task.id).await? {
        let state = store.task(task.id).await?.map_or(task.state.name(), |task| task.state.name());
        return Err(KnowledgeError::TaskEnded { task: id, state }.into());
    }
    match json {
        true => {
            json_output::write(&json!({ "success": true, "task_id": id, "status": TaskState::Cancelled.name() }), out)?
        }
        false => writeln!(out, "Cancelled {id}; documents added before are kept")?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Progress of a task, if it is available.
async fn progress(task: &TaskRecord, server: Option<&LineClient>) -> Option<f64> {
    match &task.state {
        TaskState::Completed(_) => return Some(1.0),
        TaskState::Running(noted) if noted.total > 0 => {
            return Some(f64::from(noted.permille) / 1000.0);
        }
        TaskState::Running(_) => {}
        _ => return None,
    }
    let arguments = json!({ "name": "knowledge-task-status", "arguments": { "task_id": task.id } });
    let reply = server?.call("tools/call", &arguments).await.ok()?;
    let status: Value = serde_json::from_str(reply["content"][0]["text"].as_str()?).ok()?;
    status["progress"].as_f64()
}

fn to_json(task: &TaskRecord, progress: Option<f64>) -> Value {
    let mut shown = json!({
        "task_id": task.id,
        "status": task.state.name(),
        "kind": task.kind,
        "knowledge_base": task.base,
        "what": task_label(task),
        "created": date::to_rfc3339(task.created),
        "started": task.started.map(date::to_rfc3339),
        "ended": task.ended.map(date::to_rfc3339),
        "age_seconds": (date::now() - task.created).max(0) / 1000,
        "attempts": task.attempts,
    });
    if let Some(progress) = progress {
        shown["progress"] = progress.into();
    }
    match &task.state {
        TaskState::Completed(result) => shown["result"] = result.clone(),
        TaskState::Failed { code, message } => {
            shown["error"] = code.as_str().into();
            shown["message"] = message.as_str().into();
        }
        TaskState::Queued | TaskState::Running(_) | TaskState::Cancelled => {}
    }
    shown
}

/// The file of a task, or the first of its paths.
pub(super) fn task_label(task: &TaskRecord) -> String {
    if let Some(filename) = &task.filename {
        return filename.clone();
    }
    let paths = task.request["import"]["paths"].as_array().map(Vec::as_slice).unwrap_or_default();
    match paths {
        [] => String::new(),
        [path] => path.as_str().unwrap_or_default().to_owned(),
        [path, more @ ..] => format!("{} and {} more", path.as_str().unwrap_or_default(), more.len()),
    }
}

fn write_tasks(tasks: &[Value], out: &mut dyn Write) -> std::io::Result<()> {
    if tasks.is_empty() {
        return writeln!(out, "No tasks.");
    }
    let heading = [
        ("STATE", Align::Left),
        ("DONE", Align::Right),
        ("AGE", Align::Right),
        ("BASE", Align::Left),
        ("ID", Align::Left),
        ("WHAT", Align::Wrap),
    ];
    let row = |(task, id): (&Value, &String)| {
        let done = task["progress"].as_f64().map(|share| format!("{:.0} %", share * 100.0));
        let message = match text(task, "message") {
            "" if task["result"]["files_total"].is_u64() => {
                format!(": {}", ImportSummary::of(&task["result"]).summary())
            }
            "" => String::new(),
            message => format!(": {message}"),
        };
        vec![
            sanitize_line(text(task, "status")),
            done.unwrap_or_default(),
            age(task["age_seconds"].as_i64().unwrap_or_default()),
            sanitize_line(text(task, "knowledge_base")),
            sanitize_line(id),
            sanitize_line(&format!("{}{message}", text(task, "what"))),
        ]
    };
    let ids = short_ids(tasks.iter().map(|task| text(task, "task_id")));
    write_table(&heading, &tasks.iter().zip(&ids).map(row).collect::<Vec<_>>(), out)
}

fn age(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_a_suitable_unit() {
        assert_eq!([0, 119, 120, 7200, 200_000].map(age), ["0 s", "119 s", "2 min", "2 h", "2 days"]);
    }

    #[test]
    fn a_file_name_cannot_break_the_line_of_a_task() {
        let mut out = Vec::new();
        let task = json!({ "status": "failed", "what": "a\n\u{1b}[2J.pdf", "message": "no", "task_id": "1" });
        write_tasks(&[task], &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out.lines().count(), 2, "{out}");
        assert!(out.contains("a  [2J.pdf: no"), "{out}");
    }
}
