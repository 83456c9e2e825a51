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

use corbie_mcp::{CallResult, Error as Refusal, MemoryTaskStore, Task, TaskState, TaskStore};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use super::task::{self, TaskId};
use super::{Error, Knowledge, backend, date};
use corbie_util::sanitize::{file_name, without_folders};

/// Task store of the server.
pub struct McpTaskStore {
    knowledge: Knowledge,
    memory_tasks: MemoryTaskStore,
}

impl McpTaskStore {
    pub fn new(knowledge: Knowledge, most: usize) -> McpTaskStore {
        McpTaskStore { knowledge, memory_tasks: MemoryTaskStore::new(most) }
    }

    /// A task of the knowledge base. Opens an existing store that is not open yet: another instance may have returned
    /// the task to its caller, so "not found" would be wrong.
    async fn find_task(&self, id: &str) -> Result<Option<task::TaskRecord>, Refusal> {
        let Ok(id) = id.parse::<TaskId>() else { return Ok(None) };
        if self.knowledge.open_state().is_none() && !backend::exists(self.knowledge.settings()) {
            return Ok(None);
        }
        let open = self.knowledge.open().await?;
        Ok(open.store.task(id).await.map_err(Error::from)?)
    }

    fn to_mcp_task(&self, own: task::TaskRecord) -> Task {
        let keep = self.knowledge.settings().task_retention.get();
        let state = match own.state {
            task::TaskState::Queued | task::TaskState::Running(_) => TaskState::Working,
            task::TaskState::Completed(result) => TaskState::Completed(completed_result(result)),
            task::TaskState::Failed { code, message } => TaskState::Completed(failed_result(&code, &message)),
            task::TaskState::Cancelled => TaskState::Cancelled,
        };
        Task {
            id: own.id.to_string().into(),
            owner: Arc::from(own.owner),
            state,
            created: date::from_millis(own.created),
            updated: date::from_millis(own.updated),
            ttl: keep.max(Duration::from_secs(3600)),
        }
    }
}

impl TaskStore for McpTaskStore {
    fn put<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async move {
            // Knowledge base tasks run without the server, which only cancels them. Tasks of other tools do not depend
            // on the availability of the store.
            if !matches!(task.state, TaskState::Cancelled) || self.memory_tasks.get(&task.id).await?.is_some() {
                return self.memory_tasks.put(task).await;
            }
            let Some(own) = self.find_task(&task.id).await? else { return self.memory_tasks.put(task).await };
            // A task that has ended in the meantime is unchanged. The server reads it again and reports its outcome.
            if let Some(open) = self.knowledge.open_state()
                && open.store.cancel_task(own.id).await.map_err(Error::from)?
            {
                open.scheduler.drop_task(own.id);
            }
            Ok(())
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Task>, Refusal>> {
        Box::pin(async move {
            match self.memory_tasks.get(id).await? {
                Some(other) => Ok(Some(other)),
                None => Ok(self.find_task(id).await?.map(|own| self.to_mcp_task(own))),
            }
        })
    }
}

/// The result that a synchronous call would have returned.
fn completed_result(result: Value) -> Value {
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
fn failed_result(code: &str, message: &str) -> Value {
    let error = Error::Document { code: code.to_owned(), message: without_folders(message) };
    // As for a failing call: the error does not match the tool's output schema, so it is text only.
    let result = CallResult { is_error: true, ..CallResult::text(Value::Object(error.to_json_members()).to_string()) };
    serde_json::to_value(result).unwrap_or_default()
}

impl fmt::Debug for McpTaskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("others", &self.memory_tasks).finish_non_exhaustive()
    }
}
