//! Tasks and their ownership. A task belongs to the process that accepted it; when that process ends, another process
//! adopts it.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use super::{Error, Store};
use crate::document::{BaseName, DocumentId, Millis};
use crate::task::{NewTask, TaskEnd, TaskId, TaskProgress, TaskRecord, UnfinishedTasks};

/// Query for a list of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskListQuery {
    /// The bases to list tasks of.
    pub bases: Vec<BaseName>,
    /// List only tasks of this caller.
    pub owner: Option<String>,
    /// List only tasks in these states; all if empty.
    pub states: Vec<&'static str>,
    pub limit: u32,
}

/// States of an unfinished task.
pub const ACTIVE_STATES: [&str; 2] = ["queued", "running"];

/// Ownership and state of a task, from the view of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskOwnership {
    /// Unfinished, and owned by this process.
    Own,
    /// Unfinished, and owned by another process or by none.
    Other,
    Cancelled,
    /// Completed or failed.
    Ended,
}

impl TaskOwnership {
    pub(super) fn of(state: &str, is_ours: bool) -> TaskOwnership {
        match state {
            "cancelled" => TaskOwnership::Cancelled,
            "queued" | "running" if is_ours => TaskOwnership::Own,
            "queued" | "running" => TaskOwnership::Other,
            _ => TaskOwnership::Ended,
        }
    }
}

/// Upload paths that tasks reference.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UploadRefs {
    /// Uploads of unfinished tasks.
    pub pending: HashSet<String>,
    /// Uploads of completed or cancelled tasks.
    pub finished: HashSet<String>,
}

/// A file that came with a request, stored for all instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredUpload {
    /// Its key.
    pub folder: String,
    pub size: u64,
    pub age: Duration,
}

impl Store {
    /// Adds a task that this process will run.
    pub async fn add_task(&self, task: &NewTask) -> Result<(), Error> {
        each!(self, store => store.add_task(task).await)
    }

    pub async fn task(&self, id: TaskId) -> Result<Option<TaskRecord>, Error> {
        each!(self, store => store.task(id).await)
    }

    /// Returns the ownership of several tasks with one query. Removed tasks are omitted.
    pub async fn task_ownership(&self, ids: &[TaskId]) -> Result<HashMap<TaskId, TaskOwnership>, Error> {
        each!(self, store => store.task_ownership(ids).await)
    }

    /// The latest tasks of one base or of all, newest first.
    pub async fn tasks(&self, base: Option<&BaseName>, limit: u32) -> Result<Vec<TaskRecord>, Error> {
        each!(self, store => store.tasks(base, limit).await)
    }

    /// Tasks, newest first, with an empty `request` and without the files of their results. Of the failures to add a file
    /// only the last is listed, and none after a later success.
    pub async fn latest_tasks(&self, list: TaskListQuery) -> Result<Vec<TaskRecord>, Error> {
        each!(self, store => store.latest_tasks(list).await)
    }

    /// Number of running tasks (in any process) and of queued tasks.
    pub async fn unfinished_tasks(&self) -> Result<UnfinishedTasks, Error> {
        each!(self, store => store.unfinished_tasks().await)
    }

    /// The last task for a document, if it is still retained. Completed and cancelled tasks are not considered.
    pub async fn task_of_document(&self, base: &BaseName, id: DocumentId) -> Result<Option<TaskRecord>, Error> {
        each!(self, store => store.task_of_document(base, id).await)
    }

    /// Cancels a task. If it has failed, it is no longer listed.
    pub async fn dismiss_task(&self, id: TaskId) -> Result<(), Error> {
        each!(self, store => store.dismiss_task(id).await)
    }

    /// Starts a task of this process. Returns false if it cannot start: it was cancelled, or another process owns it.
    pub async fn start_task(&self, id: TaskId) -> Result<bool, Error> {
        each!(self, store => store.start_task(id).await)
    }

    /// Records the progress of a running task of this process. Each call is a write, so callers should throttle it.
    pub async fn record_progress(&self, id: TaskId, progress: TaskProgress) -> Result<bool, Error> {
        each!(self, store => store.record_progress(id, progress).await)
    }

    /// Ends a task of this process; any process may cancel a task. Returns false if the task has already ended, does
    /// not exist, or belongs to another process.
    pub async fn end_task(&self, end: TaskEnd) -> Result<bool, Error> {
        each!(self, store => store.end_task(end).await)
    }

    /// Cancels a task in any process. Returns false if it has already ended or does not exist.
    pub async fn cancel_task(&self, id: TaskId) -> Result<bool, Error> {
        each!(self, store => store.cancel_task(id).await)
    }

    /// Adopts the unfinished tasks of dead processes and queues them for this process, oldest first. One transaction,
    /// so no two processes adopt the same task.
    pub async fn adopt_orphaned_tasks(&self) -> Result<Vec<TaskRecord>, Error> {
        each!(self, store => store.adopt_orphaned_tasks().await)
    }

    /// Releases the unfinished tasks of this process for adoption. This is an orderly shutdown, so it does not count
    /// as a failed attempt of the task.
    pub async fn release_tasks(&self) -> Result<u64, Error> {
        each!(self, store => store.release_tasks().await)
    }

    /// Deletes tasks that ended longer ago than `keep`, and at least an hour ago; younger ones only if there are too
    /// many. Returns the number of deleted tasks.
    pub async fn prune_tasks(&self, now: Millis, keep: Duration) -> Result<u64, Error> {
        each!(self, store => store.prune_tasks(now, keep).await)
    }

    /// The documents that an unfinished import has stored, and whether each replaced an existing document.
    pub async fn import_checkpoint(&self, task: TaskId) -> Result<HashMap<DocumentId, bool>, Error> {
        each!(self, store => store.import_checkpoint(task).await)
    }

    /// Stores an uploaded file under its folder name, where every instance can read it. In a store that is local to one
    /// machine the file is not moved.
    pub async fn store_upload(&self, folder: &str, path: &Path) -> Result<(), Error> {
        each!(self, store => store.store_upload(folder, path).await)
    }

    /// Writes a stored upload to a path that does not exist yet. Returns false if there is no such upload.
    pub async fn fetch_upload(&self, folder: &str, to: &Path) -> Result<bool, Error> {
        each!(self, store => store.fetch_upload(folder, to).await)
    }

    /// Deletes a stored upload. It may already be deleted.
    pub async fn delete_upload(&self, folder: &str) -> Result<(), Error> {
        each!(self, store => store.delete_upload(folder).await)
    }

    /// Lists all stored uploads.
    pub async fn stored_uploads(&self) -> Result<Vec<StoredUpload>, Error> {
        each!(self, store => store.stored_uploads().await)
    }

    /// The uploads that tasks reference.
    pub async fn upload_refs(&self) -> Result<UploadRefs, Error> {
        each!(self, store => store.upload_refs().await)
    }
}
