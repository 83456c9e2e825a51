//! Tasks: work that outlives the call that started it (extension `io.modelcontextprotocol/tasks`).
//!
//! [`TaskStore`] keeps what must survive; here it is memory, the knowledge base brings a durable one. What only a
//! living process has (the way to cancel, the questions being waited on) is kept beside it, in [`RunningTask`].

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

/// One task as the store keeps it.
#[derive(Debug, Clone)]
pub struct Task {
    pub id: Arc<str>,
    /// Who may see it.
    pub owner: Arc<str>,
    pub state: TaskState,
    pub created: SystemTime,
    pub updated: SystemTime,
    /// How long it can be asked for after it ended.
    pub ttl: Duration,
}

#[derive(Debug, Clone)]
pub enum TaskState {
    Working,
    /// Waiting for answers, by key.
    InputRequired(Map<String, Value>),
    /// The result the call would have had; a tool's own failure is a result too.
    Completed(Value),
    Failed(ErrorObject),
    Cancelled,
}

/// Where tasks are kept: in memory, on a disk, or in a database that other servers share.
///
/// A store may have tasks of its own, which handlers name with [`Outcome::Task`](crate::Outcome) and which go on without
/// this library. It tells of their changes with [`Server::task_changed`], and hears in `put` that one is `Cancelled`.
pub trait TaskStore: Send + Sync + fmt::Debug {
    /// Keeps a task, new or changed; when this returns, `get` finds it, whatever happens to the process.
    ///
    /// Between the `get` and the `put` of a change, a task of the store's own may end: the store then keeps that end and
    /// gives no error. What is told afterwards is read anew.
    fn put<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, Result<(), Error>>;
    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Task>, Error>>;
}

/// Turns at tasks, so that each moves one step at a time. Few enough to be made beforehand; tasks that share one by chance
/// wait for each other.
#[derive(Debug, Default)]
pub(crate) struct Turns([tokio::sync::Mutex<()>; 16]);

impl Turns {
    async fn take(&self, id: &str) -> tokio::sync::MutexGuard<'_, ()> {
        let sum = id.bytes().fold(0usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        self.0[sum % self.0.len()].lock().await
    }
}

/// Tasks in memory, bounded in number and age.
#[derive(Debug)]
pub struct MemoryTasks {
    max: usize,
    tasks: Mutex<HashMap<Arc<str>, Task>>,
}

/// A task of this process that has not ended.
#[derive(Debug)]
pub(crate) struct RunningTask {
    pub(crate) id: Arc<str>,
    pub(crate) cancel: CancellationToken,
    server: Server,
    /// Questions put and not answered: the request shown to the client, and who waits.
    waiting: Mutex<IndexMap<String, (Value, oneshot::Sender<Value>)>>,
}

/// Clients are asked not to poll faster than this.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

impl TaskState {
    pub fn is_final(&self) -> bool {
        matches!(self, TaskState::Completed(_) | TaskState::Failed(_) | TaskState::Cancelled)
    }

    pub fn word(&self) -> &'static str {
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
    /// The members of every answer about a task.
    pub(crate) fn handle(&self) -> Map<String, Value> {
        let time = |at: SystemTime| humantime::format_rfc3339_millis(at).to_string();
        let members = json!({
            "taskId": self.id,
            "status": self.state.word(),
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

    /// The answer of `tasks/get`: the handle, and what the state brings with it.
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

impl MemoryTasks {
    pub fn new(max: usize) -> MemoryTasks {
        MemoryTasks { max, tasks: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Task>> {
        self.tasks.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn keep(&self, task: &Task) -> Result<(), Error> {
        let mut tasks = self.lock();
        if !tasks.contains_key(&task.id) && tasks.len() >= self.max {
            let now = SystemTime::now();
            tasks.retain(|_, old| !old.state.is_final() || old.updated + old.ttl > now);
            // What ended longest ago makes room: whoever wanted it has had the longest time to ask.
            let oldest = tasks.values().filter(|old| old.state.is_final()).min_by_key(|old| old.updated);
            if tasks.len() >= self.max
                && let Some(oldest) = oldest.map(|old| old.id.clone())
            {
                tasks.remove(&oldest);
            }
            if tasks.len() >= self.max {
                return Err(Error::RateLimited(format!(
                    "{} tasks are running, and no more can be; try again when some have ended",
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

impl TaskStore for MemoryTasks {
    fn put<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(std::future::ready(self.keep(task)))
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Task>, Error>> {
        Box::pin(std::future::ready(Ok(self.find(id))))
    }
}

impl RunningTask {
    pub(crate) fn new(id: Arc<str>, server: Server) -> RunningTask {
        RunningTask { id, cancel: CancellationToken::new(), server, waiting: Mutex::default() }
    }

    /// Puts a question and waits; `None` when the task is cancelled or nobody answers in time.
    pub(crate) async fn ask(&self, key: &str, request: Value) -> Option<Value> {
        let (answer, answered) = oneshot::channel();
        self.lock().insert(key.to_owned(), (request, answer));
        self.show_waiting().await;
        let limit = self.server.limits().ask_timeout;
        let answer = tokio::select! {
            answer = tokio::time::timeout(limit, answered) => answer.ok()?.ok(),
            () = self.cancel.cancelled() => None,
        };
        if answer.is_none() {
            self.lock().shift_remove(key);
            self.show_waiting().await;
        }
        answer
    }

    /// Hands answers to those who wait; keys nobody asked for are ignored.
    pub(crate) async fn answer(&self, answers: Map<String, Value>) {
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
            self.show_waiting().await;
        }
    }

    /// Writes the open questions, or that there are none, into the task.
    async fn show_waiting(&self) {
        let open: Map<String, Value> =
            self.lock().iter().map(|(key, (request, _))| (key.clone(), request.clone())).collect();
        let state = if open.is_empty() { TaskState::Working } else { TaskState::InputRequired(open) };
        self.server.update_task(&self.id, state).await;
    }

    fn lock(&self) -> MutexGuard<'_, IndexMap<String, (Value, oneshot::Sender<Value>)>> {
        self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Server {
    /// Moves a task on; a task that has ended stays as it is.
    pub async fn update_task(&self, id: &str, state: TaskState) {
        if let Err(error) = self.move_task(id, state).await {
            tracing::error!(task = id, %error, "task state could not be kept");
        }
    }

    /// Tells those who listen what has become of a task, for stores whose tasks move by themselves.
    ///
    /// Reads the store, so it is not to be called while a lock is held that `get` needs.
    pub async fn task_changed(&self, id: &str) {
        match self.tell_task(id).await {
            Ok(_) => {}
            Err(error) => tracing::warn!(task = id, %error, "news of a task could not be read"),
        }
    }

    /// A task once nothing is about to move it: whoever asked for a change before, on the same line, finds it made.
    pub(crate) async fn task(&self, id: &str) -> Result<Option<Task>, Error> {
        let _turn = self.inner().task_turns.take(id).await;
        self.task_store().get(id).await
    }

    /// Gives the task as it is afterwards, if there is one.
    pub(crate) async fn move_task(&self, id: &str, state: TaskState) -> Result<Option<Task>, Error> {
        self.move_task_if(id, |_| true, state).await
    }

    /// The same for a task that something holds for; another one is as good as none.
    pub(crate) async fn move_task_if(
        &self,
        id: &str,
        is_meant: impl FnOnce(&Task) -> bool + Send,
        state: TaskState,
    ) -> Result<Option<Task>, Error> {
        let _turn = self.inner().task_turns.take(id).await;
        let Some(mut task) = self.task_store().get(id).await?.filter(is_meant) else { return Ok(None) };
        if task.state.is_final() {
            return Ok(Some(task));
        }
        task.state = state;
        task.updated = SystemTime::now();
        self.task_store().put(&task).await?;
        self.tell_task(id).await
    }

    /// Publishes a task as its store has it. One at a time, so that nobody is told `working` after `completed`.
    async fn tell_task(&self, id: &str) -> Result<Option<Task>, Error> {
        let _turn = self.inner().task_news.take(id).await;
        let task = self.task_store().get(id).await?;
        if let Some(task) = &task {
            let shown = Arc::new(Value::Object(task.detailed()));
            self.publish(Event::TaskChanged { id: task.id.clone(), owner: task.owner.clone(), task: shown });
        }
        Ok(task)
    }
}
