//! Hostile, broken or confused peers: each gets a clear error or a clean close, and the next client is served.

mod fixture;

use std::time::Duration;

use corbie_mcp::transport::http::Options;
use corbie_mcp::{Error, Limits, Prompt, Resource, Server, TrustLevel};
use fixture::peer::{self, JSON, Stdio, TEST_TIMEOUT, TestTransport, assert_served, call, http, request, websocket};
use futures_util::SinkExt;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

const PING: &str = r#"{"jsonrpc":"2.0","id":"next","method":"ping"}"#;

async fn listen_with(limits: Limits) -> u16 {
    let server = fixture::builder(Default::default()).limits(limits).build().expect("valid");
    fixture::listen(&server, Options::default()).await
}

async fn listen() -> u16 {
    listen_with(fixture::quick_limits()).await
}

/// Answers of stdio, HTTP and WebSocket to the same message; each then serves the next one on the same connection.
async fn answers(server: &Server, message: &str) -> [Value; 3] {
    let mut stdio = Stdio::start(server, TrustLevel::Trusted);
    stdio.send(message).await;
    let over_stdio = stdio.receive().await;
    stdio.send(PING).await;
    assert_eq!(stdio.receive().await["id"], "next", "after {message:.200}");

    let port = fixture::listen(server, Options::default()).await;
    let over_http = http(port, "POST", "/mcp", &[JSON], message).await.json();
    assert_served(port).await;

    let mut socket = websocket(port).await;
    socket.send(Message::text(message)).await.expect("open");
    let over_websocket = peer::ws_receive(&mut socket).await;
    socket.send(Message::text(PING)).await.expect("open");
    assert_eq!(peer::ws_receive(&mut socket).await["id"], "next", "after {message:.200}");
    [over_stdio, over_http, over_websocket]
}

/// Every transport rejects the message with this ID and code, and with an error message (E-15).
async fn check(message: &str, id: Value, code: i64) {
    for answer in answers(&fixture::server(), message).await {
        let error = &answer["error"];
        assert_eq!((&answer["id"], &error["code"]), (&id, &json!(code)), "{message:.200}: {}", brief(&answer));
        assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{}", brief(&answer));
        assert!(error["data"]["error_type"].is_string(), "{}", brief(&answer));
    }
}

fn brief(answer: &Value) -> String {
    answer.to_string().chars().take(300).collect()
}

#[tokio::test]
async fn e01_e15_what_is_not_json_is_a_parse_error() {
    for message in
        ["nonsense", r#"{"jsonrpc":"2.0","id":1,"#, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}}"#, "[", "{'id':1}"]
    {
        check(message, Value::Null, -32700).await;
    }
}

#[tokio::test]
async fn e02_s04_what_is_not_a_json_rpc_message_is_an_invalid_request() {
    for message in ["1", "\"text\"", "true", r#"{"jsonrpc":"2.0"}"#, r#"{"jsonrpc":"2.0","method":7}"#] {
        check(message, Value::Null, -32600).await;
    }
    check(r#"{"jsonrpc":"2.0","id":1}"#, json!(1), -32600).await;
}

#[tokio::test]
async fn m09_a_response_is_never_answered_however_it_is_made() {
    let mut peer = Stdio::start(&fixture::server(), TrustLevel::Trusted);
    for response in [r#"{"jsonrpc":"2.0","id":1,"error":"no object"}"#, r#"{"jsonrpc":"2.0","id":9,"result":5}"#] {
        peer.send(response).await;
        assert_eq!(peer.call(&request(2, "ping", json!({}))).await["id"], 2, "{response}");
    }
}

/// A client waits for the answer to its ID and would wait forever for an answer without one.
#[tokio::test]
async fn e02_a_refusal_carries_the_id_wherever_it_can_be_read() {
    for message in [r#"{"jsonrpc":"2.0","id":1,"method":7}"#, r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#] {
        check(message, json!(1), -32600).await;
    }
}

#[tokio::test]
async fn e03_an_unknown_method_is_not_found() {
    for method in ["no/such/method", "", "tools/call/", "TOOLS/LIST", "__proto__"] {
        check(&request(1, method, json!({})).to_string(), json!(1), -32601).await;
    }
}

#[tokio::test]
async fn e04_s04_params_and_names_of_the_wrong_kind_are_invalid_params() {
    for (method, params) in [
        ("tools/list", json!([1])),
        ("tools/list", json!("text")),
        ("tools/list", json!({ "cursor": 7 })),
        ("tools/call", json!({})),
        ("tools/call", json!({ "name": 7 })),
        ("tools/call", json!({ "name": "echo", "arguments": [] })),
        ("tools/call", json!({ "name": "no_such_tool" })),
        ("tools/call", json!({ "name": "echo", "_meta": [] })),
        ("resources/read", json!({ "uri": "fixture://nothing" })),
        ("prompts/get", json!({ "name": "nothing" })),
    ] {
        check(&request(1, method, params).to_string(), json!(1), -32602).await;
    }
}

/// Long peer input is not echoed in full.
#[tokio::test]
async fn s10_a_long_name_is_clipped_in_the_error_about_it() {
    let (server, long) = (fixture::server(), "x".repeat(100_000));
    for (method, params) in [
        (long.as_str(), json!({})),
        ("tools/call", json!({ "name": long })),
        ("resources/read", json!({ "uri": long })),
        ("prompts/get", json!({ "name": long })),
        ("tasks/get", json!({ "taskId": long })),
    ] {
        let answer = peer::request_over_stdio(&server, &request(1, method, params)).await;
        assert!(answer["error"].is_object(), "{method:.50}");
        assert!(answer.to_string().len() < 2000, "{method:.50}: {} bytes", answer.to_string().len());
    }
}

#[tokio::test]
async fn m10_an_id_that_is_no_string_or_integer_is_an_invalid_request() {
    for id in ["null", "1.5", "1e3", "{}", "[1]", "true", &"9".repeat(400)] {
        check(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#), Value::Null, -32600).await;
    }
}

#[tokio::test]
async fn s04_a_key_given_twice_is_refused_not_guessed_at() {
    check(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, Value::Null, -32600).await;
    check(r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#, Value::Null, -32600).await;
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"wipe"}}"#;
    check(twice, json!(1), -32602).await;
}

#[tokio::test]
async fn s10_deep_nesting_is_refused_before_it_is_parsed() {
    check(&"[".repeat(100_000), Value::Null, -32700).await;
    let deep = format!("{}{}", r#"{"a":"#.repeat(200), "}".repeat(200));
    let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{deep}}}"#);
    check(&message, Value::Null, -32700).await;
}

#[tokio::test]
async fn s10_brackets_inside_a_string_are_no_nesting() {
    let text = r#"\"[{"#.repeat(1000);
    for answer in answers(&fixture::server(), &call(1, "echo", json!({ "text": text })).to_string()).await {
        assert_eq!(peer::text_of(&answer), text);
    }
}

#[tokio::test]
async fn s10_a_number_too_large_for_any_type_is_refused() {
    let call =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1e999,"b":1}}}"#;
    check(call, json!(1), -32602).await;
}

#[tokio::test]
async fn m08_x27_a_batch_is_answered_as_an_array_without_entries_for_notifications() {
    let batch = json!([
        request(1, "ping", json!({})),
        { "jsonrpc": "2.0", "method": "no/such/notification" },
        7,
        request(2, "no/such/method", json!({})),
    ]);
    for answer in answers(&fixture::server(), &batch.to_string()).await {
        let seen: Vec<_> =
            answer.as_array().expect("an array").iter().map(|one| (&one["id"], &one["error"]["code"])).collect();
        let expected = [(json!(1), Value::Null), (Value::Null, json!(-32600)), (json!(2), json!(-32601))];
        assert_eq!(seen, expected.iter().map(|(id, code)| (id, code)).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn m08_s10_an_empty_batch_and_one_too_long_are_invalid_requests() {
    check("[]", Value::Null, -32600).await;
    let members = vec![request(1, "ping", json!({})); Limits::default().max_batch + 1];
    check(&json!(members).to_string(), Value::Null, -32600).await;
}

#[tokio::test]
async fn s10_requests_beyond_those_allowed_in_flight_are_refused_in_batches_too() {
    let gate = fixture::Gate::new();
    let limits = Limits { max_in_flight: 1, ..fixture::quick_limits() };
    let server = fixture::builder(Default::default()).limits(limits).tool(gate.tool()).build().expect("valid");
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    peer.send(&call(1, "gate", json!({})).to_string()).await;
    gate.entered().await;
    assert_eq!(peer.call(&request(2, "ping", json!({}))).await["error"]["code"], -32002);
    let batch = peer.call(&json!([request(3, "ping", json!({}))])).await;
    gate.open();
    assert_eq!(peer::text_of(&peer.receive().await), "through the gate");
    assert_eq!(peer.call(&request(4, "ping", json!({}))).await["result"], json!({}));
    assert_eq!(batch[0]["error"]["code"], -32002, "{batch}");
}

fn panics<T>() -> Result<T, Error> {
    panic!("secret detail of the panic")
}

#[tokio::test]
async fn s03_e05_a_panic_anywhere_is_an_error_without_internals() {
    let server = fixture::builder(Default::default())
        .method("broken", async |_, _| panics())
        .resource(Resource::new("fixture://broken", "broken", async |_| panics()))
        .prompt(Prompt::new("broken", "Panic", async |_, _| panics()))
        .build()
        .expect("valid");
    for (method, params) in [
        ("broken", json!({})),
        ("resources/read", json!({ "uri": "fixture://broken" })),
        ("prompts/get", json!({ "name": "broken" })),
        ("tools/call", json!({ "name": "panic" })),
    ] {
        for way in TestTransport::ALL {
            let answer = way.request(&server, TrustLevel::Trusted, &request(1, method, params.clone())).await;
            let text = answer.to_string();
            assert!(text.contains("Internal error: "), "{method} over {way:?}: {text}");
            assert!(["secret", "panicked", ".rs", "/src/"].iter().all(|word| !text.contains(word)), "{text}");
            assert!(method == "tools/call" || answer["error"]["code"] == -32603, "{method} over {way:?}: {text}");
        }
    }
}

#[tokio::test]
async fn e17_an_error_says_what_to_do() {
    let server = fixture::server();
    for (method, params, words) in [
        ("tools/lst", json!({}), "did you mean `tools/list`?"),
        ("tools/call", json!({ "name": "ech" }), "did you mean `echo`? use `tools/list`"),
        ("tools/call", json!({ "name": "zzz" }), "unknown tool `zzz`; use `tools/list`"),
        ("tools/call", json!({ "name": "stuck" }), "increase `tool_timeouts.stuck` or reduce the request"),
        ("tools/list", json!({ "cursor": "bogus" }), "omit it to start at the first page"),
        ("resources/read", json!({ "uri": "x:y" }), "unknown resource `x:y`; use `resources/list`"),
        ("prompts/get", json!({ "name": "zzz" }), "unknown prompt `zzz`; use `prompts/list`"),
        ("prompts/get", json!({ "name": "greet" }), "requires the argument `name`"),
    ] {
        let message = peer::request_over_stdio(&server, &request(1, method, params)).await["error"]["message"].clone();
        assert!(message.as_str().is_some_and(|text| text.contains(words)), "{message}");
    }
}

#[tokio::test]
async fn e17_an_unknown_method_that_resembles_none_says_what_to_do_too() {
    let answer = peer::request_over_stdio(&fixture::server(), &request(1, "zzz", json!({}))).await;
    assert_ne!(answer["error"]["message"], "unknown method `zzz`");
}

// === connections ===

fn head(port: u16, length: usize) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost:{port}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n"
    )
}

/// Sends these bytes only; the server must close the connection. Returns the status, 0 for none.
async fn status_of_unfinished(port: u16, bytes: &str) -> u16 {
    let reply = peer::raw(port, bytes.as_bytes()).await;
    assert_served(port).await;
    reply.status
}

#[tokio::test]
async fn s10_a_connection_that_stays_silent_or_stops_half_way_is_closed() {
    let port = listen().await;
    assert_eq!(status_of_unfinished(port, "").await, 0, "nothing was asked");
    assert!([0, 408].contains(&status_of_unfinished(port, "POST /mcp HTTP/1.1\r\nhost: local").await));
    assert_eq!(status_of_unfinished(port, &format!("{}\r\n{{\"jsonrpc\"", head(port, 100))).await, 408);
    let chunked = format!(
        "POST /mcp/ping HTTP/1.1\r\nhost: localhost:{port}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{{\"a"
    );
    assert_eq!(status_of_unfinished(port, &chunked).await, 408);
}

#[tokio::test]
async fn s10_a_body_cut_off_by_the_client_leaves_the_server_whole() {
    let port = listen().await;
    let mut stream = peer::connect(port).await;
    stream.write_all(format!("{}\r\n{{\"jsonrpc\"", head(port, 100)).as_bytes()).await.expect("writable");
    stream.shutdown().await.expect("open");
    assert!([0, 400].contains(&peer::until_closed(&mut stream).await.status));
    assert_served(port).await;
}

#[tokio::test]
async fn s10_what_is_not_http_is_refused() {
    let port = listen().await;
    for bytes in ["\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}", "hello there\r\n\r\n", "{\"jsonrpc\":\"2.0\"}\n\r\n\r\n"] {
        assert_eq!(status_of_unfinished(port, bytes).await, 400, "{bytes:?}");
    }
}

#[tokio::test]
async fn s10_headers_over_the_limit_are_refused() {
    let port = listen().await;
    let large = format!("{}x-large: {}\r\n\r\n", head(port, 0), "x".repeat(2 * Limits::default().max_header_bytes));
    assert_eq!(status_of_unfinished(port, &large).await, 431);
    let many = format!("{}{}\r\n", head(port, 0), "x: y\r\n".repeat(1000));
    assert_eq!(status_of_unfinished(port, &many).await, 431);
}

#[tokio::test]
async fn s10_a_body_that_is_not_json_by_its_type_gets_415() {
    let port = listen().await;
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx", ""] {
        for path in ["/mcp", "/mcp/ping"] {
            let reply = http(port, "POST", path, &[("content-type", kind)], PING).await;
            assert_eq!((reply.status, &reply.json()["error"]["code"]), (415, &json!(-32600)), "{path} {kind}");
        }
        assert_served(port).await;
    }
}

/// A web page can leave out the type, and send it anywhere without asking.
#[tokio::test]
async fn s10_a_body_without_a_type_or_with_another_beside_json_gets_415() {
    let port = listen().await;
    for path in ["/mcp", "/mcp/ping"] {
        for kinds in [&[][..], &[JSON, ("content-type", "text/plain")]] {
            assert_eq!(http(port, "POST", path, kinds, PING).await.status, 415, "{path} {kinds:?}");
        }
    }
    assert_eq!(http(port, "POST", "/mcp/ping", &[], "").await.status, 200, "nothing has no type");
}

#[tokio::test]
async fn s10_a_length_beside_chunks_gets_400() {
    let port = listen().await;
    let post = |more: &str| {
        format!(
            "POST /mcp/ping HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{more}\r\n2\r\n{{}}\r\n0\r\n\r\n"
        )
    };
    let (length, chunked) = ("Content-Length: 12\r\n", "transfer-encoding: chunked\r\n");
    let close = "connection: close\r\n";
    assert_eq!(peer::raw(port, post(&format!("{chunked}{close}")).as_bytes()).await.status, 200);
    for both in [format!("{length}{chunked}"), format!("{chunked}{length}")] {
        assert_eq!(peer::raw(port, post(&both).as_bytes()).await.status, 400, "{both}");
        // Behind another request, in the same packet and in a later one.
        let first = format!("GET /live HTTP/1.1\r\nhost: localhost\r\n\r\n{}", post(&both));
        let mut stream = peer::connect(port).await;
        stream.write_all(first.as_bytes()).await.expect("writable");
        let mut replies = String::new();
        timeout(TEST_TIMEOUT, stream.read_to_string(&mut replies)).await.expect("in time").expect("text");
        assert_eq!(replies.matches("HTTP/1.1 ").count(), 2, "{replies}");
        assert!(replies.contains("HTTP/1.1 400"), "{replies}");
    }
    assert_served(port).await;
}

#[tokio::test]
async fn s10_a_malformed_host_gets_400() {
    let port = listen().await;
    for host in
        ["a b", "local host", "localhost:port", "localhost:99999", "[::1", "::1", "a/b", "a@localhost", "\"", ""]
    {
        for (method, path) in [("GET", "/live"), ("POST", "/mcp")] {
            let reply = http(port, method, path, &[JSON, ("host", host)], PING).await;
            assert_eq!(reply.status, 400, "{path} {host:?}");
        }
    }
    assert_eq!(http(port, "GET", "/live", &[("host", "evil.example")], "").await.status, 403);
}

/// A client that sends its whole body before it reads has the reply all the same.
#[tokio::test]
async fn s10_a_413_reaches_a_client_that_is_still_sending() {
    let port = listen_with(Limits { max_message_bytes: 1000, ..fixture::quick_limits() }).await;
    const LENGTH: usize = 20_000_000;
    for framing in [format!("content-length: {LENGTH}\r\n"), "transfer-encoding: chunked\r\n".to_owned()] {
        let mut stream = peer::connect(port).await;
        let head = format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{framing}\r\n");
        stream.write_all(head.as_bytes()).await.expect("writable");
        if framing.starts_with("transfer") {
            stream.write_all(format!("{LENGTH:x}\r\n").as_bytes()).await.expect("writable");
        }
        let body = vec![b'x'; LENGTH];
        timeout(TEST_TIMEOUT, stream.write_all(&body)).await.expect("in time").expect("nobody resets the connection");
        let mut reply = String::new();
        timeout(TEST_TIMEOUT, stream.read_to_string(&mut reply)).await.expect("in time").expect("a whole reply");
        assert!(reply.starts_with("HTTP/1.1 413"), "{reply}");
    }
    // One that never ends is given up.
    let mut stream = peer::connect(port).await;
    let head =
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000000000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.expect("writable");
    let chunk = vec![b'x'; 1 << 20];
    let endless = async { while stream.write_all(&chunk).await.is_ok() {} };
    timeout(TEST_TIMEOUT, endless).await.expect("bounded");
    assert_served(port).await;
}

#[tokio::test]
async fn s10_a_body_that_is_not_utf8_or_too_deep_gets_400() {
    let port = listen().await;
    let deep = "[".repeat(1000).into_bytes();
    for body in [b"{\"method\":\"\xff\"}".to_vec(), deep] {
        for path in ["/mcp", "/mcp/tools/call"] {
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: localhost:{port}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            let reply = peer::raw(port, &[head.as_bytes(), &body].concat()).await;
            assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!(-32700)), "{path}");
        }
        assert_served(port).await;
    }
}

/// Writes byte by byte; an error means that the server closed the connection.
async fn drip(stream: &mut TcpStream, text: &str, pause: Duration) -> std::io::Result<()> {
    for byte in text.bytes() {
        stream.write_all(&[byte]).await?;
        tokio::time::sleep(pause).await;
    }
    Ok(())
}

#[tokio::test]
async fn s10_a_slow_writer_within_its_time_is_served() {
    let port = listen_with(Limits { request_read_timeout: TEST_TIMEOUT, ..fixture::quick_limits() }).await;
    let mut stream = peer::connect(port).await;
    let text = format!("{}connection: close\r\n\r\n{PING}", head(port, PING.len()));
    drip(&mut stream, &text, Duration::ZERO).await.expect("the server reads on");
    assert_eq!(peer::until_closed(&mut stream).await.json()["id"], "next");
}

#[tokio::test]
async fn s10_a_writer_slower_than_that_is_timed_out() {
    let port =
        listen_with(Limits { request_read_timeout: Duration::from_millis(200), ..fixture::quick_limits() }).await;
    let endless = "x".repeat(10_000);
    for (start, status) in [(format!("{}x: ", head(port, 1)), 0), (format!("{}\r\n", head(port, 20_000)), 408)] {
        let mut stream = peer::connect(port).await;
        stream.write_all(start.as_bytes()).await.expect("writable");
        let dripped = drip(&mut stream, &endless, Duration::from_millis(10));
        timeout(TEST_TIMEOUT, dripped).await.expect("hung up in time").expect_err("hung up");
        assert!([0, status].contains(&peer::until_closed(&mut stream).await.status));
        assert_served(port).await;
    }
}

#[tokio::test]
async fn s10_a_client_that_never_reads_its_answers_is_dropped() {
    let port = listen().await;
    let mut stream = peer::connect(port).await;
    let body = call(1, "echo", json!({ "text": "x".repeat(1_000_000) })).to_string();
    let request = format!("{}\r\n{body}", head(port, body.len()));
    // Sends requests on one connection until the buffers are full and the server closes it.
    let asking = async { while stream.write_all(request.as_bytes()).await.is_ok() {} };
    timeout(TEST_TIMEOUT, asking).await.expect("hung up in time");
    assert_served(port).await;
}

/// A connection that is in use: the rest of its body is awaited.
async fn busy(port: u16) -> TcpStream {
    let mut stream = peer::connect(port).await;
    stream.write_all(format!("{}\r\n{{", head(port, 100)).as_bytes()).await.expect("writable");
    stream
}

#[tokio::test]
async fn s10_too_many_connections_are_turned_away_until_one_closes() {
    let port =
        listen_with(Limits { max_connections: 2, request_read_timeout: TEST_TIMEOUT, ..fixture::quick_limits() }).await;
    let held = [busy(port).await, busy(port).await];
    // Those two may not have been read yet.
    peer::eventually(async || {
        let reply = peer::raw(port, format!("{}connection: close\r\n\r\n", head(port, 0)).as_bytes()).await;
        reply.status == 503 && reply.headers["retry-after"] == "1"
    })
    .await;
    drop(held);
    peer::eventually(async || peer::raw(port, b"GET /metrics HTTP/1.0\r\nhost: localhost\r\n\r\n").await.status == 200)
        .await;
    assert_served(port).await;
}

#[tokio::test]
async fn s10_silent_connections_do_not_keep_others_out() {
    let limits = Limits { max_connections: 2, request_read_timeout: TEST_TIMEOUT * 3, ..fixture::quick_limits() };
    let port = listen_with(limits).await;
    let mut held = Vec::new();
    for _ in 0..20 {
        held.push(peer::connect(port).await);
        assert_served(port).await;
    }
    for page in ["/live", "/ready", "/health"] {
        assert_eq!(http(port, "GET", page, &[], "").await.status, 200, "{page}");
    }
}
