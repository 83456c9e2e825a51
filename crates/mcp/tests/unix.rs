//! Unix sockets: line-based like stdio, concurrent, bounded, and drained on shutdown.
#![cfg(unix)]

mod fixture;

use std::path::Path;
use std::time::Duration;

use corbie_mcp::transport::unix;
use corbie_mcp::{AuditOutcome, CallError, Limits, LineClient, Server, Transport, TrustLevel};
use fixture::peer::{TEST_TIMEOUT, call, request, text_of};
use fixture::{Gate, WipeCounter};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A server on a temporary socket.
struct UnixServer {
    folder: TempDir,
    ended: JoinHandle<std::io::Result<()>>,
}

impl UnixServer {
    fn start(server: &Server, trust: TrustLevel) -> UnixServer {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join("socket")).expect("bound");
        let server = server.clone();
        UnixServer { folder, ended: tokio::spawn(async move { unix::serve(&server, listener, trust).await }) }
    }

    async fn peer(&self) -> UnixPeer {
        UnixPeer::connect(&self.folder.path().join("socket")).await
    }

    async fn wait_ended(self) {
        timeout(TEST_TIMEOUT, self.ended).await.expect("serving ends").expect("no panic").expect("no error");
    }
}

struct UnixPeer {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

impl UnixPeer {
    async fn connect(path: &Path) -> UnixPeer {
        let (reader, writer) = UnixStream::connect(path).await.expect("listening").into_split();
        UnixPeer { reader: BufReader::new(reader), writer }
    }

    async fn send(&mut self, message: &Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.expect("the server reads");
    }

    /// The next message; `None` at the end.
    async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        timeout(TEST_TIMEOUT, self.reader.read_line(&mut line)).await.expect("in time").expect("readable");
        (!line.is_empty()).then(|| serde_json::from_str(&line).expect("JSON"))
    }

    async fn call(&mut self, message: &Value) -> Value {
        self.send(message).await;
        self.next().await.expect("an answer")
    }
}

fn ping() -> Value {
    request(2, "ping", json!({}))
}

#[tokio::test]
async fn peers_are_served_side_by_side() {
    let gate = Gate::new();
    let server = fixture::builder(WipeCounter::default()).tool(gate.tool()).build().expect("valid");
    let serving = UnixServer::start(&server, TrustLevel::Trusted);
    let (mut first, mut second) = (serving.peer().await, serving.peer().await);
    first.send(&call(1, "gate", json!({}))).await;
    gate.entered().await;
    assert_eq!(text_of(&second.call(&call(1, "echo", json!({ "text": "hi" }))).await), "hi");
    gate.open();
    assert_eq!(text_of(&first.next().await.expect("an answer")), "through the gate");
}

#[tokio::test]
async fn m98_the_log_tells_that_the_caller_came_by_the_socket() {
    let server = fixture::server();
    let mut peer = UnixServer::start(&server, TrustLevel::Verified).peer().await;
    assert_eq!(peer.call(&call(1, "wipe", json!({}))).await["error"]["data"]["error_type"], "TrustDenied");
    let logged = server.audit().latest(1);
    assert_eq!(
        (logged[0].via, logged[0].outcome, logged[0].trust),
        (Transport::Unix, AuditOutcome::Blocked, TrustLevel::Verified)
    );
}

#[tokio::test]
async fn a_message_that_is_too_long_is_told_and_the_next_is_served() {
    let limits = Limits { max_message_bytes: 200, ..fixture::quick_limits() };
    let server = fixture::builder(WipeCounter::default()).limits(limits).build().expect("valid");
    let mut peer = UnixServer::start(&server, TrustLevel::Trusted).peer().await;
    let long = call(1, "echo", json!({ "text": "x".repeat(300) }));
    assert_eq!(peer.call(&long).await["error"]["code"], -32600);
    assert_eq!(peer.call(&ping()).await["id"], 2);
}

#[tokio::test]
async fn one_peer_too_many_is_told_so_and_finds_room_when_another_has_left() {
    let limits = Limits { max_connections: 1, ..fixture::quick_limits() };
    let server = fixture::builder(WipeCounter::default()).limits(limits).build().expect("valid");
    let serving = UnixServer::start(&server, TrustLevel::Trusted);
    let mut first = serving.peer().await;
    assert_eq!(first.call(&ping()).await["id"], 2);
    let mut second = serving.peer().await;
    assert_eq!(second.next().await.expect("a reason")["error"]["code"], -32002);
    assert_eq!(second.next().await, None, "closed");
    drop(first);
    let served = async {
        loop {
            let mut next = serving.peer().await;
            let _ = next.writer.write_all(format!("{}\n", ping()).as_bytes()).await;
            if next.next().await.is_some_and(|answer| answer["id"] == 2) {
                return;
            }
        }
    };
    timeout(TEST_TIMEOUT, served).await.expect("room again");
}

#[tokio::test]
async fn v08_a07_a08_a_drain_over_the_socket() {
    let gate = Gate::new();
    let limits = Limits { shutdown_grace: Duration::from_secs(600), ..fixture::quick_limits() };
    let server = fixture::builder(WipeCounter::default()).limits(limits).tool(gate.tool()).build().expect("valid");
    let serving = UnixServer::start(&server, TrustLevel::Trusted);
    let (mut busy, mut idle) = (serving.peer().await, serving.peer().await);
    assert_eq!(idle.call(&ping()).await["id"], 2);
    busy.send(&call(1, "gate", json!({}))).await;
    gate.entered().await;
    server.drain();
    assert_eq!(idle.next().await, None, "nothing is left to say to it");
    assert_eq!(busy.call(&ping()).await["error"]["code"], -32012);
    gate.open();
    assert_eq!(text_of(&busy.next().await.expect("an answer")), "through the gate");
    serving.wait_ended().await;
}

#[tokio::test]
async fn a_peer_that_stays_does_not_hold_up_a_stop_at_once() {
    let gate = Gate::new();
    let limits = Limits { shutdown_grace: Duration::from_secs(600), ..fixture::quick_limits() };
    let server = fixture::builder(WipeCounter::default()).limits(limits).tool(gate.tool()).build().expect("valid");
    let serving = UnixServer::start(&server, TrustLevel::Trusted);
    let mut busy = serving.peer().await;
    busy.send(&call(1, "gate", json!({}))).await;
    gate.entered().await;
    server.stop_now();
    serving.wait_ended().await;
}

// === command-line client ===

/// A client, and the notifications it received.
async fn client(serving: &UnixServer) -> (LineClient, mpsc::Receiver<(String, Value)>) {
    let (told, news) = mpsc::channel(10);
    let stream = UnixStream::connect(serving.folder.path().join("socket")).await.expect("listening");
    let (reader, writer) = stream.into_split();
    let notified = move |method: &str, params| told.try_send((method.to_owned(), params)).expect("room");
    (LineClient::new(reader, writer, notified), news)
}

#[tokio::test]
async fn a_client_calls_side_by_side_and_is_told_of_failures() {
    let gate = Gate::new();
    let server = fixture::builder(WipeCounter::default()).tool(gate.tool()).build().expect("valid");
    let serving = UnixServer::start(&server, TrustLevel::Trusted);
    let (client, _) = client(&serving).await;
    let (held, gated) = (json!({ "name": "gate", "arguments": {} }), json!({ "name": "nothing" }));
    let others = async {
        gate.entered().await;
        assert_eq!(client.call("ping", &json!({})).await.expect("served"), json!({}));
        let error = client.call("tools/call", &gated).await.expect_err("unknown");
        assert!(matches!(&error, CallError::ErrorResponse(refused) if refused.code == -32602), "{error:?}");
        gate.open();
    };
    let (result, ()) = tokio::join!(client.call("tools/call", &held), others);
    assert_eq!(result.expect("served")["content"][0]["text"], "through the gate");
}

#[tokio::test]
async fn a_client_hears_notifications_before_the_answer_they_belong_to() {
    let serving = UnixServer::start(&fixture::server(), TrustLevel::Trusted);
    let (client, mut news) = client(&serving).await;
    let call = json!({ "name": "steps", "_meta": { "progressToken": "t" } });
    assert_eq!(client.call("tools/call", &call).await.expect("served")["content"][0]["text"], "done");
    let mut steps = Vec::new();
    while let Ok((method, params)) = news.try_recv() {
        if method == "notifications/progress" {
            steps.push(params["progress"].as_u64());
        }
    }
    assert_eq!(steps, [Some(1), Some(2), Some(3)]);
}

#[tokio::test]
async fn a_client_whose_server_is_gone_is_told_so() {
    let gate = Gate::new();
    let server = fixture::builder(WipeCounter::default()).tool(gate.tool()).build().expect("valid");
    let serving = UnixServer::start(&server, TrustLevel::Trusted);
    let (client, _) = client(&serving).await;
    let held = json!({ "name": "gate" });
    let stop = async {
        gate.entered().await;
        server.stop_now();
    };
    let (waiting, ()) = tokio::join!(client.call("tools/call", &held), stop);
    assert!(matches!(waiting, Err(CallError::ConnectionClosed)), "{waiting:?}");
    let after = timeout(TEST_TIMEOUT, client.call("ping", &json!({}))).await.expect("at once");
    assert!(matches!(after, Err(CallError::ConnectionClosed)), "{after:?}");
}
