//! Reports interrupted tasks that this process resumes.
//!
//! A process that opens the storage adopts the tasks of terminated processes. The message explains why more documents
//! are being added than the user requested.

use std::io::Write;

use serde_json::Value;

use super::backend::Backend;
use super::error::KnowledgeError;
use super::tasks::task_label;
use crate::cli::sanitize_line;
use crate::knowledge::Error;
use crate::knowledge::task::{TaskRecord, TaskState};

/// Maximum number of tasks in the message; `corbie tasks` lists all.
const MAX_NAMED: usize = 5;

/// Only if this process opened the storage: the tasks of a server are not resumed here.
pub(super) async fn report_resumed(peer: &Backend) -> Result<(), KnowledgeError> {
    let Backend::InProcess(app) = peer else { return Ok(()) };
    let Some(knowledge) = &app.knowledge else { return Ok(()) };
    let failed = |error: Error| KnowledgeError::Tool(Value::Object(error.to_json_members()));
    let store = &knowledge.open().await.map_err(failed)?.store;
    let tasks = store.tasks(None, u32::MAX).await.map_err(|error| failed(error.into()))?;
    // This process has not created a task yet, so its tasks are adopted ones. Failed tasks are not resumed.
    let is_ours = |task: &&TaskRecord| {
        task.runner.as_deref() == Some(store.instance()) && !matches!(task.state, TaskState::Failed { .. })
    };
    let names: Vec<String> = tasks.iter().filter(is_ours).map(|task| sanitize_line(&task_label(task))).collect();
    if !names.is_empty() {
        // If stderr is closed, the command continues.
        let _ = writeln!(std::io::stderr(), "corbie: {}", sentence(&names));
    }
    Ok(())
}

fn sentence(names: &[String]) -> String {
    let tasks = match names.len() {
        1 => "1 interrupted task".to_owned(),
        count => format!("{count} interrupted tasks"),
    };
    let mut named = names.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > MAX_NAMED {
        named += &format!(" and {} more, see `corbie tasks`", names.len() - MAX_NAMED);
    }
    format!("resuming {tasks}: {named}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resumed_tasks_are_listed_up_to_a_limit() {
        let told = |count: usize| sentence(&vec!["a.pdf".to_owned(); count]);
        assert_eq!(told(1), "resuming 1 interrupted task: a.pdf");
        assert_eq!(told(2), "resuming 2 interrupted tasks: a.pdf, a.pdf");
        assert!(told(MAX_NAMED + 2).ends_with(", a.pdf and 2 more, see `corbie tasks`"), "{}", told(MAX_NAMED + 2));
    }
}
