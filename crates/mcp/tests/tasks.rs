//! Tasks, progress and cancellation.

mod fixture;

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use corbie_mcp::transport::http::Options;
use corbie_mcp::{
    Arguments, Context, Error, Limits, MemoryTaskStore, Server, Task, TaskState, TaskStore, TaskSupport, Tool,
    ToolError, ToolOutcome, TrustLevel,
};
use fixture::peer::{
    self, BOTH, EventStream, JSON, Stdio, TestTransport, call, modern, request, request_over_stdio, text_of,
};
use fixture::{Gate, WipeCounter};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

/// A server with the tool `gate`, and the gate.
fn gated() -> (Server, Gate) {
    let gate = Gate::new();
    (fixture::builder(WipeCounter::default()).tool(gate.tool()).build().expect("valid"), gate)
}

fn with_tasks(id: i64, method: &str, params: Value) -> Value {
    modern(id, method, params, json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } }))
}

fn start(tool: &str) -> Value {
    with_tasks(1, "tools/call", json!({ "name": tool }))
}

fn get(id: &Value) -> Value {
    with_tasks(2, "tasks/get", json!({ "taskId": id }))
}

/// Polls a task until it is no longer working.
async fn ended(server: &Server, id: &Value) -> Value {
    let mut peer = Stdio::start(server, TrustLevel::Trusted);
    let ended = async {
        loop {
            let task = peer.call(&get(id)).await["result"].take();
            if task["status"] != "working" {
                return task;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(peer::TEST_TIMEOUT, ended).await.expect("it ends")
}

// === task lifecycle ===

#[tokio::test]
async fn m21_a_task_is_begun_looked_at_and_completed() {
    let (server, gate) = gated();
    let begun = request_over_stdio(&server, &start("gate")).await["result"].take();
    assert_eq!((&begun["resultType"], &begun["status"]), (&json!("task"), &json!("working")));
    for member in ["taskId", "createdAt", "lastUpdatedAt"] {
        assert!(begun[member].is_string(), "{member}: {begun}");
    }
    assert!(begun["ttlMs"].is_u64() && begun["pollIntervalMs"].is_u64(), "{begun}");

    gate.entered().await;
    assert_eq!(request_over_stdio(&server, &get(&begun["taskId"])).await["result"]["status"], "working");
    gate.open();
    let task = ended(&server, &begun["taskId"]).await;
    assert_eq!((&task["status"], &task["taskId"]), (&json!("completed"), &begun["taskId"]));
    assert_eq!(task["result"]["content"][0]["text"], "through the gate");
    assert_eq!(task["result"]["isError"], false);
}

#[tokio::test]
async fn m21_a_tools_own_failure_completes_the_task_and_a_fault_fails_it() {
    let always = |name: &str| Tool::builder(name).task_support(TaskSupport::Always).no_input();
    let server = Server::builder("s", "1")
        .tool(always("refuses").run(async |_, _| -> Result<(), ToolError> { Err(ToolError::new("No", "no")) }))
        .tool(always("nan").run(async |_, _| corbie_mcp::Json(f64::NAN)))
        .build()
        .expect("valid");
    let begun = request_over_stdio(&server, &start("refuses")).await["result"].take();
    let task = ended(&server, &begun["taskId"]).await;
    assert_eq!((&task["status"], &task["result"]["isError"]), (&json!("completed"), &json!(true)));
    let begun = request_over_stdio(&server, &start("nan")).await["result"].take();
    let task = ended(&server, &begun["taskId"]).await;
    assert_eq!((&task["status"], &task["error"]["code"]), (&json!("failed"), &json!(-31013)));
}

#[tokio::test]
async fn m21_tasks_are_for_those_who_know_them() {
    let server = fixture::server();
    let plain = modern(1, "tools/call", json!({ "name": "job" }), json!({}));
    assert_eq!(text_of(&request_over_stdio(&server, &plain).await), "job done", "an optional task is an ordinary call");
    assert_eq!(
        text_of(&request_over_stdio(&server, &call(1, "job", json!({}))).await),
        "job done",
        "and so it is for legacy"
    );
    let must = modern(1, "tools/call", json!({ "name": "job_asks" }), json!({}));
    assert_eq!(request_over_stdio(&server, &must).await["error"]["code"], -32021);
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let unasked = request_over_stdio(&server, &modern(1, method, json!({ "taskId": "t" }), json!({}))).await;
        assert_eq!(unasked["error"]["code"], -32021, "{method}");
        let unknown = request_over_stdio(&server, &with_tasks(1, method, json!({ "taskId": "t" }))).await;
        assert_eq!(unknown["error"]["data"]["error_type"], "TaskNotFound", "{method}");
        let legacy = request_over_stdio(&server, &request(1, method, json!({ "taskId": "t" }))).await;
        assert_eq!(legacy["error"]["code"], -32601, "{method}");
    }
}

#[tokio::test]
async fn m21_a_task_is_there_for_its_own_caller_alone() {
    let (server, _gate) = gated();
    let port = fixture::listen(&server, Options::default()).await;
    let id = request_over_stdio(&server, &start("gate")).await["result"]["taskId"].take();
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let other = peer::post_modern(port, &with_tasks(1, method, json!({ "taskId": id }))).await.json();
        assert_eq!(other["error"]["data"]["error_type"], "TaskNotFound", "{method}");
    }
    assert_eq!(request_over_stdio(&server, &get(&id)).await["result"]["status"], "working");
}

#[tokio::test]
async fn m21_a_handler_may_ask_first_and_hand_the_rest_to_a_task() {
    let tool = Tool::builder("hand").task_support(TaskSupport::Handoff).no_input().run(
        async |context: Context, _: Arguments| -> Result<ToolOutcome, ToolError> {
            let roots = context.roots("r").await?.len();
            Ok(ToolOutcome::background(async move |_| format!("{roots} roots")))
        },
    );
    let server = Server::builder("s", "1").tool(tool).build().expect("valid");
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    let capabilities = json!({ "roots": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let asked = peer.call(&modern(1, "tools/call", json!({ "name": "hand" }), capabilities.clone())).await;
    assert_eq!(asked["result"]["resultType"], "input_required");
    let state = &asked["result"]["requestState"];
    let again = json!({ "name": "hand", "requestState": state, "inputResponses": { "r": { "roots": [] } } });
    let begun = peer.call(&modern(2, "tools/call", again, capabilities)).await["result"].take();
    assert_eq!(begun["resultType"], "task");
    assert_eq!(ended(&server, &begun["taskId"]).await["result"]["content"][0]["text"], "0 roots");
}

// === the store ===

/// A store that records every put and may refuse.
#[derive(Debug)]
struct RecordingTaskStore {
    inner: MemoryTaskStore,
    put: Mutex<Vec<String>>,
    refuses: bool,
}

impl RecordingTaskStore {
    fn new(refuses: bool) -> Arc<RecordingTaskStore> {
        Arc::new(RecordingTaskStore { inner: MemoryTaskStore::new(10), put: Mutex::default(), refuses })
    }
}

impl TaskStore for RecordingTaskStore {
    fn put<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, Result<(), Error>> {
        if self.refuses {
            return Box::pin(async { Err(Error::internal("the disk is full", "ENOSPC")) });
        }
        self.put.lock().expect("unpoisoned").push(task.state.as_str().to_owned());
        self.inner.put(task)
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Task>, Error>> {
        self.inner.get(id)
    }
}

#[tokio::test]
async fn m21_a_task_is_kept_before_its_handle_is_given_away() {
    let (gate, store) = (Gate::new(), RecordingTaskStore::new(false));
    let server = Server::builder("s", "1").tool(gate.tool()).task_store(store.clone()).build().expect("valid");
    let id = request_over_stdio(&server, &start("gate")).await["result"]["taskId"].take();
    assert_eq!(*store.put.lock().expect("unpoisoned"), ["working"]);
    gate.open();
    ended(&server, &id).await;
    assert_eq!(*store.put.lock().expect("unpoisoned"), ["working", "completed"]);
}

#[tokio::test]
async fn m21_a_task_that_cannot_be_kept_is_not_begun() {
    let gate = Gate::new();
    let server =
        Server::builder("s", "1").tool(gate.tool()).task_store(RecordingTaskStore::new(true)).build().expect("valid");
    let refused = request_over_stdio(&server, &start("gate")).await;
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    assert_eq!(server.registry().find("gate").expect("known").stats().summary()["calls"], 0);
}

fn task(id: &str, state: TaskState, ended_ago: Duration) -> Task {
    let at = SystemTime::now() - ended_ago;
    Task { id: id.into(), owner: "me".into(), state, created: at, updated: at, ttl: Duration::from_secs(60) }
}

#[tokio::test]
async fn m21_the_store_is_bounded_and_forgets_first_what_ended_longest_ago() {
    let store = MemoryTaskStore::new(2);
    let (recently, long_ago) = (Duration::ZERO, Duration::from_secs(30));
    for id in ["a", "b"] {
        store.put(&task(id, TaskState::Working, long_ago)).await.expect("room for two");
    }
    let refused = store.put(&task("c", TaskState::Working, recently)).await.expect_err("work goes on, however old");
    assert_eq!(refused.error_type(), "RateLimited");
    store.put(&task("a", TaskState::Cancelled, recently)).await.expect("a change is always taken");
    store.put(&task("b", TaskState::Cancelled, long_ago)).await.expect("a change is always taken");
    store.put(&task("c", TaskState::Working, recently)).await.expect("room was made");
    let known = async |id: &str| store.get(id).await.expect("readable").is_some();
    assert!(known("a").await && !known("b").await && known("c").await);
}

#[tokio::test]
async fn m21_a_full_store_is_told_as_a_limit() {
    let gate = Gate::new();
    let limits = Limits { max_tasks: 1, ..Limits::default() };
    let server = Server::builder("s", "1").limits(limits).tool(gate.tool()).build().expect("valid");
    let port = fixture::listen(&server, Options::default()).await;
    assert_eq!(peer::post_modern(port, &start("gate")).await.json()["result"]["status"], "working");
    let refused = peer::post_modern(port, &start("gate")).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (429, &json!(-31002)));
}

// === cancelling a task ===

#[tokio::test]
async fn m21_m28_x08_a_task_is_cancelled_in_any_of_three_ways_and_its_work_is_dropped() {
    let ways = |id: &Value| {
        [
            (with_tasks(5, "tasks/cancel", json!({ "taskId": id })), None),
            (
                request(5, "tools/cancel", json!({ "taskId": id })),
                Some(json!({ "success": true, "taskId": id, "status": "cancelled" })),
            ),
            (json!({ "jsonrpc": "2.0", "method": "tools/cancel", "params": { "taskId": id } }), None),
        ]
    };
    for way in 0..3 {
        let (server, gate) = gated();
        let mut peer = Stdio::start(&server, TrustLevel::Trusted);
        let id = peer.call(&start("gate")).await["result"]["taskId"].take();
        gate.entered().await;
        let (cancel, expected) = ways(&id)[way].clone();
        peer.send(&cancel.to_string()).await;
        if cancel.get("id").is_some() {
            let answer = peer.receive().await;
            assert_eq!(answer["result"], expected.unwrap_or_else(|| answer["result"].clone()), "{cancel}");
            assert!(answer["result"].is_object(), "{answer}");
        }
        gate.abandoned().await;
        // The next message is the answer to the next request: the notification was not answered.
        let task = peer.call(&get(&id)).await;
        assert_eq!((&task["id"], &task["result"]["status"]), (&json!(2), &json!("cancelled")), "{cancel}");
    }
}

#[tokio::test]
async fn m28_x08_a_task_that_is_unknown_or_over_cannot_be_cancelled_by_request() {
    let (server, gate) = gated();
    let unknown = request_over_stdio(&server, &request(1, "tools/cancel", json!({ "taskId": "nothing" }))).await;
    assert_eq!(unknown["error"]["code"], -32602);
    let nameless = request_over_stdio(&server, &request(1, "tools/cancel", json!({}))).await;
    assert_eq!(nameless["error"]["code"], -32602);
    let id = request_over_stdio(&server, &start("gate")).await["result"]["taskId"].take();
    gate.open();
    ended(&server, &id).await;
    let over = request_over_stdio(&server, &request(1, "tools/cancel", json!({ "taskId": id }))).await;
    assert_eq!(over["error"]["code"], -32602);
    assert_eq!(ended(&server, &id).await["status"], "completed", "what has ended stays as it is");
}

#[tokio::test]
async fn m28_x08_an_unknown_task_in_a_notification_is_nobodys_business() {
    let mut peer = Stdio::start(&fixture::server(), TrustLevel::Trusted);
    for params in [json!({ "taskId": "nothing" }), json!({}), json!({ "taskId": 7 })] {
        peer.send(&json!({ "jsonrpc": "2.0", "method": "tools/cancel", "params": params }).to_string()).await;
    }
    assert_eq!(peer.call(&request(1, "ping", json!({}))).await["result"], json!({}));
}

#[tokio::test]
async fn m28_tools_cancel_works_over_every_transport() {
    for way in TestTransport::ALL {
        let (server, gate) = gated();
        let port = fixture::listen(&server, Options::default()).await;
        let begun = if way == TestTransport::Stdio {
            request_over_stdio(&server, &start("gate")).await
        } else {
            peer::post_modern(port, &start("gate")).await.json()
        };
        let id = &begun["result"]["taskId"];
        let answer =
            way.request(&server, TrustLevel::Trusted, &request(1, "tools/cancel", json!({ "taskId": id }))).await;
        assert_eq!(answer["result"]["status"], "cancelled", "{way:?}: {answer}");
        gate.abandoned().await;
    }
}

// === cancelling a request ===

fn cancelled(id: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id, "reason": "tired" } })
}

#[tokio::test]
async fn m29_a_running_request_is_cancelled_by_its_id_and_not_answered() {
    for held in [call(1, "gate", json!({})), modern(1, "tools/call", json!({ "name": "gate" }), json!({}))] {
        let (server, gate) = gated();
        let mut peer = Stdio::start(&server, TrustLevel::Trusted);
        peer.send(&held.to_string()).await;
        gate.entered().await;
        // Neither an unused number nor the same digits as text match this request.
        for other in [json!(99), json!("1")] {
            peer.send(&cancelled(other).to_string()).await;
        }
        assert_eq!(peer.call(&request(2, "ping", json!({}))).await["id"], 2);
        peer.send(&cancelled(json!(1)).to_string()).await;
        gate.abandoned().await;
        assert_eq!(peer.call(&request(3, "ping", json!({}))).await["id"], 3, "the cancelled request has no answer");
    }
}

#[tokio::test]
async fn m29_a_request_is_cancelled_over_a_websocket() {
    let (server, gate) = gated();
    let port = fixture::listen(&server, Options::default()).await;
    let mut socket = peer::websocket(port).await;
    peer::ws_send(&mut socket, &call(1, "gate", json!({}))).await;
    gate.entered().await;
    peer::ws_send(&mut socket, &cancelled(json!(1))).await;
    gate.abandoned().await;
}

#[tokio::test]
async fn m29_e14_a_request_of_an_http_session_is_cancelled_in_another_post() {
    let (server, gate) = gated();
    let port = fixture::listen(&server, Options::default()).await;
    let opened = peer::post(port, &peer::initialize("2025-11-25", json!({}))).await;
    let session = opened.headers["mcp-session-id"].clone();
    let headers = [JSON, ("mcp-session-id", session.as_str())];
    let held = call(1, "gate", json!({})).to_string();
    let held = peer::http(port, "POST", "/mcp", &headers, &held);
    let cancel = async {
        gate.entered().await;
        peer::http(port, "POST", "/mcp", &headers, &cancelled(json!(1)).to_string()).await
    };
    let (held, cancel) = tokio::join!(held, cancel);
    assert_eq!(cancel.status, 202);
    assert_eq!(held.json()["error"]["code"], -32011);
    gate.abandoned().await;
}

#[tokio::test]
async fn m29_a_request_of_a_batch_can_be_cancelled_too() {
    let gate = Gate::new();
    let server = Server::builder("s", "1").tool(gate.tool_within(Duration::from_secs(10))).build().expect("valid");
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    peer.send(&json!([call(1, "gate", json!({})), request(2, "ping", json!({}))]).to_string()).await;
    gate.entered().await;
    peer.send(&cancelled(json!(1)).to_string()).await;
    let answers = peer.receive().await;
    assert_eq!(answers, json!([{ "jsonrpc": "2.0", "id": 2, "result": {} }]));
}

#[tokio::test]
async fn a_modern_client_that_hangs_up_has_cancelled() {
    let (server, gate) = gated();
    let port = fixture::listen(&server, Options::default()).await;
    let body = modern(1, "tools/call", json!({ "name": "gate" }), json!({}));
    let headers = peer::modern_headers(&body);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let stream = peer::send_http(port, "POST", &headers, &body.to_string()).await;
    gate.entered().await;
    drop(stream);
    gate.abandoned().await;
}

#[tokio::test]
async fn a_modern_client_that_closes_a_stream_it_has_read_from_has_cancelled() {
    let gate = Gate::new();
    let held = gate.clone();
    let tool = Tool::builder("speaks").timeout(Duration::from_secs(600)).no_input().run(move |context: Context, _| {
        context.progress(1.0, None, None);
        held.clone().enter()
    });
    let server = Server::builder("s", "1").tool(tool).build().expect("valid");
    let port = fixture::listen(&server, Options::default()).await;
    let mut body = modern(1, "tools/call", json!({ "name": "speaks" }), json!({}));
    body["params"]["_meta"]["progressToken"] = json!("p");
    let mut stream = EventStream::open_modern(port, &body).await;
    assert_eq!(stream.next().await.expect("progress")["method"], "notifications/progress");
    drop(stream);
    gate.abandoned().await;
}

#[tokio::test]
async fn a_legacy_client_that_goes_away_has_not_cancelled() {
    let (server, gate) = gated();
    let port = fixture::listen(&server, Options::default()).await;
    let held = call(1, "gate", json!({}));

    let stream = peer::send_http(port, "POST", &[JSON, BOTH], &held.to_string()).await;
    gate.entered().await;
    drop(stream);
    let mut socket = peer::websocket(port).await;
    peer::ws_send(&mut socket, &held).await;
    gate.entered().await;
    drop(socket);
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    peer.send(&held.to_string()).await;
    gate.entered().await;
    for _ in 0..3 {
        gate.open();
    }
    assert_eq!(text_of(&peer.end().await[0]), "through the gate", "end of input is no cancellation either");
    for _ in 0..3 {
        gate.finished().await;
    }
}

// === progress ===

/// The progress notifications of a call before its answer.
fn progress_of(messages: &[Value]) -> Vec<Value> {
    let progress = messages.iter().filter(|message| message["method"] == "notifications/progress");
    progress.map(|message| message["params"].clone()).collect()
}

async fn until_answer(peer: &mut Stdio, request: &Value) -> Vec<Value> {
    let mut messages = vec![peer.call(request).await];
    while messages.last().is_some_and(|message| message.get("id").is_none()) {
        messages.push(peer.receive().await);
    }
    messages
}

fn steps(token: Value) -> Value {
    let mut request = call(1, "steps", json!({}));
    request["params"]["_meta"] = json!({ "progressToken": token });
    request
}

#[tokio::test]
async fn m30_x09_progress_carries_the_clients_token_and_grows() {
    for token in [json!("one"), json!(1), json!(9_007_199_254_740_993_i64)] {
        let mut peer = Stdio::start(&fixture::server(), TrustLevel::Trusted);
        let messages = until_answer(&mut peer, &steps(token.clone())).await;
        let expected =
            [1, 2, 3].map(|step| json!({ "progressToken": token, "progress": step, "total": 3, "message": "working" }));
        assert_eq!(progress_of(&messages), expected);
        assert_eq!(text_of(messages.last().expect("an answer")), "done");
    }
}

#[tokio::test]
async fn m30_x09_progress_comes_on_the_stream_of_its_call_if_there_is_one() {
    let port = fixture::listen(&fixture::server(), Options::default()).await;
    let streamed = peer::http(port, "POST", "/mcp", &[JSON, BOTH], &steps(json!("t")).to_string()).await;
    assert_eq!(progress_of(&streamed.events()).len(), 3);
    assert_eq!(text_of(streamed.events().last().expect("an answer")), "done");
    let plain = peer::post(port, &steps(json!("t"))).await;
    assert!(!plain.is_stream());
    assert_eq!(text_of(&plain.json()), "done");
}

#[tokio::test]
async fn m30_x09_without_a_token_there_is_no_progress() {
    let mut peer = Stdio::start(&fixture::server(), TrustLevel::Trusted);
    let messages = until_answer(&mut peer, &call(1, "steps", json!({}))).await;
    assert_eq!(progress_of(&messages), [] as [Value; 0]);
}

#[tokio::test]
async fn m30_a_step_that_does_not_grow_is_not_told() {
    let tool = Tool::builder("back").no_input().run(async |context: Context, _| {
        for value in [0.5, 0.25, 0.5, f64::NAN, 1.0] {
            context.progress(value, Some(1.0), None);
        }
    });
    let server = Server::builder("s", "1").tool(tool).build().expect("valid");
    let mut request = call(1, "back", json!({}));
    request["params"]["_meta"] = json!({ "progressToken": "t" });
    let messages = until_answer(&mut Stdio::start(&server, TrustLevel::Trusted), &request).await;
    let values: Vec<_> = progress_of(&messages).iter().map(|params| params["progress"].as_f64()).collect();
    assert_eq!(values, [Some(0.5), Some(1.0)]);
}
