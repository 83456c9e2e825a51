//! P-18: cancellation by the caller also cancels the provider request.

use std::io::{Read, Write};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::fixture::{app, ask_request};
use crate::process::{TestCommand, corbie, modern_meta, request, wait_for};
use crate::upstream::{FakeUpstream, ScriptedServer};

const EVENT_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug, PartialEq)]
enum ProviderEvent {
    Requested,
    /// The client closed the connection before the response.
    Disconnected,
}

/// A provider that never responds and reports when a request arrives and when the client disconnects.
fn silent_provider() -> (ScriptedServer, mpsc::Receiver<ProviderEvent>) {
    let (tell, told) = mpsc::channel();
    let peer = ScriptedServer::start(move |_, connection| {
        let _ = tell.send(ProviderEvent::Requested);
        let _ = connection.set_read_timeout(Some(EVENT_TIMEOUT));
        let left = match connection.read(&mut [0]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        };
        if left {
            let _ = tell.send(ProviderEvent::Disconnected);
        }
    });
    (peer, told)
}

fn settings(peer: &ScriptedServer) -> Value {
    let provider = json!({ "base_url": format!("http://127.0.0.1:{}/v1", peer.port) });
    json!({ "providers": { "detect_ports": [], "quiet": provider } })
}

fn setup(arguments: &str, peer: &ScriptedServer) -> TestCommand {
    corbie(arguments).file("corbie.json", &settings(peer).to_string())
}

fn prompt() -> Value {
    json!({ "prompt": "Hello", "model": "quiet/model" })
}

#[test]
fn p18_a_cancelled_request_over_stdio_closes_the_connection_to_the_provider() {
    let (peer, told) = silent_provider();
    let mut server = setup("stdio", &peer).start();
    server.send(&request(7, "completion/complete", prompt()));
    assert_eq!(told.recv_timeout(EVENT_TIMEOUT), Ok(ProviderEvent::Requested));
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } }));
    assert_eq!(told.recv_timeout(EVENT_TIMEOUT), Ok(ProviderEvent::Disconnected));
    let read = server.send_and_receive(&request(8, "resources/read", json!({ "uri": "corbie://decisions" })));
    let decisions: Value = serde_json::from_str(read["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(decisions["decisions"][0]["outcome"], "cancelled", "{decisions}");
}

#[test]
fn p18_a_modern_caller_who_hangs_up_closes_the_connection_to_the_provider() {
    let (peer, told) = silent_provider();
    let mut server = setup("serve --port 0", &peer).start();
    let client = server.client();
    let mut params = prompt();
    params["_meta"] = modern_meta();
    let body = request(1, "completion/complete", params).to_string();
    let headers = [
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "completion/complete"),
    ];
    let mut connection = client.connect().unwrap();
    let head = client.head("POST", "/mcp", &headers, body.len());
    connection.write_all(format!("{head}{body}").as_bytes()).unwrap();
    assert_eq!(told.recv_timeout(EVENT_TIMEOUT), Ok(ProviderEvent::Requested));
    drop(connection);
    assert_eq!(told.recv_timeout(EVENT_TIMEOUT), Ok(ProviderEvent::Disconnected));
}

#[test]
fn p18_the_tool_is_cancelled_like_the_method() {
    let (peer, told) = silent_provider();
    let mut server = setup("stdio", &peer).start();
    let arguments = json!({ "name": "chat_completion", "arguments": prompt() });
    server.send(&request("a", "tools/call", arguments));
    assert_eq!(told.recv_timeout(EVENT_TIMEOUT), Ok(ProviderEvent::Requested));
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "a" } }));
    assert_eq!(told.recv_timeout(EVENT_TIMEOUT), Ok(ProviderEvent::Disconnected));
}

/// Between two attempts there is no connection, and the next attempt is not made.
#[tokio::test(flavor = "multi_thread")]
async fn p18_a_caller_who_leaves_while_a_retry_is_waited_for_is_not_retried_for() {
    let upstream = FakeUpstream::start();
    let app = app(json!({ "providers": { "openai": upstream.provider("openai") } }));
    let waiting = app.router.complete(ask_request(Some("openai/status-429"), "Hello"));
    assert!(tokio::time::timeout(Duration::from_millis(700), waiting).await.is_err());
    // Longer than the remaining backoff.
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(upstream.requests_for("status-429").len(), 1);
    assert_eq!(json!(app.router.decision_log().newest(1)[0].outcome), "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn p18_a_stream_that_is_dropped_counts_as_cancelled_and_a_caller_who_leaves_is_no_failure() {
    let upstream = FakeUpstream::start();
    let app = app(json!({ "providers": { "openai": upstream.provider("openai") } }));
    for _ in 0..6 {
        let mut answering = app.router.stream(ask_request(Some("openai/drip-50"), "Hello, world!")).await.unwrap();
        answering.next().await.unwrap().unwrap();
        drop(answering);
        assert_eq!(json!(app.router.decision_log().newest(1)[0].outcome), "cancelled");
    }
    for _ in 0..6 {
        let waiting = app.router.complete(ask_request(Some("openai/stall"), "Hello"));
        assert!(tokio::time::timeout(Duration::from_millis(60), waiting).await.is_err());
    }
    wait_for("the records", || (app.router.decision_log().newest(99).len() == 12).then_some(()));
    let answered = app.router.complete(ask_request(Some("openai/echo-small"), "Hello")).await.unwrap();
    assert_eq!(answered.completion.text(), "echo: Hello", "the provider does not rest");
}
