//! Tasks of an application-defined store: started by a handler, updated by the store, and visible to clients like any
//! other.

mod fixture;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use corbie_mcp::transport::http::Options;
use corbie_mcp::{
    Arguments, CallResult, Context, Error, MemoryTaskStore, Server, Task, TaskState, TaskStore, TaskSupport, Tool,
    ToolOutcome, TrustLevel,
};
use fixture::peer::{self, EventStream, Stdio, TestTransport, call, modern, request, request_over_stdio, text_of};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

/// A store with background work. It records the states it has to store.
#[derive(Debug)]
struct Jobs {
    tasks: MemoryTaskStore,
    received: Mutex<Vec<&'static str>>,
    /// The work ends just before the next change is stored.
    ends_first: AtomicBool,
    refuses: AtomicBool,
}

impl Jobs {
    fn new() -> Arc<Jobs> {
        let (ends_first, refuses) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Jobs { tasks: MemoryTaskStore::new(10), received: Mutex::default(), ends_first, refuses })
    }

    fn received(&self) -> Vec<&'static str> {
        self.received.lock().expect("unpoisoned").clone()
    }

    /// The store's work starts or changes state.
    fn set(&self, id: &str, owner: &str, state: TaskState) {
        let now = SystemTime::now();
        let ttl = Duration::from_secs(60);
        let task = Task { id: id.into(), owner: owner.into(), state, created: now, updated: now, ttl };
        self.tasks.put(&task).now_or_never().expect("memory does not wait").expect("room");
    }
}

impl TaskStore for Jobs {
    fn put<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            // Simulates an asynchronous store.
            tokio::task::yield_now().await;
            if self.refuses.load(Ordering::SeqCst) {
                return Err(Error::internal("the disk is full", "ENOSPC"));
            }
            self.received.lock().expect("unpoisoned").push(task.state.as_str());
            if self.ends_first.load(Ordering::SeqCst) {
                self.set(&task.id, &task.owner, done());
                return Ok(());
            }
            self.tasks.put(task).await
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Task>, Error>> {
        self.tasks.get(id)
    }
}

fn done() -> TaskState {
    TaskState::Completed(json!({ "content": [{ "type": "text", "text": "read" }], "isError": false }))
}

/// A server whose tool `add` starts the task `job-1` in the store, with this task support.
fn server_with(jobs: &Arc<Jobs>, support: TaskSupport) -> Server {
    let begins = jobs.clone();
    let add = Tool::builder("add").task_support(support).no_input().run(move |context: Context, _: Arguments| {
        begins.set("job-1", &context.caller().identity, TaskState::Working);
        let otherwise = CallResult::json(json!({ "task_id": "job-1" }));
        std::future::ready(ToolOutcome::Task { id: "job-1".into(), otherwise })
    });
    let stranger = jobs.clone();
    let other = Tool::builder("other").task_support(TaskSupport::External).no_input().run(move |_, _: Arguments| {
        stranger.set("job-2", "somebody else", TaskState::Working);
        std::future::ready(ToolOutcome::Task { id: "job-2".into(), otherwise: CallResult::text("joined") })
    });
    let lost = Tool::builder("lost")
        .task_support(TaskSupport::External)
        .no_input()
        .run(async |_, _: Arguments| ToolOutcome::Task { id: "nowhere".into(), otherwise: CallResult::text("begun") });
    let tools = Server::builder("s", "1").tool(add).tool(other).tool(lost);
    tools.task_store(jobs.clone()).build().expect("valid")
}

fn server(jobs: &Arc<Jobs>) -> Server {
    server_with(jobs, TaskSupport::External)
}

fn with_tasks(id: i64, method: &str, params: Value) -> Value {
    modern(id, method, params, json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } }))
}

fn named(method: &str) -> Value {
    with_tasks(2, method, json!({ "taskId": "job-1" }))
}

fn start() -> Value {
    with_tasks(1, "tools/call", json!({ "name": "add" }))
}

fn cancel() -> Value {
    request(3, "tools/cancel", json!({ "taskId": "job-1" }))
}

#[tokio::test]
async fn m21_a_client_that_knows_tasks_gets_the_handle_of_the_handlers_own_task() {
    let jobs = Jobs::new();
    let server = server(&jobs);
    let begun = request_over_stdio(&server, &start()).await["result"].take();
    assert_eq!((&begun["resultType"], &begun["taskId"]), (&json!("task"), &json!("job-1")), "{begun}");
    assert_eq!((&begun["status"], begun.get("content")), (&json!("working"), None), "{begun}");
    assert_eq!(request_over_stdio(&server, &named("tasks/get")).await["result"]["status"], "working");
    jobs.set("job-1", "stdio", done());
    let task = request_over_stdio(&server, &named("tasks/get")).await["result"].take();
    assert_eq!((&task["status"], &task["result"]["content"][0]["text"]), (&json!("completed"), &json!("read")));
    assert_eq!(jobs.received(), [] as [&str; 0], "the library made no task and changed none");
    assert_eq!(server.registry().find("add").expect("known").stats().summary()["calls"], 1);
}

#[tokio::test]
async fn m21_everyone_else_gets_the_plain_answer() {
    let server = server(&Jobs::new());
    for way in TestTransport::ALL {
        let answer = way.request(&server, TrustLevel::Trusted, &call(1, "add", json!({}))).await;
        assert_eq!(text_of(&answer), r#"{"task_id":"job-1"}"#, "{way:?}");
    }
    let unaware = request_over_stdio(&server, &modern(1, "tools/call", json!({ "name": "add" }), json!({}))).await;
    assert_eq!((&unaware["result"]["resultType"], text_of(&unaware)), (&json!("complete"), r#"{"task_id":"job-1"}"#));
}

#[tokio::test]
async fn m21_a_handle_that_its_caller_could_not_look_up_is_not_given() {
    let server = server(&Jobs::new());
    for (tool, plain) in [("other", "joined"), ("lost", "begun")] {
        let answer = request_over_stdio(&server, &with_tasks(1, "tools/call", json!({ "name": tool }))).await;
        assert_eq!((&answer["result"]["resultType"], text_of(&answer)), (&json!("complete"), plain));
    }
}

#[tokio::test]
async fn m21_a_tool_that_was_not_declared_so_gives_no_handle_of_its_own() {
    let jobs = Jobs::new();
    let answer = request_over_stdio(&server_with(&jobs, TaskSupport::Never), &start()).await;
    assert_eq!(answer["result"]["resultType"], "complete");
    // Here the library runs the whole call as a task, and the plain answer is its result.
    let begun = request_over_stdio(&server_with(&jobs, TaskSupport::Optional), &start()).await;
    assert_eq!(begun["result"]["resultType"], "task");
    assert_ne!(begun["result"]["taskId"], "job-1");
}

#[tokio::test]
async fn m21_m28_k117_x08_the_store_hears_of_a_cancellation_in_any_of_three_ways() {
    let silent = json!({ "jsonrpc": "2.0", "method": "tools/cancel", "params": { "taskId": "job-1" } });
    let told = json!({ "success": true, "taskId": "job-1", "status": "cancelled" });
    for (cancel, answered) in [(named("tasks/cancel"), None), (cancel(), Some(told)), (silent, None)] {
        let jobs = Jobs::new();
        let mut peer = Stdio::start(&server(&jobs), TrustLevel::Trusted);
        peer.call(&start()).await;
        peer.send(&cancel.to_string()).await;
        if cancel.get("id").is_some() {
            let answer = peer.receive().await;
            assert!(answer["result"].is_object(), "{answer}");
            assert_eq!(answered.as_ref().unwrap_or(&answer["result"]), &answer["result"], "{cancel}");
        }
        assert_eq!(peer.call(&named("tasks/get")).await["result"]["status"], "cancelled", "{cancel}");
        assert_eq!(jobs.received(), ["cancelled"], "{cancel}");
    }
}

#[tokio::test]
async fn m28_k117_a_task_that_ends_while_it_is_being_cancelled_stays_ended() {
    let jobs = Jobs::new();
    let server = server(&jobs);
    request_over_stdio(&server, &start()).await;
    jobs.ends_first.store(true, Ordering::SeqCst);
    let late = request_over_stdio(&server, &cancel()).await;
    assert_eq!(late["error"]["code"], -32602, "{late}");
    assert_eq!(request_over_stdio(&server, &named("tasks/get")).await["result"]["status"], "completed");
    let over = request_over_stdio(&server, &named("tasks/cancel")).await;
    assert!(over["result"].is_object(), "the wish is acknowledged all the same: {over}");
    assert_eq!(jobs.received(), ["cancelled"], "what has ended is not put again");
}

#[tokio::test]
async fn m28_k117_a_cancellation_that_the_store_refuses_is_not_called_a_success() {
    let jobs = Jobs::new();
    let server = server(&jobs);
    request_over_stdio(&server, &start()).await;
    jobs.refuses.store(true, Ordering::SeqCst);
    for cancel in [cancel(), named("tasks/cancel")] {
        let refused = request_over_stdio(&server, &cancel).await;
        assert_eq!(refused["error"]["code"], -32603, "{refused}");
    }
    assert_eq!(request_over_stdio(&server, &named("tasks/get")).await["result"]["status"], "working");
}

#[tokio::test]
async fn m28_k117_a_cancellation_by_another_caller_does_not_reach_the_store() {
    let jobs = Jobs::new();
    let server = server(&jobs);
    request_over_stdio(&server, &start()).await;
    let other = TestTransport::Http.request(&server, TrustLevel::Trusted, &cancel()).await;
    assert_eq!(other["error"]["code"], -32602, "{other}");
    assert_eq!(jobs.received(), [] as [&str; 0]);
}

#[tokio::test]
async fn m21_x43_listeners_are_told_what_the_store_says_of_its_tasks() {
    let jobs = Jobs::new();
    let server = server(&jobs);
    let port = fixture::listen(&server, Options::default()).await;
    assert_eq!(peer::post_modern(port, &start()).await.json()["result"]["taskId"], "job-1");
    let listen = with_tasks(7, "subscriptions/listen", json!({ "notifications": { "taskIds": ["job-1"] } }));
    let mut news = EventStream::open_modern(port, &listen).await;
    assert_eq!(news.next().await.expect("open")["method"], "notifications/subscriptions/acknowledged");
    server.notify_task_changed("job-1").await;
    server.notify_task_changed("unknown").await;
    jobs.set("job-1", "loopback", done());
    server.notify_task_changed("job-1").await;
    for status in ["working", "completed"] {
        let told = news.next().await.expect("news");
        assert_eq!((&told["method"], &told["params"]["status"]), (&json!("notifications/tasks"), &json!(status)));
    }
}
