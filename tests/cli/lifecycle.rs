//! Shutdown on signals and at the end of stdin, with and without running requests.
//!
//! The product has no slow tool. If one is needed, the tests use the library's example server, which shares the
//! shutdown code. The product's only request that runs until shutdown is `subscriptions/listen`.

use std::io::{ErrorKind, Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{HttpClient, StreamingResponse};
use crate::process::{TestCommand, TestProcess, call, corbie, example_server, modern_meta, request, wait_for};
use crate::websocket::{WebSocket, WebSocketFrame};

/// Tolerance for a shutdown on a busy machine.
const SLACK: Duration = Duration::from_secs(2);

/// A request that is answered when the server stops.
fn listen_request(id: &str) -> Value {
    request(
        id,
        "subscriptions/listen",
        json!({ "_meta": modern_meta(), "notifications": { "toolsListChanged": true } }),
    )
}

/// Calls a tool that takes `seconds`, on a separate thread; returns once it is running.
fn call_slow_tool(client: HttpClient, seconds: u64) -> thread::JoinHandle<std::io::Result<Value>> {
    let arguments = json!({ "seconds": seconds, "label": "Slow work" });
    let calling = thread::spawn(move || {
        let reply = client.try_call("POST", "/mcp", &[], &call("slow", "slow_compute", arguments).to_string())?;
        assert_eq!(reply.status, 200, "{reply:?}");
        Ok(reply.json())
    });
    wait_until_running(client);
    calling
}

fn wait_until_running(client: HttpClient) {
    wait_for("the request to run", || {
        client.get("/metrics").body.contains("corbie_requests_in_flight 1").then_some(())
    });
}

fn wait_until_draining(client: HttpClient) {
    wait_for("the drain to begin", || (client.get("/ready").status == 503).then_some(()));
}

/// `corbie` with this grace period in seconds.
fn with_grace(arguments: &str, seconds: u64) -> TestCommand {
    corbie(arguments).variable("CORBIE_SERVER__SHUTDOWN_GRACE_SECONDS", seconds)
}

// === shutdown while idle ===

/// Measured in CPU seconds, so that other load on the machine does not matter. The grace period is 30 s.
#[cfg(target_os = "linux")]
#[test]
fn n13_it_is_ready_within_two_seconds_and_gone_within_its_grace() {
    let mut server = corbie("serve --port 0").start();
    assert_eq!(server.client().get("/ready").status, 200);
    let ready = server.cpu_seconds();
    assert!(ready > 0.0 && ready < 2.0, "{ready} s");
    server.signal("TERM");
    assert_eq!(server.wait_timeout(Duration::from_secs(30)).code, Some(0));
}

#[test]
fn a07_a_signal_ends_an_idle_server_at_once_and_well() {
    for signal in ["TERM", "INT"] {
        for arguments in ["stdio", "serve --port 0", "serve --stdio --port 0"] {
            let mut server = corbie(arguments).start();
            if arguments.contains("stdio") {
                server.send_and_receive(&request(1, "ping", json!({})));
            }
            if arguments.contains("serve") {
                server.client().get("/ready");
            }
            server.signal(signal);
            let ended = server.wait_timeout(SLACK);
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{signal} {arguments:?}: {ended:?}");
            assert!(ended.stderr.contains("shutting down"), "{ended:?}");
        }
    }
}

/// A supervisor that reads the log may stop the server as soon as it logs that it serves.
#[test]
fn a07_a_signal_is_heard_from_the_first_line_of_the_log_on() {
    for (arguments, line) in [("stdio", "serving"), ("serve --port 0", "listening")].repeat(10) {
        let mut server = corbie(arguments).start();
        server.wait_for_log(line);
        server.signal("TERM");
        let ended = server.wait_timeout(SLACK);
        assert_eq!(ended.code, Some(0), "no exit code means that the signal killed it: {ended:?}");
    }
}

#[test]
fn a07_the_end_of_stdin_ends_it_when_all_is_answered() {
    let count = 500;
    let mut input: String = (0..count).map(|id| format!("{}\n", call(id, "inspect_server", json!({})))).collect();
    input += &json!([request("a", "ping", json!({})), request("b", "tools/list", json!({}))]).to_string();
    // The last line has no newline and still counts.
    let ended = corbie("").run(&input);
    assert_eq!(ended.code, Some(0));
    let answers = ended.messages();
    assert_eq!(answers.len(), count + 1);
    let mut ids: Vec<u64> = answers.iter().filter_map(|answer| answer["id"].as_u64()).collect();
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..count as u64), "each request has its answer");
    assert!(answers.iter().any(|answer| answer.as_array().is_some_and(|batch| batch.len() == 2)));
}

#[test]
fn a07_where_ports_are_served_too_the_end_of_stdin_leaves_them_open() {
    let mut server = corbie("serve --stdio --port 0").start();
    let client = server.client();
    server.send_and_receive(&request(1, "ping", json!({})));
    server.close_stdin();
    for _ in 0..20 {
        assert_eq!(client.get("/ready").status, 200);
    }
    server.signal("TERM");
    assert_eq!(server.wait_timeout(SLACK).code, Some(0));
}

#[test]
fn a07_connections_that_are_kept_open_do_not_hold_it_up() {
    let mut server = corbie("serve --port 0").start();
    let client = server.client();
    let mut silent = client.connect().unwrap();
    let mut idle = client.connect().unwrap();
    idle.write_all(format!("GET /live HTTP/1.1\r\nHost: {}\r\n\r\n", client.0).as_bytes()).unwrap();
    let mut reply = [0; 12];
    idle.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"HTTP/1.1 200");
    let mut news = client.open("GET", "/mcp", &[("Accept", "text/event-stream")], "").unwrap();
    assert_eq!(news.head.status, 200);

    server.signal("TERM");
    let ended = server.wait_timeout(SLACK);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(news.read_event().unwrap().is_none(), "the stream of news ends whole");
    assert!(matches!(silent.read(&mut reply), Ok(0)) || silent.take_error().unwrap().is_some());
}

#[test]
fn a07_an_open_websocket_is_told_that_the_server_goes_away() {
    let mut server = corbie("serve --port 0").start();
    let mut socket = WebSocket::connect(server.client());
    socket.send(&request(1, "ping", json!({})));
    assert_eq!(socket.message()["id"], 1);
    server.signal("TERM");
    assert_eq!(socket.receive().expect("a close frame, not a broken connection"), WebSocketFrame::Close(Some(1001)));
    assert_eq!(server.wait_timeout(SLACK).code, Some(0));
}

// === shutdown with a running request ===

#[test]
fn a07_v08_a_request_that_runs_over_stdio_is_answered_before_the_end() {
    for signal in ["TERM", "INT"] {
        let mut server = corbie("").start();
        let acknowledged = server.send_and_receive(&listen_request("running"));
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
        server.signal(signal);
        assert_eq!(server.receive()["method"], "notifications/cancelled");
        let answer = server.receive();
        assert_eq!((&answer["id"], &answer["result"]["resultType"]), (&json!("running"), &json!("complete")));
        let ended = server.wait_timeout(SLACK);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""));
    }
}

#[test]
fn a07_v08_a_request_that_runs_over_http_is_answered_before_the_end() {
    let mut server = corbie("serve --port 0").start();
    let headers = [
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "subscriptions/listen"),
    ];
    let mut stream = server.client().open("POST", "/mcp", &headers, &listen_request("running").to_string()).unwrap();
    let acknowledged = stream.read_event().unwrap().expect("an event");
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    server.signal("TERM");
    assert_eq!(stream.read_event().unwrap().expect("a goodbye")["method"], "notifications/cancelled");
    let answer = stream.read_event().unwrap().expect("the answer");
    assert_eq!((&answer["id"], &answer["result"]["resultType"]), (&json!("running"), &json!("complete")));
    assert!(stream.read_event().unwrap().is_none());
    assert_eq!(server.wait_timeout(SLACK).code, Some(0));
}

#[test]
fn a07_v08_a_slow_call_is_answered_and_new_ones_are_refused_meanwhile() {
    for signal in ["TERM", "INT"] {
        let mut server = example_server().start();
        let client = server.client();
        let slow = call_slow_tool(client, 2);
        server.signal(signal);
        wait_until_draining(client);

        // new requests get a server error, not silence.
        let refused = client.post("/mcp/tools/call", &json!({ "name": "greet", "arguments": { "name": "late" } }));
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (503, &json!(-32012)));
        let refused = client.post("/mcp", &request("late", "ping", json!({}))).json();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("late"), &json!(-32012)));

        let answer = slow.join().unwrap().expect("the slow call is answered");
        assert_eq!(answer["id"], "slow");
        assert_eq!(answer["result"]["content"][0]["text"], "Slow work done after 2 s");
        assert_eq!(server.wait_timeout(SLACK).code, Some(0));
    }
}

#[test]
fn a07_a08_over_a_websocket_the_slow_call_is_answered_and_new_ones_are_refused() {
    let mut server = example_server().start();
    let client = server.client();
    let mut socket = WebSocket::connect(client);
    socket.send(&call("slow", "slow_compute", json!({ "seconds": 1, "label": "Slow work" })));
    wait_until_running(client);
    server.signal("TERM");
    wait_until_draining(client);
    socket.send(&request("late", "ping", json!({})));
    let refused = socket.message();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("late"), &json!(-32012)));
    let answer = socket.message();
    assert_eq!(answer["result"]["content"][0]["text"], "Slow work done after 1 s");
    assert_eq!(server.wait_timeout(SLACK).code, Some(0));
}

#[test]
fn a08_a_request_half_sent_when_the_stop_comes_is_answered_when_it_is_whole() {
    let mut server = corbie("serve --port 0").start();
    let client = server.client();
    let body = json!({ "name": "inspect_server" }).to_string();
    let (first, second) = body.split_at(10);
    let mut connection = client.connect().unwrap();
    let head = client.head("POST", "/mcp/tools/call", &[], body.len());
    connection.write_all(format!("{head}{first}").as_bytes()).unwrap();
    wait_for("the connection to be known", || {
        client.get("/metrics").body.contains("corbie_connections 2").then_some(())
    });
    server.signal("TERM");
    server.wait_for_log("shutting down");
    connection.write_all(second.as_bytes()).unwrap();
    let mut reply = StreamingResponse::read_head(connection).expect("an answer, not silence");
    reply.read_body().unwrap();
    // Counted as running it is served; counted as new it is rejected. Either is a valid answer.
    match reply.head.status {
        200 => assert_eq!(reply.head.json()["isError"], false),
        503 => assert_eq!(reply.head.json()["error"]["code"], -32012),
        other => panic!("{other}: {:?}", reply.head),
    }
    assert_eq!(server.wait_timeout(SLACK).code, Some(0));
}

// === the limit of the drain ===

#[test]
fn a08_a_request_that_is_never_sent_whole_is_not_waited_for_longer_than_the_grace() {
    let mut server = with_grace("serve --port 0", 1).start();
    let client = server.client();
    let mut connection = client.connect().unwrap();
    connection.write_all(client.head("POST", "/mcp", &[], 1000).as_bytes()).unwrap();
    connection.write_all(b"{").unwrap();
    wait_for("the connection to be known", || {
        client.get("/metrics").body.contains("corbie_connections 2").then_some(())
    });
    server.signal("TERM");
    assert_eq!(server.wait_timeout(Duration::from_secs(1) + SLACK).code, Some(0));
}

/// A client that sends and never reads, until all buffers are full.
fn with_a_client_that_does_not_read(grace: u64, message: &Value) -> TestProcess {
    let mut server = with_grace("", grace).start();
    server.wait_for_log("serving");
    let line = format!("{message}\n");
    server.flood(line.repeat(1024 * 1024 / line.len()));
    server
}

fn assert_stopped_within_grace(message: &Value) {
    let grace = 3;
    let mut server = with_a_client_that_does_not_read(grace, message);
    server.signal("TERM");
    server.wait_for_log("shutting down");
    server.wait_timeout(Duration::from_secs(grace) + SLACK);
}

fn assert_stopped_by_second_signal(message: &Value) {
    let mut server = with_a_client_that_does_not_read(30, message);
    server.signal("TERM");
    server.wait_for_log("shutting down");
    server.signal("TERM");
    server.wait_timeout(SLACK);
}

fn single_request() -> Value {
    request(1, "tools/list", json!({}))
}

fn batch_request() -> Value {
    json!((0..50).map(|id| request(id, "tools/list", json!({}))).collect::<Vec<_>>())
}

#[test]
fn a08_a_client_that_does_not_read_is_not_waited_for_longer_than_the_grace() {
    assert_stopped_within_grace(&single_request());
}

#[test]
fn a08_a_client_that_does_not_read_its_batches_is_not_waited_for_longer_than_the_grace() {
    assert_stopped_within_grace(&batch_request());
}

#[test]
fn a08_a_second_signal_ends_it_at_once_when_a_client_does_not_read() {
    assert_stopped_by_second_signal(&single_request());
}

#[test]
fn a08_a_second_signal_ends_it_at_once_when_a_client_does_not_read_its_batches() {
    assert_stopped_by_second_signal(&batch_request());
}

#[test]
fn a08_a_second_signal_ends_it_at_once_when_a_call_is_slow() {
    for (first, second) in [("TERM", "TERM"), ("INT", "INT"), ("TERM", "INT")] {
        let mut server = example_server().start();
        let client = server.client();
        let slow = call_slow_tool(client, 25);
        server.signal(first);
        wait_until_draining(client);
        server.signal(second);
        let asked = Instant::now();
        server.wait_timeout(SLACK);
        assert!(asked.elapsed() < Duration::from_secs(1), "at once, not after {:?}", asked.elapsed());
        let broken = slow.join().unwrap().expect_err("there was no time to answer");
        assert!(matches!(broken.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset), "{broken}");
    }
}

#[test]
fn a08_a_second_signal_ends_it_at_once_when_a_request_is_half_sent() {
    let mut server = corbie("serve --port 0").start();
    let client = server.client();
    let mut connection = client.connect().unwrap();
    connection.write_all(client.head("POST", "/mcp", &[], 1000).as_bytes()).unwrap();
    wait_for("the connection to be known", || {
        client.get("/metrics").body.contains("corbie_connections 2").then_some(())
    });
    server.signal("TERM");
    server.wait_for_log("shutting down");
    server.signal("TERM");
    server.wait_timeout(Duration::from_secs(1));
}
