//! Work on a knowledge base that outlives the call that asked for it, and the process too.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::document::{BaseName, DocumentId, Millis, id};

id! {
    /// A task, for callers.
    TaskId
}

/// What a task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// One document.
    Add,
    /// Many, each with its own result.
    Import,
}

/// A task to keep.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTask {
    pub id: TaskId,
    pub base: BaseName,
    /// Who asked for it.
    pub owner: String,
    pub kind: TaskKind,
    /// All that is needed to do it, also after a restart. Emptied when it ends.
    pub request: Value,
    /// The id its document will have, where it is about one.
    pub document: Option<DocumentId>,
    /// What it is about, for people.
    pub filename: Option<String>,
    pub format: Option<String>,
    pub size_bytes: Option<u64>,
}

/// A task as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
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
    /// When it was last begun.
    pub started: Option<Millis>,
    pub ended: Option<Millis>,
    pub updated: Millis,
    /// How often it was begun since it last stored a document. More than once means that a process ended while it was at it.
    pub attempts: u32,
    /// The process that has it, by its instance.
    pub runner: Option<String>,
    /// It is not finished, and no process has it: the next one that starts goes on with it.
    pub interrupted: bool,
}

/// Where a task stands.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskState {
    Queued,
    Running(Progress),
    Completed(Value),
    Failed { code: String, message: String },
    Cancelled,
}

/// How many tasks are not finished, of all processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unfinished {
    pub running: u64,
    pub queued: u64,
}

/// How far a running task is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    pub step: String,
    pub done: u32,
    pub total: u32,
    /// Of the whole, in thousandths.
    pub share: u32,
}

/// The end of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskEnd {
    pub task: TaskId,
    pub outcome: Outcome,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Completed(Value),
    Failed { code: String, message: String },
    Cancelled,
}

/// What a write has to do with a task. A task that was cancelled, or that another process has taken over, writes nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Nothing.
    Alone,
    /// The task goes on afterwards.
    PartOf(TaskId),
    /// The task ends with it, in the same transaction.
    Ends(TaskEnd),
}

// === impl TaskState ===

impl TaskState {
    pub fn is_finished(&self) -> bool {
        matches!(self, TaskState::Completed(_) | TaskState::Failed { .. } | TaskState::Cancelled)
    }

    /// The word for it on the wire and on the disk.
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
        TaskEnd { task, outcome: Outcome::Completed(result) }
    }

    pub fn failed(task: TaskId, code: &str, message: &str) -> TaskEnd {
        TaskEnd { task, outcome: Outcome::Failed { code: code.to_owned(), message: message.to_owned() } }
    }

    pub fn cancelled(task: TaskId) -> TaskEnd {
        TaskEnd { task, outcome: Outcome::Cancelled }
    }
}
