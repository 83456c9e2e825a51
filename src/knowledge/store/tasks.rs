//! Tasks, and whose they are: a task belongs to the process that took it on, and when that has ended, to who adopts it.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use super::{Error, Store};
use crate::knowledge::document::{BaseName, DocumentId, Millis};
use crate::knowledge::task::{NewTask, Progress, Task, TaskEnd, TaskId, Unfinished};

/// Which tasks are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskList {
    /// The bases whose tasks are.
    pub bases: Vec<BaseName>,
    /// Only those that have not ended.
    pub active: bool,
    pub limit: u32,
}

/// What became of a task that a process has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// It has not ended, and is this process's.
    Ours,
    /// It has not ended, and is somebody else's, or nobody's.
    Others,
    Cancelled,
    /// It was completed, or has failed.
    Ended,
}

impl Whose {
    pub(super) fn of(state: &str, is_ours: bool) -> Whose {
        match state {
            "cancelled" => Whose::Cancelled,
            "queued" | "running" if is_ours => Whose::Ours,
            "queued" | "running" => Whose::Others,
            _ => Whose::Ended,
        }
    }
}

/// Paths of uploads, as their tasks have them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uploads {
    /// Those of tasks that are not finished.
    pub wanted: HashSet<String>,
    /// Those of tasks that were completed or cancelled.
    pub done: HashSet<String>,
}

/// A file that came with a request, kept for every instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptUpload {
    /// What it is known by.
    pub folder: String,
    pub size: u64,
    pub age: Duration,
}

impl Store {
    /// Takes on a task; this process is to do it.
    pub async fn add_task(&self, task: &NewTask) -> Result<(), Error> {
        each!(self, store => store.add_task(task).await)
    }

    pub async fn task(&self, id: TaskId) -> Result<Option<Task>, Error> {
        each!(self, store => store.task(id).await)
    }

    /// What became of tasks, asked for all of them at once. Those that are gone are left out.
    pub async fn whose_tasks(&self, ids: &[TaskId]) -> Result<HashMap<TaskId, Whose>, Error> {
        each!(self, store => store.whose_tasks(ids).await)
    }

    /// The latest tasks, of one base or of all, the last one first.
    pub async fn tasks(&self, base: Option<&BaseName>, limit: u32) -> Result<Vec<Task>, Error> {
        each!(self, store => store.tasks(base, limit).await)
    }

    /// Tasks, the last one first, with an empty `request` and without the files of their results.
    pub async fn latest_tasks(&self, list: TaskList) -> Result<Vec<Task>, Error> {
        each!(self, store => store.latest_tasks(list).await)
    }

    /// How many tasks are being worked on, by whatever process, and how many wait.
    pub async fn unfinished_tasks(&self) -> Result<Unfinished, Error> {
        each!(self, store => store.unfinished_tasks().await)
    }

    /// The last task that was to bring a document, if it is not forgotten; one that did, or was cancelled, is not meant.
    pub async fn task_of_document(&self, base: &BaseName, id: DocumentId) -> Result<Option<Task>, Error> {
        each!(self, store => store.task_of_document(base, id).await)
    }

    /// Cancels a task; where it has failed, its document is not listed any more.
    pub async fn dismiss_task(&self, id: TaskId) -> Result<(), Error> {
        each!(self, store => store.dismiss_task(id).await)
    }

    /// Begins a task of this process. False if it is not there to be begun: cancelled, or with somebody else.
    pub async fn start_task(&self, id: TaskId) -> Result<bool, Error> {
        each!(self, store => store.start_task(id).await)
    }

    /// Tells how far a running task of this process is. Each call is a write; now and then is enough.
    pub async fn note_progress(&self, id: TaskId, progress: Progress) -> Result<bool, Error> {
        each!(self, store => store.note_progress(id, progress).await)
    }

    /// Ends a task of this process; everybody may cancel one. False if it has ended already, is not there, or is with
    /// somebody else.
    pub async fn end_task(&self, end: TaskEnd) -> Result<bool, Error> {
        each!(self, store => store.end_task(end).await)
    }

    /// Cancels a task, whoever runs it. False if it has ended already, or is not there.
    pub async fn cancel_task(&self, id: TaskId) -> Result<bool, Error> {
        each!(self, store => store.cancel_task(id).await)
    }

    /// Adopts the unfinished tasks of processes that have ended; they wait again, now for this process. In one transaction,
    /// so that no two processes get the same one. The oldest first.
    pub async fn orphaned_tasks(&self) -> Result<Vec<Task>, Error> {
        each!(self, store => store.orphaned_tasks().await)
    }

    /// Hands the unfinished tasks of this process back, for others to adopt: it ends in order, so the task is not to blame
    /// for not being done.
    pub async fn hand_back_tasks(&self) -> Result<u64, Error> {
        each!(self, store => store.hand_back_tasks().await)
    }

    /// Forgets tasks that ended longer ago than `keep`, and at least an hour; younger ones only if there are too many. Tells
    /// how many.
    pub async fn prune_tasks(&self, now: Millis, keep: Duration) -> Result<u64, Error> {
        each!(self, store => store.prune_tasks(now, keep).await)
    }

    /// The documents that an unfinished import has stored, and whether they took the place of others.
    pub async fn imported(&self, task: TaskId) -> Result<HashMap<DocumentId, bool>, Error> {
        each!(self, store => store.imported(task).await)
    }

    /// Keeps a file that came with a request where every instance finds it, by the name of its folder. Where nobody else
    /// could, it stays where it is.
    pub async fn keep_upload(&self, folder: &str, path: &Path) -> Result<(), Error> {
        each!(self, store => store.keep_upload(folder, path).await)
    }

    /// Writes such a file to a path where there is none. False if none is kept.
    pub async fn bring_upload(&self, folder: &str, to: &Path) -> Result<bool, Error> {
        each!(self, store => store.bring_upload(folder, to).await)
    }

    /// Forgets such a file. It may be gone already.
    pub async fn drop_upload(&self, folder: &str) -> Result<(), Error> {
        each!(self, store => store.drop_upload(folder).await)
    }

    /// All that are kept so.
    pub async fn kept_uploads(&self) -> Result<Vec<KeptUpload>, Error> {
        each!(self, store => store.kept_uploads().await)
    }

    /// The uploads that tasks name.
    pub async fn uploads(&self) -> Result<Uploads, Error> {
        each!(self, store => store.uploads().await)
    }
}
