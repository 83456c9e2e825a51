#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! Configured limits of the real program: concurrency, body memory, rates and uploads. The details are tested in the
//! library.

#[path = "cli/http.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod http;
#[path = "cli/process.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod process;
#[path = "route/upstream.rs"]
#[allow(dead_code, reason = "shared with the tests of the router, which use more of it")]
mod upstream;

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{HttpClient, HttpResponse, StreamingResponse};
use crate::process::{TestProcess, call, corbie, request, wait_for};
use crate::upstream::ScriptedServer;

const CHAT: &str = "/v1/chat/completions";

/// A provider that streams one word and then stalls until the client disconnects or the test ends.
fn endless_provider() -> ScriptedServer {
    ScriptedServer::start(|request, connection| {
        if request.head.starts_with("GET") {
            return;
        }
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        let word = json!({ "id": "1", "choices": [{ "index": 0, "delta": { "content": "on " } }] });
        let _ = connection.write_all(format!("{head}data: {word}\n\n").as_bytes());
        let _ = connection.set_read_timeout(Some(Duration::from_millis(20)));
        let asked = Instant::now();
        while asked.elapsed() < Duration::from_secs(60) {
            match connection.read(&mut [0]) {
                Ok(0) => return,
                Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return,
                _ => {}
            }
        }
    })
}

/// The program with such a provider and these limits.
fn server_with_limits(provider: &ScriptedServer, limits: &Value) -> (TestProcess, HttpClient) {
    let house = json!({
        "type": "openai-compatible",
        "base_url": format!("http://127.0.0.1:{}/v1", provider.port),
        "api_key": "test-key",
    });
    let settings = json!({ "server": { "limits": limits }, "providers": { "house": house } });
    let mut server = corbie("serve --port 0").file("corbie.json", &settings.to_string()).start();
    let client = server.client();
    (server, client)
}

fn chat_request(text: &str) -> Value {
    json!({ "model": "house/any", "stream": true, "messages": [{ "role": "user", "content": text }] })
}

/// A stream that has started.
fn open_stream(client: &HttpClient, body: &Value) -> StreamingResponse {
    let mut stream = client.open("POST", CHAT, &[], &body.to_string()).unwrap();
    assert_eq!(stream.head.status, 200, "{:?}", stream.head);
    assert!(stream.read_chunk().unwrap().is_some());
    stream
}

#[track_caller]
fn assert_refused(reply: &HttpResponse, status: u16, kind: &str, told: &str) {
    assert_eq!(reply.status, status, "{reply:?}");
    let error = &reply.json()["error"];
    assert_eq!(error["type"], kind);
    assert!(error["message"].as_str().unwrap().contains(told), "{error}");
    let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!(wait >= 1);
    assert_eq!(reply.header("x-should-retry"), None, "this is the SDK's to try again");
}

#[test]
fn s09_a_stream_keeps_its_place_until_its_end() {
    let provider = endless_provider();
    let limits = json!({ "max_concurrent": 1, "max_concurrent_per_caller": 1, "max_queued": 0 });
    let (_server, client) = server_with_limits(&provider, &limits);
    let stream = open_stream(&client, &chat_request("go on"));
    assert_refused(&client.post(CHAT, &chat_request("me too")), 429, "rate_limit_error", "server is overloaded");
    let embeddings = json!({ "model": "auto", "input": "a text" });
    assert_refused(&client.post("/v1/embeddings", &embeddings), 429, "rate_limit_error", "server is overloaded");
    let tool = client.post("/mcp", &call(1, "inspect_server", json!({})));
    assert_eq!((tool.status, &tool.json()["error"]["code"]), (429, &json!(-32002)));
    // Lookups need no permit.
    assert_eq!(client.post("/mcp", &request(1, "ping", json!({}))).status, 200);
    assert_eq!(client.get("/v1/models").status, 200);
    assert_eq!(client.get("/health").status, 200);
    drop(stream);
    wait_for("the place to be free", || {
        let tool = client.post("/mcp", &call(1, "inspect_server", json!({})));
        (tool.status == 200).then_some(())
    });
    drop(open_stream(&client, &chat_request("go on")));
}

#[test]
fn s10_bodies_in_flight_share_the_memory_of_the_settings() {
    let provider = endless_provider();
    let (_server, client) = server_with_limits(&provider, &json!({ "max_body_memory": "64KiB" }));
    let large = chat_request(&"words ".repeat(8000));
    let stream = open_stream(&client, &large);
    assert_refused(&client.post(CHAT, &large), 503, "server_error", "server.limits.max_body_memory");
    assert_eq!(client.post("/mcp", &request(1, "ping", json!({}))).status, 200, "what fits is served");
    let shown = client.get("/metrics").body;
    assert!(shown.contains("corbie_admission_shed_total{reason=\"body_memory\"} 1"), "{shown}");
    drop(stream);
    wait_for("its memory to be free", || {
        let again = client.open("POST", CHAT, &[], &large.to_string()).unwrap();
        (again.head.status == 200).then_some(())
    });
}

#[test]
fn s09_x20_a_limit_for_all_callers_is_a_setting() {
    let mut server = corbie("serve --port 0")
        .variable("CORBIE_SERVER__GLOBAL_RATE_LIMIT__PER_SECOND", 1)
        .variable("CORBIE_SERVER__GLOBAL_RATE_LIMIT__BURST", 4)
        .start();
    let client = server.client();
    let ping = request(1, "ping", json!({}));
    let replies: Vec<HttpResponse> = (0..20).map(|_| client.post("/mcp", &ping)).collect();
    assert_eq!(replies[0].status, 200);
    let refused = replies.iter().find(|reply| reply.status == 429).expect("twenty are too many");
    let error = &refused.json()["error"];
    assert_eq!(error["code"], -32002);
    assert!(error["data"]["details"]["retry_after_ms"].as_u64().unwrap() > 0, "{error}");
    assert!(refused.header("retry-after").is_some());
}

#[test]
fn k41_a_caller_may_let_so_much_wait_also_after_a_restart() {
    let storage = tempfile::tempdir().unwrap();
    let start = || {
        corbie("serve --port 0")
            .variable("CORBIE_KNOWLEDGE__STORAGE_PATH", storage.path().display())
            .variable("CORBIE_KNOWLEDGE__MAX_UPLOADS_MB_PER_CALLER", 1)
            .start()
    };
    let upload =
        |client: &HttpClient, bytes: usize| client.call_bytes("POST", "/files?filename=a.txt", &vec![b'a'; bytes]);
    let mut first = start();
    let client = first.client();
    assert_eq!(upload(&client, 900_000).status, 201);
    let check = |client: &HttpClient| {
        let refused = upload(client, 300_000);
        assert_eq!((refused.status, &refused.json()["error"]), (429, &json!("too_many_uploads")));
        let told = refused.json()["message"].to_string();
        assert!(told.contains("your pending uploads use 1 of 1 MB") && told.contains("knowledge-add"), "{told}");
    };
    check(&client);
    first.terminate();
    first.wait_timeout(Duration::from_secs(20));
    let mut second = start();
    let client = second.client();
    check(&client);
    assert_eq!(upload(&client, 100_000).status, 201, "what fits is taken");
}
