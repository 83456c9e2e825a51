//! Reports interrupted tasks that this process resumes.
//!
//! A process that opens the storage adopts the tasks of terminated processes. The message explains why more documents
//! are being added than the user requested.

use std::io::Write;

use serde_json::Value;

use super::failure::Failure;
use super::peer::Peer;
use super::tasks::what;
use crate::cli::one_line;
use crate::knowledge::Error;
use crate::knowledge::task::{Task, TaskState};

/// Maximum number of tasks in the message; `corbie tasks` lists all.
const MOST_NAMED: usize = 5;

/// Only if this process opened the storage: the tasks of a server are not resumed here.
pub(super) async fn tell(peer: &Peer) -> Result<(), Failure> {
    let Peer::Own(app) = peer else { return Ok(()) };
    let Some(knowledge) = &app.knowledge else { return Ok(()) };
    let failed = |error: Error| Failure::Tool(Value::Object(error.members()));
    let store = &knowledge.open().await.map_err(failed)?.store;
    let tasks = store.tasks(None, u32::MAX).await.map_err(|error| failed(error.into()))?;
    // This process has not created a task yet, so its tasks are adopted ones. Failed tasks are not resumed.
    let is_ours = |task: &&Task| {
        task.runner.as_deref() == Some(store.instance()) && !matches!(task.state, TaskState::Failed { .. })
    };
    let names: Vec<String> = tasks.iter().filter(is_ours).map(|task| one_line(&what(task))).collect();
    if !names.is_empty() {
        // If stderr is closed, the command continues.
        let _ = writeln!(std::io::stderr(), "corbie: {}", sentence(&names));
    }
    Ok(())
}

fn sentence(names: &[String]) -> String {
    let tasks = match names.len() {
        1 => "1 task that was interrupted".to_owned(),
        count => format!("{count} tasks that were interrupted"),
    };
    let mut named = names.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > MOST_NAMED {
        named += &format!(" and {} more, see `corbie tasks`", names.len() - MOST_NAMED);
    }
    format!("going on with {tasks}: {named}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_tasks_are_named() {
        let told = |count: usize| sentence(&vec!["a.pdf".to_owned(); count]);
        assert_eq!(told(1), "going on with 1 task that was interrupted: a.pdf");
        assert_eq!(told(2), "going on with 2 tasks that were interrupted: a.pdf, a.pdf");
        assert!(told(MOST_NAMED + 2).ends_with(", a.pdf and 2 more, see `corbie tasks`"), "{}", told(MOST_NAMED + 2));
    }
}
