//! Knowledge base tasks as MCP tasks: the same tasks, shown in both forms (M-21).
//!
//! Tasks of other tools are stored in memory because they do not outlive their process.
//!
//! A [`TaskStore`] does not know the trust level of the caller, and one notification goes to all subscribers of a task.
//! This view therefore shows file names without their folders to every caller. `knowledge-task-status` shows whole
//! paths to trusted callers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use corbie_mcp::{CallResult, Error as Refusal, MemoryTasks, Task, TaskState, TaskStore};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use super::task::{self, TaskId};
use super::{Error, Knowledge, date, kept};
use crate::harmless::{file_name, without_folders};

/// Task store of the server.
pub struct Tasks {
    knowledge: Knowledge,
    others: MemoryTasks,
}

impl Tasks {
    pub fn new(knowledge: Knowledge, most: usize) -> Tasks {
        Tasks { knowledge, others: MemoryTasks::new(most) }
    }

    /// A task of the knowledge base. Opens an existing store that is not open yet: another instance may have returned
    /// the task to its caller, so "not found" would be wrong.
    async fn own(&self, id: &str) -> Result<Option<task::Task>, Refusal> {
        let Ok(id) = id.parse::<TaskId>() else { return Ok(None) };
        if self.knowledge.opened().is_none() && !kept::is_there(self.knowledge.settings()) {
            return Ok(None);
        }
        let open = self.knowledge.open().await?;
        Ok(open.store.task(id).await.map_err(Error::from)?)
    }

    fn shown(&self, own: task::Task) -> Task {
        let keep = self.knowledge.settings().task_retention.get();
        let state = match own.state {
            task::TaskState::Queued | task::TaskState::Running(_) => TaskState::Working,
            task::TaskState::Completed(result) => TaskState::Completed(completed(result)),
            task::TaskState::Failed { code, message } => TaskState::Completed(failed(&code, &message)),
            task::TaskState::Cancelled => TaskState::Cancelled,
        };
        Task {
            id: own.id.to_string().into(),
            owner: Arc::from(own.owner),
            state,
            created: date::time(own.created),
            updated: date::time(own.updated),
            ttl: keep.max(Duration::from_secs(3600)),
        }
    }
}

impl TaskStore for Tasks {
    fn put<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async move {
            // Knowledge base tasks run without the server, which only cancels them. Tasks of other tools do not depend
            // on the availability of the store.
            if !matches!(task.state, TaskState::Cancelled) || self.others.get(&task.id).await?.is_some() {
                return self.others.put(task).await;
            }
            let Some(own) = self.own(&task.id).await? else { return self.others.put(task).await };
            // A task that has ended in the meantime is unchanged. The server reads it again and reports its outcome.
            if let Some(open) = self.knowledge.opened()
                && open.store.cancel_task(own.id).await.map_err(Error::from)?
            {
                open.work.drop_task(own.id);
            }
            Ok(())
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Task>, Refusal>> {
        Box::pin(async move {
            match self.others.get(id).await? {
                Some(other) => Ok(Some(other)),
                None => Ok(self.own(id).await?.map(|own| self.shown(own))),
            }
        })
    }
}

/// The result that a synchronous call would have returned.
fn completed(result: Value) -> Value {
    let mut members = Map::new();
    members.insert("success".into(), true.into());
    if let Value::Object(result) = result {
        members.extend(result);
    }
    hide_folders(&mut members);
    serde_json::to_value(CallResult::json(Value::Object(members))).unwrap_or_default()
}

/// Reduces absolute paths in a result, and in the results of its files, to file names.
pub(super) fn hide_folders(members: &mut Map<String, Value>) {
    for (name, value) in members {
        match (name.as_str(), value) {
            ("file_path", Value::String(path)) => *path = file_name(path).to_owned(),
            ("message" | "warning", Value::String(text)) => *text = without_folders(text),
            ("result", Value::Object(result)) => hide_folders(result),
            ("files", Value::Array(files)) => {
                files.iter_mut().filter_map(Value::as_object_mut).for_each(hide_folders);
            }
            _ => {}
        }
    }
}

/// A tool error is a result too (K-03).
fn failed(code: &str, message: &str) -> Value {
    let error = Error::Document { code: code.to_owned(), message: without_folders(message) };
    // As for a failing call: the error does not match the tool's output schema, so it is text only.
    let result = CallResult { is_error: true, ..CallResult::text(Value::Object(error.members()).to_string()) };
    serde_json::to_value(result).unwrap_or_default()
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("others", &self.others).finish_non_exhaustive()
    }
}
