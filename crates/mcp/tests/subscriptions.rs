//! Change notifications: what each kind of stream receives.

mod fixture;

use corbie_mcp::transport::http::Options;
use corbie_mcp::{Event, Limits, Prompt, PromptArguments, PromptResult, Resource, Server, Tool, TrustLevel};
use fixture::peer::{self, BOTH, EventStream, JSON, Stdio, initialize, modern, request, request_over_stdio};
use fixture::{Gate, WipeCounter};
use serde_json::{Value, json};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn listen(id: i64, filter: Value) -> Value {
    modern(id, "subscriptions/listen", json!({ "notifications": filter }), json!({}))
}

fn change_tools(server: &Server, name: &str) {
    server.register(Tool::builder(name).no_input().run(async |_, _| ()).expect("valid")).expect("new");
}

fn change_prompts(server: &Server) {
    server.add_prompt(Prompt::new("new", "New", async |_, _: PromptArguments| Ok(PromptResult::user([]))));
}

fn change_resources(server: &Server) {
    server.add_resource(Resource::text("fixture://new", "new", "text/plain", "new"));
}

fn update(server: &Server, uri: &str) {
    server.publish(Event::ResourceUpdated(uri.into()));
}

/// Triggers every kind of event once.
fn change_everything(server: &Server) {
    change_prompts(server);
    update(server, "fixture://other");
    change_resources(server);
    models_changed(server);
    change_tools(server, "newcomer");
    update(server, "fixture://text");
}

fn models_changed(server: &Server) {
    let (method, params) = ("notifications/models/list_changed".into(), json!({}).into());
    server.publish(Event::Other { method, params, owner: None });
}

// === modern: subscriptions/listen ===

/// A subscription stream: over stdio, or the reply of a POST.
enum Listening {
    Stdio(Stdio),
    Http(EventStream),
}

impl Listening {
    async fn both(server: &Server, request: &Value) -> [Listening; 2] {
        let port = fixture::listen(server, Options::default()).await;
        let mut peer = Stdio::start(server, TrustLevel::Trusted);
        peer.send(&request.to_string()).await;
        [Listening::Stdio(peer), Listening::Http(EventStream::open_modern(port, request).await)]
    }

    async fn next(&mut self) -> Value {
        match self {
            Listening::Stdio(peer) => peer.receive().await,
            Listening::Http(stream) => stream.next().await.expect("one more message"),
        }
    }
}

#[tokio::test]
async fn m21_m30_a_listener_is_acknowledged_first_then_told_what_it_asked_for_and_no_more() {
    let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": ["fixture://text"] });
    let server = fixture::server();
    for mut listening in Listening::both(&server, &listen(7, filter.clone())).await {
        let first = listening.next().await;
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(first["params"], json!({ "_meta": { SUBSCRIPTION: 7 }, "notifications": filter }));

        change_everything(&server);
        let changed = listening.next().await;
        assert_eq!(changed["method"], "notifications/tools/list_changed");
        assert_eq!(changed["params"], json!({ "_meta": { SUBSCRIPTION: 7 } }));
        let updated = listening.next().await;
        assert_eq!(updated["method"], "notifications/resources/updated");
        assert_eq!(updated["params"], json!({ "uri": "fixture://text", "_meta": { SUBSCRIPTION: 7 } }));
        server.unregister("newcomer");
        assert_eq!(listening.next().await["method"], "notifications/tools/list_changed");
    }
}

#[tokio::test]
async fn m21_the_other_kinds_are_told_when_they_are_asked_for() {
    let server = fixture::server();
    let filter = json!({ "promptsListChanged": true, "resourcesListChanged": true });
    for mut listening in Listening::both(&server, &listen(1, filter)).await {
        listening.next().await;
        change_everything(&server);
        assert_eq!(listening.next().await["method"], "notifications/prompts/list_changed");
        assert_eq!(listening.next().await["method"], "notifications/resources/list_changed");
        server.unregister("newcomer");
    }
}

#[tokio::test]
async fn m21_a_listener_gets_a_result_when_the_server_stops() {
    let server = fixture::server();
    let mut both = Listening::both(&server, &listen(7, json!({}))).await;
    for listening in &mut both {
        listening.next().await;
    }
    server.drain();
    for mut listening in both {
        let goodbye = listening.next().await;
        assert_eq!(
            (&goodbye["method"], &goodbye["params"]["requestId"]),
            (&json!("notifications/cancelled"), &json!(7))
        );
        let closing = listening.next().await;
        assert_eq!((&closing["id"], &closing["result"]["resultType"]), (&json!(7), &json!("complete")));
        assert_eq!(closing["result"]["_meta"][SUBSCRIPTION], 7);
        if let Listening::Http(mut stream) = listening {
            assert_eq!(stream.next().await, None, "and the stream ends");
        }
    }
}

#[tokio::test]
async fn m21_two_listeners_on_one_line_are_told_apart_by_their_ids() {
    let server = fixture::server();
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    peer.call(&listen(1, json!({ "toolsListChanged": true }))).await;
    let mut second = listen(2, json!({ "toolsListChanged": true }));
    second["id"] = json!("two");
    peer.call(&second).await;
    change_tools(&server, "newcomer");
    let mut told =
        [peer.receive().await, peer.receive().await].map(|told| told["params"]["_meta"][SUBSCRIPTION].to_string());
    told.sort();
    assert_eq!(told, ["\"two\"", "1"]);
}

#[tokio::test]
async fn m21_a_listener_may_stop_listening() {
    let server = fixture::server();
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    peer.call(&listen(1, json!({ "toolsListChanged": true }))).await;
    peer.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await;
    assert_eq!(peer.call(&request(2, "ping", json!({}))).await["id"], 2);
    change_tools(&server, "newcomer");
    assert_eq!(peer.call(&request(3, "ping", json!({}))).await["id"], 3);
}

#[tokio::test]
async fn m21_a_client_that_takes_no_stream_cannot_listen() {
    let port = fixture::listen(&fixture::server(), Options::default()).await;
    let body = listen(1, json!({}));
    let headers = peer::modern_headers(&body);
    let plain: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let plain: Vec<_> = plain.into_iter().filter(|(name, _)| *name != "accept").collect();
    let reply = peer::http(port, "POST", "/mcp", &plain, &body.to_string()).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!(-32600)));
}

#[tokio::test]
async fn m21_listeners_are_bounded_and_one_who_leaves_makes_room() {
    let limits = Limits { max_listeners: 1, ..fixture::quick_limits() };
    let server = fixture::builder(WipeCounter::default()).limits(limits).build().expect("valid");
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    peer.call(&listen(1, json!({}))).await;
    let refused = peer.call(&listen(2, json!({}))).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(2), &json!(-31002)));
    peer.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await;
    let acknowledged = async {
        while peer.call(&listen(3, json!({}))).await["error"].is_object() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(peer::TEST_TIMEOUT, acknowledged).await.expect("there is room again");
}

// === modern: task notifications ===

fn with_tasks(id: i64, method: &str, params: Value) -> Value {
    modern(id, method, params, json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } }))
}

/// Starts a task that waits at the gate and returns its ID.
async fn waiting_task(peer: &mut Stdio, gate: &Gate) -> Value {
    let id = peer.call(&with_tasks(1, "tools/call", json!({ "name": "gate" }))).await["result"]["taskId"].take();
    gate.entered().await;
    id
}

fn gated() -> (Server, Gate) {
    let gate = Gate::new();
    (fixture::builder(WipeCounter::default()).tool(gate.tool()).build().expect("valid"), gate)
}

#[tokio::test]
async fn m21_a_listener_hears_of_the_tasks_it_names() {
    let (server, gate) = gated();
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    let id = waiting_task(&mut peer, &gate).await;
    let filter = json!({ "taskIds": [id] });
    let acknowledged = peer.call(&with_tasks(2, "subscriptions/listen", json!({ "notifications": filter }))).await;
    assert_eq!(acknowledged["params"]["notifications"], filter);
    gate.open();
    let told = peer.receive().await;
    assert_eq!((&told["method"], &told["params"]["taskId"]), (&json!("notifications/tasks"), &id));
    assert_eq!((&told["params"]["status"], &told["params"]["_meta"][SUBSCRIPTION]), (&json!("completed"), &json!(2)));
}

#[tokio::test]
async fn m21_tasks_are_not_promised_to_a_client_that_does_not_know_them() {
    let acknowledged =
        request_over_stdio(&fixture::server(), &listen(1, json!({ "taskIds": ["t"], "toolsListChanged": true }))).await;
    assert_eq!(acknowledged["params"]["notifications"], json!({ "toolsListChanged": true }));
}

#[tokio::test]
async fn m21_the_task_of_another_caller_is_not_told() {
    let (server, gate) = gated();
    let mut owner = Stdio::start(&server, TrustLevel::Trusted);
    let id = waiting_task(&mut owner, &gate).await;
    let port = fixture::listen(&server, Options::default()).await;
    let filter = json!({ "taskIds": [id], "toolsListChanged": true });
    let request = with_tasks(2, "subscriptions/listen", json!({ "notifications": filter }));
    let mut stranger = EventStream::open_modern(port, &request).await;
    stranger.next().await.expect("acknowledged");
    owner.call(&with_tasks(3, "tasks/cancel", json!({ "taskId": id }))).await;
    change_tools(&server, "newcomer");
    let told = stranger.next().await.expect("news");
    assert_eq!(told["method"], "notifications/tools/list_changed", "{told}");
}

// === legacy: notifications after initialize ===

#[tokio::test]
async fn m30_a_legacy_line_hears_of_changed_tools_and_models_once_it_is_initialized() {
    let server = fixture::server();
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    assert_eq!(peer.call(&request(1, "ping", json!({}))).await["id"], 1);
    change_tools(&server, "early");
    assert_eq!(peer.call(&initialize("2025-06-18", json!({}))).await["id"], 0, "not told before initialize");
    change_tools(&server, "late");
    let told = peer.receive().await;
    assert_eq!(told, json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {} }));
    models_changed(&server);
    assert_eq!(peer.receive().await["method"], "notifications/models/list_changed");
}

#[tokio::test]
async fn m30_a_legacy_websocket_hears_the_same() {
    let server = fixture::server();
    let port = fixture::listen(&server, Options::default()).await;
    let mut socket = peer::websocket(port).await;
    peer::ws_send(&mut socket, &request(1, "ping", json!({}))).await;
    peer::ws_receive(&mut socket).await;
    change_tools(&server, "early");
    peer::ws_send(&mut socket, &initialize("2025-06-18", json!({}))).await;
    assert_eq!(peer::ws_receive(&mut socket).await["id"], 0, "not told before initialize");
    change_tools(&server, "late");
    assert_eq!(peer::ws_receive(&mut socket).await["method"], "notifications/tools/list_changed");
    models_changed(&server);
    assert_eq!(peer::ws_receive(&mut socket).await["method"], "notifications/models/list_changed");
}

#[tokio::test]
async fn m30_a_get_stream_hears_the_same() {
    let server = fixture::server();
    let port = fixture::listen(&server, Options::default()).await;
    let mut stream = EventStream::open(port, "GET", &[("accept", "text/event-stream")], "").await;
    assert_eq!((stream.status, stream.headers["content-type"].as_str()), (200, "text/event-stream"));
    change_tools(&server, "newcomer");
    assert_eq!(stream.next().await.expect("news")["method"], "notifications/tools/list_changed");
    models_changed(&server);
    assert_eq!(stream.next().await.expect("news")["method"], "notifications/models/list_changed");
}

#[tokio::test]
async fn m30_registering_what_is_there_already_is_no_news() {
    let server = fixture::server();
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    peer.call(&initialize("2025-06-18", json!({}))).await;
    let again = Tool::builder("fail").no_input().run(async |_, _| ()).expect("valid");
    server.register(again).expect("the same schema");
    server.unregister("never there");
    assert_eq!(peer.call(&request(1, "ping", json!({}))).await["id"], 1);
}

#[tokio::test]
async fn x09_the_progress_of_an_asynchronous_task_goes_to_every_open_legacy_stream_under_its_id() {
    let server = fixture::server();
    let port = fixture::listen(&server, Options::default()).await;
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    peer.call(&initialize("2025-06-18", json!({}))).await;
    let mut socket = peer::websocket(port).await;
    peer::ws_send(&mut socket, &initialize("2025-06-18", json!({}))).await;
    peer::ws_receive(&mut socket).await;
    let mut stream = EventStream::open(port, "GET", &[("accept", "text/event-stream")], "").await;

    let params = json!({ "progressToken": "task-1", "progress": 0.5, "total": 1.0 });
    let method = "notifications/progress".into();
    server.publish(Event::Other { method, params: params.clone().into(), owner: None });
    let told = [peer.receive().await, peer::ws_receive(&mut socket).await, stream.next().await.expect("news")];
    for told in told {
        assert_eq!((&told["method"], &told["params"]), (&json!("notifications/progress"), &params));
    }
}

// === legacy: false was declared ===

#[tokio::test]
async fn x49_what_was_declared_false_is_not_served_to_legacy_clients() {
    let server = fixture::builder(WipeCounter::default()).suppress_legacy_changes().build().expect("valid");
    let port = fixture::listen(&server, Options::default()).await;
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    peer.call(&initialize("2025-11-25", json!({}))).await;
    let mut stream = EventStream::open(port, "GET", &[("accept", "text/event-stream")], "").await;
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let error = peer.call(&request(1, method, json!({ "uri": "fixture://text" }))).await["error"].take();
        assert_eq!((&error["code"], &error["data"]["error_type"]), (&json!(-32601), &json!("MethodNotFound")));
    }
    let filter = json!({ "resourcesListChanged": true, "resourceSubscriptions": ["fixture://text"] });
    let mut listening = EventStream::open_modern(port, &listen(2, filter)).await;
    listening.next().await.expect("acknowledged");

    for event in [Event::ResourcesChanged, Event::PromptsChanged] {
        server.publish(event);
    }
    update(&server, "fixture://text");
    change_tools(&server, "newcomer");
    assert_eq!(peer.receive().await["method"], "notifications/tools/list_changed", "the first that was declared");
    assert_eq!(stream.next().await.expect("news")["method"], "notifications/tools/list_changed");
    for method in ["notifications/resources/list_changed", "notifications/resources/updated"] {
        assert_eq!(listening.next().await.expect("news")["method"], method);
    }
}

// === legacy: resources/subscribe ===

#[tokio::test]
async fn x43_a_subscribed_resource_is_told_of_until_it_is_unsubscribed() {
    let server = fixture::server();
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    peer.call(&initialize("2025-11-25", json!({}))).await;
    update(&server, "fixture://text");
    let subscribe = |method: &str, uri: &str| request(1, method, json!({ "uri": uri }));
    for uri in ["fixture://text", "fixture://items/7"] {
        assert_eq!(peer.call(&subscribe("resources/subscribe", uri)).await["result"], json!({}), "{uri}");
    }
    for uri in ["fixture://other", "fixture://text", "fixture://items/8", "fixture://items/7"] {
        update(&server, uri);
    }
    for uri in ["fixture://text", "fixture://items/7"] {
        let told = peer.receive().await;
        assert_eq!(
            (&told["method"], &told["params"]),
            (&json!("notifications/resources/updated"), &json!({ "uri": uri }))
        );
    }
    peer.call(&subscribe("resources/unsubscribe", "fixture://text")).await;
    update(&server, "fixture://text");
    assert_eq!(peer.call(&request(9, "ping", json!({}))).await["id"], 9);
}

#[tokio::test]
async fn x43_an_http_session_hears_of_its_resources_on_its_get_stream() {
    let server = fixture::server();
    let port = fixture::listen(&server, Options::default()).await;
    let opened = peer::post(port, &initialize("2025-11-25", json!({}))).await;
    let session = opened.headers["mcp-session-id"].clone();
    let headers = [JSON, BOTH, ("mcp-session-id", session.as_str())];
    let subscribe = request(1, "resources/subscribe", json!({ "uri": "fixture://text" })).to_string();
    assert_eq!(peer::http(port, "POST", "/mcp", &headers, &subscribe).await.status, 200);
    let mut stream = EventStream::open(port, "GET", &headers[1..], "").await;
    update(&server, "fixture://other");
    update(&server, "fixture://text");
    assert_eq!(stream.next().await.expect("news")["params"], json!({ "uri": "fixture://text" }));
}

#[tokio::test]
async fn x43_an_unknown_resource_cannot_be_subscribed_to() {
    let answer =
        request_over_stdio(&fixture::server(), &request(1, "resources/subscribe", json!({ "uri": "no://where" })))
            .await;
    assert_eq!(answer["error"]["data"], json!({ "error_type": "ResourceNotFound", "uri": "no://where" }));
}
