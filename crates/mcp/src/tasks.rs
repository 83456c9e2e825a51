//! Tasks: work that outlives the call that started it (extension `io.modelcontextprotocol/tasks`).
//!
//! [`TaskStore`] holds the durable state; the one here is in memory, the knowledge base provides a persistent one.
//! Process-local state (the cancellation token, pending client requests) is in [`RunningTask`].

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use indexmap::IndexMap;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, ErrorObject};
use crate::event::Event;
use crate::server::Server;

/// One stored task.
#[derive(Debug, Clone)]
pub struct Task {
    pub id: Arc<str>,
    /// The caller that may see it.
    pub owner: Arc<str>,
    pub state: TaskState,
    pub created: SystemTime,
    pub updated: SystemTime,
    /// How long it can be queried after it ended.
    pub ttl: Duration,
}

#[derive(Debug, Clone)]
pub enum TaskState {
    Working,
    /// Waiting for answers, by key.
    InputRequired(Map<String, Value>),
    /// The result the call would have had; a domain failure of the tool is a result too.
    Completed(Value),
    Failed(ErrorObject),
    Cancelled,
}

/// Storage for tasks: in memory, on disk, or in a database shared by several servers.
///
/// A store may contain external tasks, which handlers refer to with [`Outcome::Task`](crate::ToolOutcome) and which run
/// outside this library. The store reports their changes with [`Server::notify_task_changed`], and is notified of cancellation
/// by a `put` with `Cancelled`.
pub trait TaskStore: Send + Sync + fmt::Debug {
    /// Stores a new or changed task durably; after this returns, `get` finds it, even after a crash.
    ///
    /// An external task may end between the `get` and the `put` of a change: the store then retains the final state and
    /// returns no error. The published state is read again afterwards.
    fn put<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, Result<(), Error>>;
    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Task>, Error>>;
}

/// Striped locks by task id, so that each task changes one step at a time. The number of stripes is fixed; tasks that
/// hash to the same stripe wait for each other.
#[derive(Debug, Default)]
pub(crate) struct TaskLocks([tokio::sync::Mutex<()>; 16]);

impl TaskLocks {
    async fn lock(&self, id: &str) -> tokio::sync::MutexGuard<'_, ()> {
        let sum = id.bytes().fold(0usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        self.0[sum % self.0.len()].lock().await
    }
}

/// In-memory task store, bounded in number and age.
#[derive(Debug)]
pub struct MemoryTaskStore {
    max: usize,
    tasks: Mutex<HashMap<Arc<str>, Task>>,
}

/// A running task of this process.
#[derive(Debug)]
pub(crate) struct RunningTask {
    pub(crate) id: Arc<str>,
    pub(crate) cancel: CancellationToken,
    server: Server,
    /// Pending client requests: the request shown to the client, and the channel for its answer.
    pending: Mutex<IndexMap<String, (Value, oneshot::Sender<Value>)>>,
}

/// Minimum poll interval requested from clients.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

impl TaskState {
    pub fn is_final(&self) -> bool {
        matches!(self, TaskState::Completed(_) | TaskState::Failed(_) | TaskState::Cancelled)
    }

    pub fn as_str(&self) -> &'static str {
        match self {
            TaskState::Working => "working",
            TaskState::InputRequired(_) => "input_required",
            TaskState::Completed(_) => "completed",
            TaskState::Failed(_) => "failed",
            TaskState::Cancelled => "cancelled",
        }
    }
}

impl Task {
    /// The members of every reply about a task.
    pub(crate) fn handle(&self) -> Map<String, Value> {
        let time = |at: SystemTime| humantime::format_rfc3339_millis(at).to_string();
        let members = json!({
            "taskId": self.id,
            "status": self.state.as_str(),
            "createdAt": time(self.created),
            "lastUpdatedAt": time(self.updated),
            "ttlMs": self.ttl.as_millis() as u64,
            "pollIntervalMs": POLL_INTERVAL.as_millis() as u64,
        });
        match members {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }

    /// The reply of `tasks/get`: the handle plus state-specific members.
    pub(crate) fn detailed(&self) -> Map<String, Value> {
        let mut members = self.handle();
        match &self.state {
            TaskState::InputRequired(requests) => members.insert("inputRequests".into(), requests.clone().into()),
            TaskState::Completed(result) => members.insert("result".into(), result.clone()),
            TaskState::Failed(error) => members.insert("error".into(), json!(error)),
            TaskState::Working | TaskState::Cancelled => None,
        };
        members
    }
}

impl MemoryTaskStore {
    pub fn new(max: usize) -> MemoryTaskStore {
        MemoryTaskStore { max, tasks: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Task>> {
        self.tasks.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn store(&self, task: &Task) -> Result<(), Error> {
        let mut tasks = self.lock();
        if !tasks.contains_key(&task.id) && tasks.len() >= self.max {
            let now = SystemTime::now();
            tasks.retain(|_, old| !old.state.is_final() || old.updated + old.ttl > now);
            // Evict the task that ended first: its owner had the most time to query it.
            let oldest = tasks.values().filter(|old| old.state.is_final()).min_by_key(|old| old.updated);
            if tasks.len() >= self.max
                && let Some(oldest) = oldest.map(|old| old.id.clone())
            {
                tasks.remove(&oldest);
            }
            if tasks.len() >= self.max {
                return Err(Error::RateLimited(format!(
                    "too many running tasks (maximum {}); try again when a task has finished",
                    tasks.len()
                )));
            }
        }
        tasks.insert(task.id.clone(), task.clone());
        Ok(())
    }

    fn find(&self, id: &str) -> Option<Task> {
        let mut tasks = self.lock();
        let expired =
            tasks.get(id).is_some_and(|task| task.state.is_final() && task.updated + task.ttl < SystemTime::now());
        if expired {
            tasks.remove(id);
        }
        tasks.get(id).cloned()
    }
}

impl TaskStore for MemoryTaskStore {
    fn put<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(std::future::ready(self.store(task)))
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Task>, Error>> {
        Box::pin(std::future::ready(Ok(self.find(id))))
    }
}

impl RunningTask {
    pub(crate) fn new(id: Arc<str>, server: Server) -> RunningTask {
        RunningTask { id, cancel: CancellationToken::new(), server, pending: Mutex::default() }
    }

    /// Sends a client request and waits; `None` when the task is cancelled or the answer times out.
    pub(crate) async fn request_input(&self, key: &str, request: Value) -> Option<Value> {
        let (answer, answered) = oneshot::channel();
        self.lock().insert(key.to_owned(), (request, answer));
        self.store_pending().await;
        let limit = self.server.limits().client_response_timeout;
        let answer = tokio::select! {
            answer = tokio::time::timeout(limit, answered) => answer.ok()?.ok(),
            () = self.cancel.cancelled() => None,
        };
        if answer.is_none() {
            self.lock().shift_remove(key);
            self.store_pending().await;
        }
        answer
    }

    /// Delivers answers to the waiting requests; ignores unknown keys.
    pub(crate) async fn deliver_answers(&self, answers: Map<String, Value>) {
        let mut changed = false;
        {
            let mut waiting = self.lock();
            for (key, answer) in answers {
                if let Some((_, waiter)) = waiting.shift_remove(&key) {
                    changed = true;
                    let _ = waiter.send(answer);
                }
            }
        }
        if changed {
            self.store_pending().await;
        }
    }

    /// Writes the pending requests, or `working` if there are none, to the task.
    async fn store_pending(&self) {
        let open: Map<String, Value> =
            self.lock().iter().map(|(key, (request, _))| (key.clone(), request.clone())).collect();
        let state = if open.is_empty() { TaskState::Working } else { TaskState::InputRequired(open) };
        self.server.update_task(&self.id, state).await;
    }

    fn lock(&self) -> MutexGuard<'_, IndexMap<String, (Value, oneshot::Sender<Value>)>> {
        self.pending.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Server {
    /// Sets the state of a task; a finished task is left unchanged.
    pub async fn update_task(&self, id: &str, state: TaskState) {
        if let Err(error) = self.set_task_state(id, state).await {
            tracing::error!(task = id, %error, "cannot save task state");
        }
    }

    /// Notifies subscribers of a task change, for stores with external tasks.
    ///
    /// Reads the store, so do not call it while holding a lock that `get` needs.
    pub async fn notify_task_changed(&self, id: &str) {
        match self.publish_task(id).await {
            Ok(_) => {}
            Err(error) => tracing::warn!(task = id, %error, "cannot read task for notification"),
        }
    }

    /// Reads a task after pending changes: a change requested earlier on the same connection is visible.
    pub(crate) async fn task(&self, id: &str) -> Result<Option<Task>, Error> {
        let _turn = self.inner().task_locks.lock(id).await;
        self.task_store().get(id).await
    }

    /// Sets the state and returns the resulting task, if it exists.
    pub(crate) async fn set_task_state(&self, id: &str, state: TaskState) -> Result<Option<Task>, Error> {
        self.set_task_state_if(id, |_| true, state).await
    }

    /// Like [`Server::set_task_state`], for a task that satisfies `is_meant`; otherwise `None`.
    pub(crate) async fn set_task_state_if(
        &self,
        id: &str,
        is_meant: impl FnOnce(&Task) -> bool + Send,
        state: TaskState,
    ) -> Result<Option<Task>, Error> {
        let _turn = self.inner().task_locks.lock(id).await;
        let Some(mut task) = self.task_store().get(id).await?.filter(is_meant) else { return Ok(None) };
        if task.state.is_final() {
            return Ok(Some(task));
        }
        task.state = state;
        task.updated = SystemTime::now();
        self.task_store().put(&task).await?;
        self.publish_task(id).await
    }

    /// Publishes the stored task. Serialized per task, so that no subscriber gets `working` after `completed`.
    async fn publish_task(&self, id: &str) -> Result<Option<Task>, Error> {
        let _turn = self.inner().task_publish_locks.lock(id).await;
        let task = self.task_store().get(id).await?;
        if let Some(task) = &task {
            let shown = Arc::new(Value::Object(task.detailed()));
            self.publish(Event::TaskChanged { id: task.id.clone(), owner: task.owner.clone(), task: shown });
        }
        Ok(task)
    }
}
