//! Progress after the answer (X-09): target stream, token, and clients that receive none.

mod fixture;

use std::time::Duration;

use corbie_mcp::transport::http::Options;
use corbie_mcp::{Arguments, Context, DeferredProgress, Limits, Server, Tool, TrustLevel};
use fixture::peer::{self, BOTH, EventStream, JSON, Stdio, TEST_TIMEOUT, call, initialize, modern, request, text_of};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

const EVENTS: (&str, &str) = ("accept", "text/event-stream");

/// A server whose tool `begin` answers immediately and stores its deferred progress handle.
struct DeferredFixture {
    server: Server,
    handles: mpsc::Receiver<DeferredProgress>,
}

impl DeferredFixture {
    fn new(limits: Limits) -> DeferredFixture {
        let (leave, ways) = mpsc::channel(10);
        let tool = Tool::builder("begin").no_input().run(move |context: Context, _: Arguments| {
            context.progress(0.1, Some(1.0), None);
            leave.try_send(context.deferred_progress()).expect("room");
            std::future::ready("begun")
        });
        DeferredFixture {
            server: Server::builder("s", "1").limits(limits).tool(tool).build().expect("valid"),
            handles: ways,
        }
    }

    async fn next_handle(&mut self) -> DeferredProgress {
        timeout(TEST_TIMEOUT, self.handles.recv()).await.expect("in time").expect("called")
    }
}

fn fixture_server() -> DeferredFixture {
    DeferredFixture::new(fixture::quick_limits())
}

fn begin(token: Option<Value>) -> Value {
    let mut request = call(1, "begin", json!({}));
    if let Some(token) = token {
        request["params"]["_meta"] = json!({ "progressToken": token });
    }
    request
}

fn progress_notification(token: Value, progress: Value, message: &str) -> Value {
    let params = json!({ "progressToken": token, "progress": progress, "total": 1, "message": message });
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
}

fn page_five(later: &DeferredProgress) {
    later.progress(Some("task-1"), 0.5, Some(1.0), Some("Processing page 5 of 10"));
}

/// The next message is the answer to a ping, so no other message was sent.
async fn receives_nothing(peer: &mut Stdio) -> bool {
    peer.call(&request(9, "ping", json!({}))).await["id"] == 9
}

// === stdio and sockets ===

#[tokio::test]
async fn k116_x09_progress_after_the_answer_carries_the_task_id_on_a_line() {
    let mut begun = fixture_server();
    let mut peer = Stdio::start(&begun.server, TrustLevel::Trusted);
    peer.call(&initialize("2025-06-18", json!({}))).await;
    assert_eq!(text_of(&peer.call(&begin(None)).await), "begun");
    page_five(&begun.next_handle().await);
    assert_eq!(peer.receive().await, progress_notification(json!("task-1"), json!(0.5), "Processing page 5 of 10"));
}

#[tokio::test]
async fn x09_x14_a_line_and_a_websocket_that_never_sent_initialize_receive_progress() {
    let mut begun = fixture_server();
    let expected = progress_notification(json!("task-1"), json!(0.5), "Processing page 5 of 10");
    let mut peer = Stdio::start(&begun.server, TrustLevel::Trusted);
    assert_eq!(text_of(&peer.call(&begin(None)).await), "begun");
    page_five(&begun.next_handle().await);
    assert_eq!(peer.receive().await, expected);

    let port = fixture::listen(&begun.server, Options::default()).await;
    let mut socket = peer::websocket(port).await;
    peer::ws_send(&mut socket, &begin(None)).await;
    assert_eq!(text_of(&peer::ws_receive(&mut socket).await), "begun");
    page_five(&begun.next_handle().await);
    assert_eq!(peer::ws_receive(&mut socket).await, expected);
}

#[tokio::test]
async fn k116_x09_the_token_of_the_call_goes_before_the_task_id() {
    let mut begun = fixture_server();
    let mut peer = Stdio::start(&begun.server, TrustLevel::Trusted);
    for token in [json!("mine"), json!(7)] {
        assert_eq!(peer.call(&begin(Some(token.clone()))).await["params"]["progress"], 0.1);
        assert_eq!(text_of(&peer.receive().await), "begun");
        page_five(&begun.next_handle().await);
        assert_eq!(peer.receive().await, progress_notification(token, json!(0.5), "Processing page 5 of 10"));
    }
}

#[tokio::test]
async fn k116_x09_it_goes_to_the_callers_own_line_alone() {
    let mut begun = fixture_server();
    let mut caller = Stdio::start(&begun.server, TrustLevel::Trusted);
    let mut other = Stdio::start(&begun.server, TrustLevel::Trusted);
    for peer in [&mut caller, &mut other] {
        peer.call(&initialize("2025-06-18", json!({}))).await;
    }
    caller.call(&begin(None)).await;
    page_five(&begun.next_handle().await);
    assert_eq!(caller.receive().await["method"], "notifications/progress");
    assert!(receives_nothing(&mut other).await);
}

#[tokio::test]
async fn k116_x09_a_websocket_is_told_and_closes_although_the_work_goes_on() {
    let mut begun = fixture_server();
    let port = fixture::listen(&begun.server, Options::default()).await;
    let mut socket = peer::websocket(port).await;
    peer::ws_send(&mut socket, &initialize("2025-06-18", json!({}))).await;
    peer::ws_receive(&mut socket).await;
    peer::ws_send(&mut socket, &begin(None)).await;
    peer::ws_receive(&mut socket).await;
    let later = begun.next_handle().await;
    page_five(&later);
    assert_eq!(peer::ws_receive(&mut socket).await["params"]["progressToken"], "task-1");
    begun.server.drain();
    let closing =
        async { while socket.next().await.is_some_and(|frame| frame.is_ok_and(|frame| !frame.is_close())) {} };
    timeout(Duration::from_secs(4), closing).await.expect("closed at once, though the way is kept");
    later.progress(Some("task-1"), 0.9, None, None);
}

#[tokio::test]
async fn m30_x09_values_of_one_token_only_grow_and_are_numbers() {
    let mut begun = fixture_server();
    let mut peer = Stdio::start(&begun.server, TrustLevel::Trusted);
    peer.call(&initialize("2025-06-18", json!({}))).await;
    peer.call(&begin(None)).await;
    let later = begun.next_handle().await;
    let same = later.clone();
    for value in [0.5, 0.25, 0.5, f64::NAN, f64::INFINITY] {
        later.progress(Some("one"), value, Some(f64::INFINITY), None);
    }
    same.progress(Some("one"), 0.4, None, None);
    same.progress(Some("two"), 0.25, None, None);
    later.progress(Some("one"), 1.0, Some(1.0), None);
    for expected in [
        json!({ "progressToken": "one", "progress": 0.5 }),
        json!({ "progressToken": "two", "progress": 0.25 }),
        json!({ "progressToken": "one", "progress": 1, "total": 1 }),
    ] {
        assert_eq!(peer.receive().await["params"], expected);
    }
    // Progress during the call counts too.
    assert_eq!(peer.call(&begin(Some(json!("t")))).await["params"]["progress"], 0.1);
    peer.receive().await;
    let later = begun.next_handle().await;
    later.progress(None, 0.05, None, None);
    later.progress(None, 0.2, None, None);
    assert_eq!(peer.receive().await["params"]["progress"], 0.2);
}

// === clients that receive none ===

#[tokio::test]
async fn x09_a_modern_client_is_told_nothing_after_its_answer() {
    let mut begun = fixture_server();
    let mut peer = Stdio::start(&begun.server, TrustLevel::Trusted);
    peer.call(&initialize("2025-06-18", json!({}))).await;
    let mut request = modern(1, "tools/call", json!({ "name": "begin" }), json!({}));
    request["params"]["_meta"]["progressToken"] = json!("t");
    assert_eq!(peer.call(&request).await["method"], "notifications/progress", "before its answer it is");
    assert_eq!(text_of(&peer.receive().await), "begun");
    page_five(&begun.next_handle().await);
    assert!(receives_nothing(&mut peer).await);
}

#[tokio::test]
async fn x09_without_a_token_and_a_task_id_there_is_no_progress() {
    let mut begun = fixture_server();
    let mut peer = Stdio::start(&begun.server, TrustLevel::Trusted);
    peer.call(&begin(None)).await;
    begun.next_handle().await.progress(None, 0.5, None, None);
    assert!(receives_nothing(&mut peer).await);
}

// === HTTP ===

/// Opens a session and returns its ID.
async fn session(port: u16) -> String {
    peer::post(port, &initialize("2025-11-25", json!({}))).await.headers["mcp-session-id"].clone()
}

#[tokio::test]
async fn k116_x09_over_http_it_comes_on_the_event_stream_of_the_session() {
    let mut begun = fixture_server();
    let port = fixture::listen(&begun.server, Options::default()).await;
    let (mine, others) = (session(port).await, session(port).await);
    let open = async |id: &str| EventStream::open(port, "GET", &[EVENTS, ("mcp-session-id", id)], "").await;
    let (mut stream, mut other) = (open(&mine).await, open(&others).await);
    let body = begin(Some(json!("t"))).to_string();
    let reply = peer::http(port, "POST", "/mcp", &[JSON, BOTH, ("mcp-session-id", &mine)], &body).await;
    assert_eq!(text_of(reply.events().last().expect("the answer")), "begun", "the reply ends with the answer");
    page_five(&begun.next_handle().await);
    assert_eq!(stream.next().await, Some(progress_notification(json!("t"), json!(0.5), "Processing page 5 of 10")));

    peer::http(port, "POST", "/mcp", &[JSON, ("mcp-session-id", &others)], &begin(None).to_string()).await;
    let later = begun.next_handle().await;
    page_five(&later);
    assert_eq!(
        other.next().await,
        Some(progress_notification(json!("task-1"), json!(0.5), "Processing page 5 of 10")),
        "and no other's"
    );

    // A replacing stream receives later messages; a terminated one receives none.
    let mut newer = open(&others).await;
    assert_eq!(other.next().await, None);
    later.progress(Some("task-1"), 0.6, None, None);
    assert_eq!(newer.next().await.expect("progress")["params"]["progress"], 0.6);
    let ended = peer::http(port, "DELETE", "/mcp", &[("mcp-session-id", &others)], "").await;
    assert_eq!(ended.status, 204);
    later.progress(Some("task-1"), 0.7, None, None);
    assert_eq!(newer.next().await, None);
}

#[tokio::test]
async fn x09_where_no_stream_is_open_nothing_is_sent_and_nothing_waits() {
    let mut begun = fixture_server();
    let port = fixture::listen(&begun.server, Options::default()).await;
    let mine = session(port).await;
    for headers in [vec![JSON, BOTH], vec![JSON, BOTH, ("mcp-session-id", &mine)]] {
        let reply = peer::http(port, "POST", "/mcp", &headers, &begin(Some(json!("t"))).to_string()).await;
        assert_eq!(reply.events().len(), 2, "one step and the answer");
        page_five(&begun.next_handle().await);
    }
    let rest = peer::http(port, "POST", "/mcp/tools/call", &[JSON], r#"{"name":"begin"}"#).await;
    assert_eq!(rest.status, 200);
    page_five(&begun.next_handle().await);
    peer::assert_served(port).await;
}

#[tokio::test]
async fn x09_a_reader_that_is_slow_loses_some() {
    let mut begun = DeferredFixture::new(Limits { max_outgoing: 4, ..fixture::quick_limits() });
    let mut peer = Stdio::start(&begun.server, TrustLevel::Trusted);
    peer.call(&initialize("2025-06-18", json!({}))).await;
    peer.call(&begin(None)).await;
    let later = begun.next_handle().await;
    // No other task runs until the next await, so none of these is written meanwhile.
    for step in 1..=1000 {
        later.progress(Some("task-1"), f64::from(step), Some(1000.0), None);
    }
    for step in 1..=4 {
        assert_eq!(peer.receive().await["params"]["progress"], step);
    }
    assert!(receives_nothing(&mut peer).await);
}
