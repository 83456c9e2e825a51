//! Durable tasks: work that outlives the request and the process.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::document::{BaseName, DocumentId, Millis, id};

id! {
    /// ID of a task, visible to callers.
    TaskId
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// Adds one document.
    Add,
    /// Adds many documents, with a result for each.
    Import,
}

/// A task to store.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTask {
    pub id: TaskId,
    pub base: BaseName,
    /// The caller who requested it.
    pub owner: String,
    pub kind: TaskKind,
    /// Everything needed to run it, also after a restart. Cleared when it ends.
    pub request: Value,
    /// ID of the document it adds, if it adds one.
    pub document: Option<DocumentId>,
    /// Display name.
    pub filename: Option<String>,
    pub format: Option<String>,
    pub size_bytes: Option<u64>,
}

/// A stored task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRecord {
    pub id: TaskId,
    pub base: BaseName,
    pub owner: String,
    pub kind: TaskKind,
    pub request: Value,
    pub document: Option<DocumentId>,
    pub filename: Option<String>,
    pub format: Option<String>,
    pub size_bytes: Option<u64>,
    pub state: TaskState,
    pub created: Millis,
    /// Time of the last start.
    pub started: Option<Millis>,
    pub ended: Option<Millis>,
    pub updated: Millis,
    /// Number of starts since it last stored a document. More than one means that a process died while running it.
    pub attempts: u32,
    /// Instance ID of the process that runs it.
    pub runner: Option<String>,
    /// It is unfinished and no process runs it. The next start resumes it.
    pub interrupted: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TaskState {
    Queued,
    Running(TaskProgress),
    Completed(Value),
    Failed { code: String, message: String },
    Cancelled,
}

/// Number of unfinished tasks of all processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnfinishedTasks {
    pub running: u64,
    pub queued: u64,
}

/// Progress of a running task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskProgress {
    pub step: String,
    pub done: u32,
    pub total: u32,
    /// In thousandths.
    pub permille: u32,
}

/// Outcome of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskEnd {
    pub task: TaskId,
    pub outcome: TaskOutcome,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TaskOutcome {
    Completed(Value),
    Failed { code: String, message: String },
    Cancelled,
}

/// How a write relates to a task. Writes for a task that was cancelled, or adopted by another process, are rejected.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskLink {
    /// The write belongs to no task.
    Standalone,
    /// The task continues afterwards.
    PartOf(TaskId),
    /// The task ends in the same transaction.
    Ends(TaskEnd),
}

// === impl TaskState ===

impl TaskState {
    pub fn is_finished(&self) -> bool {
        matches!(self, TaskState::Completed(_) | TaskState::Failed { .. } | TaskState::Cancelled)
    }

    /// Name on the wire and in the store.
    pub fn name(&self) -> &'static str {
        match self {
            TaskState::Queued => "queued",
            TaskState::Running(_) => "running",
            TaskState::Completed(_) => "completed",
            TaskState::Failed { .. } => "failed",
            TaskState::Cancelled => "cancelled",
        }
    }
}

// === impl TaskEnd ===

impl TaskEnd {
    pub fn completed(task: TaskId, result: Value) -> TaskEnd {
        TaskEnd { task, outcome: TaskOutcome::Completed(result) }
    }

    pub fn failed(task: TaskId, code: &str, message: &str) -> TaskEnd {
        TaskEnd { task, outcome: TaskOutcome::Failed { code: code.to_owned(), message: message.to_owned() } }
    }

    pub fn cancelled(task: TaskId) -> TaskEnd {
        TaskEnd { task, outcome: TaskOutcome::Cancelled }
    }
}
