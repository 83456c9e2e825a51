//! `ws://…/mcp`: one JSON-RPC message per text frame, in both directions, and misbehaving peers.

mod fixture;

use std::time::Duration;

use corbie_mcp::transport::http::Options;
use corbie_mcp::{Limits, Server, Tool};
use fixture::peer::{
    self, TEST_TIMEOUT, WebSocket, call, initialize, request, text_of, websocket, ws_receive, ws_send,
};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

async fn listen(server: &Server) -> u16 {
    fixture::listen(server, Options::default()).await
}

async fn listen_with(limits: Limits) -> u16 {
    listen(&fixture::builder(Default::default()).limits(limits).build().expect("valid")).await
}

async fn ask(socket: &mut WebSocket, message: &Value) -> Value {
    ws_send(socket, message).await;
    ws_receive(socket).await
}

/// The next frame except server pings.
async fn next(socket: &mut WebSocket) -> Option<Message> {
    loop {
        match timeout(TEST_TIMEOUT, socket.next()).await.expect("in time") {
            Some(Ok(Message::Ping(_))) => {}
            Some(Ok(frame)) => return Some(frame),
            Some(Err(_)) | None => return None,
        }
    }
}

/// The close code of the server.
async fn close_code(socket: &mut WebSocket) -> u16 {
    match next(socket).await {
        Some(Message::Close(Some(close))) => close.code.into(),
        other => panic!("not a close with a code: {other:?}"),
    }
}

/// A socket without a client: it neither reads nor answers pings.
async fn bare_socket(port: u16) -> TcpStream {
    let mut stream = peer::connect(port).await;
    let upgrade = format!(
        "GET /mcp HTTP/1.1\r\nhost: localhost:{port}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-protocol: mcp\r\n\r\n"
    );
    stream.write_all(upgrade.as_bytes()).await.expect("writable");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(timeout(TEST_TIMEOUT, stream.read_u8()).await.expect("in time").expect("a whole head"));
    }
    let head = String::from_utf8(head).expect("text").to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 101 ") && head.contains("sec-websocket-protocol: mcp\r\n"), "{head}");
    stream
}

/// A masked text frame; a mask of zeros leaves the payload unchanged.
fn frame(text: &str) -> Vec<u8> {
    let mut frame = vec![0x81, 0x80 | 127];
    frame.extend_from_slice(&(text.len() as u64).to_be_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(text.as_bytes());
    frame
}

#[tokio::test]
async fn t30_requests_are_answered_in_text_frames_without_a_handshake() {
    let mut socket = websocket(listen(&fixture::server()).await).await;
    let answer = ask(&mut socket, &call(1, "add", json!({ "a": 1, "b": 2 }))).await;
    assert_eq!((&answer["jsonrpc"], &answer["id"], text_of(&answer)), (&json!("2.0"), &json!(1), r#"{"sum":3}"#));
}

#[tokio::test]
async fn t30_a_slow_call_does_not_hold_up_a_later_fast_one() {
    let mut socket = websocket(listen(&fixture::server()).await).await;
    ws_send(&mut socket, &call(1, "wait", json!({ "ms": 300 }))).await;
    assert_eq!(ask(&mut socket, &request(2, "ping", json!({}))).await["id"], 2);
    assert_eq!(ws_receive(&mut socket).await["id"], 1);
}

#[tokio::test]
async fn t30_the_server_asks_and_the_client_answers_on_the_same_socket() {
    let mut socket = websocket(listen(&fixture::server()).await).await;
    ask(&mut socket, &initialize("2025-11-25", json!({ "elicitation": {} }))).await;
    let question = ask(&mut socket, &call(1, "ask_name", json!({}))).await;
    assert_eq!(question["method"], "elicitation/create");
    let content = json!({ "action": "accept", "content": { "name": "Ada" } });
    let answer = ask(&mut socket, &json!({ "jsonrpc": "2.0", "id": question["id"], "result": content })).await;
    assert_eq!(text_of(&answer), "Accept Ada");
}

#[tokio::test]
async fn t30_m08_a_batch_is_one_frame_in_and_one_frame_out() {
    let mut socket = websocket(listen(&fixture::server()).await).await;
    let batch =
        json!([request(1, "ping", json!({})), { "jsonrpc": "2.0", "method": "x" }, request(2, "ping", json!({}))]);
    let answers = ask(&mut socket, &batch).await;
    assert_eq!(
        answers,
        json!([{ "jsonrpc": "2.0", "id": 1, "result": {} }, { "jsonrpc": "2.0", "id": 2, "result": {} }])
    );
}

#[tokio::test]
async fn t31_progress_is_pushed_before_the_answer() {
    let mut socket = websocket(listen(&fixture::server()).await).await;
    let mut steps = call(1, "steps", json!({}));
    steps["params"]["_meta"] = json!({ "progressToken": "token" });
    ws_send(&mut socket, &steps).await;
    let mut progress = Vec::new();
    let answer = loop {
        let message = ws_receive(&mut socket).await;
        match message["method"].as_str() {
            Some("notifications/progress") => progress.push(message["params"]["progress"].clone()),
            Some(_) => {}
            None => break message,
        }
    };
    assert_eq!((progress, text_of(&answer)), (vec![json!(1), json!(2), json!(3)], "done"));
}

#[tokio::test]
async fn t31_changed_lists_are_pushed_to_a_client_that_said_initialize() {
    let server = fixture::server();
    let mut socket = websocket(listen(&server).await).await;
    ask(&mut socket, &initialize("2025-11-25", json!({}))).await;
    let late = Tool::builder("late").description("Came later").no_input().run(async |_, _| "late");
    server.register(late.expect("valid")).expect("new");
    assert_eq!(ws_receive(&mut socket).await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn t31_a_binary_frame_is_refused_with_a_close_code() {
    let port = listen(&fixture::server()).await;
    let mut socket = websocket(port).await;
    socket.send(Message::binary(request(1, "ping", json!({})).to_string())).await.expect("open");
    assert_eq!(close_code(&mut socket).await, 1003);
    peer::assert_served(port).await;
}

#[tokio::test]
async fn t31_a_ping_is_answered_with_its_pong() {
    let mut socket = websocket(listen(&fixture::server()).await).await;
    socket.send(Message::Ping("are you there".into())).await.expect("open");
    assert_eq!(next(&mut socket).await, Some(Message::Pong("are you there".into())));
}

#[tokio::test]
async fn t31_a_quiet_client_that_answers_pings_is_kept() {
    let limits = Limits { idle_timeout: Duration::from_secs(2), ..fixture::quick_limits() };
    let mut socket = websocket(listen_with(limits.clone()).await).await;
    let pings = limits.idle_timeout.as_millis() / limits.keep_alive_interval.as_millis() * 3 / 2;
    for _ in 0..pings {
        let frame = timeout(TEST_TIMEOUT, socket.next()).await.expect("in time");
        assert!(matches!(frame, Some(Ok(Message::Ping(_)))), "{frame:?}");
    }
    assert_eq!(ask(&mut socket, &request(1, "ping", json!({}))).await["id"], 1);
}

#[tokio::test]
async fn t31_a_client_that_answers_no_ping_is_closed() {
    let port = listen_with(Limits { idle_timeout: Duration::from_millis(300), ..fixture::quick_limits() }).await;
    let mut silent = bare_socket(port).await;
    // Half a frame counts as idle.
    silent.write_all(&frame("{}")[..5]).await.expect("writable");
    peer::until_closed(&mut silent).await;
    peer::assert_served(port).await;
}

#[tokio::test]
async fn t31_a_leaving_client_is_let_go() {
    let port = listen(&fixture::server()).await;
    let mut socket = websocket(port).await;
    socket.close(None).await.expect("open");
    assert!(matches!(next(&mut socket).await, Some(Message::Close(_)) | None));
    peer::assert_served(port).await;
}

#[tokio::test]
async fn x12_m09_each_frame_is_json_rpc_2_0_and_notifications_stay_unanswered() {
    let mut socket = websocket(listen(&fixture::server()).await).await;
    let answer = ask(&mut socket, &json!({ "id": 1, "method": "ping" })).await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32600)));
    ws_send(&mut socket, &json!({ "jsonrpc": "2.0", "method": "no/such/notification" })).await;
    assert_eq!(ask(&mut socket, &request(2, "ping", json!({}))).await["id"], 2);
}

#[tokio::test]
async fn s10_a_frame_over_the_limit_closes_the_socket_and_no_other() {
    let port = listen_with(Limits { max_message_bytes: 1000, ..fixture::quick_limits() }).await;
    let (mut bystander, mut socket) = (websocket(port).await, websocket(port).await);
    ws_send(&mut socket, &call(1, "echo", json!({ "text": "x".repeat(1000) }))).await;
    assert_eq!(close_code(&mut socket).await, 1009);
    assert_eq!(ask(&mut bystander, &request(2, "ping", json!({}))).await["id"], 2);
}

/// RFC 6455, section 8.1.
#[tokio::test]
async fn s10_a_frame_that_is_not_utf8_closes_the_socket_and_says_so() {
    let port = listen(&fixture::server()).await;
    let mut socket = websocket(port).await;
    let frame = Frame::message(vec![b'"', 0xff, b'"'], OpCode::Data(Data::Text), true);
    socket.send(Message::Frame(frame)).await.expect("open");
    assert_eq!(close_code(&mut socket).await, 1007);
    peer::assert_served(port).await;
}

#[tokio::test]
async fn s10_a_frame_sent_byte_by_byte_is_served() {
    let mut socket = bare_socket(listen(&fixture::server()).await).await;
    for byte in frame(&request(1, "ping", json!({})).to_string()) {
        socket.write_all(&[byte]).await.expect("writable");
        tokio::task::yield_now().await;
    }
    let expected = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(expected) {
        seen.push(timeout(TEST_TIMEOUT, socket.read_u8()).await.expect("in time").expect("open"));
    }
}

#[tokio::test]
async fn s10_open_sockets_count_as_connections() {
    let port = listen_with(Limits { max_connections: 1, ..fixture::quick_limits() }).await;
    let mut socket = websocket(port).await;
    assert_eq!(ask(&mut socket, &request(1, "ping", json!({}))).await["id"], 1);
    assert_eq!(peer::raw(port, b"GET /metrics HTTP/1.0\r\nhost: localhost\r\n\r\n").await.status, 503);
    assert_eq!(peer::raw(port, b"GET /live HTTP/1.0\r\nhost: localhost\r\n\r\n").await.status, 200);
}

/// Requests echoes without reading them, until the server stops reading or `most` bytes are sent.
async fn ask_without_reading(socket: &mut TcpStream, most: usize, stalled: Duration) -> usize {
    let big = frame(&call(1, "echo", json!({ "text": "x".repeat(1_000_000) })).to_string());
    let mut sent = 0;
    while sent < most {
        match timeout(stalled, socket.write(&big[sent % big.len()..])).await {
            Ok(Ok(written)) => sent += written,
            Ok(Err(_)) | Err(_) => return sent,
        }
    }
    sent
}

#[tokio::test]
async fn s10_a_client_that_never_reads_is_dropped() {
    let port = listen(&fixture::server()).await;
    let mut socket = bare_socket(port).await;
    // Far more than the buffers hold: the loop ends because the server closes the connection.
    ask_without_reading(&mut socket, usize::MAX, TEST_TIMEOUT).await;
    assert!(socket.write_all(&frame("{}")).await.is_err(), "the server closed the connection");
    peer::assert_served(port).await;
}

#[tokio::test]
async fn s10_a_client_that_never_reads_cannot_fill_the_memory() {
    // Long enough to fill the buffers before the timeout, as with the default limits.
    let port = listen_with(Limits { write_timeout: TEST_TIMEOUT * 3, ..fixture::quick_limits() }).await;
    let mut socket = bare_socket(port).await;
    let most = 128 * 1024 * 1024;
    let taken = ask_without_reading(&mut socket, most, Duration::from_secs(3)).await;
    assert!(taken < most, "the server has taken {taken} bytes of requests whose answers nobody reads");
    peer::assert_served(port).await;
}

#[tokio::test]
async fn m21_streams_of_news_end_with_their_socket() {
    let limits = Limits { max_listeners: 2, ..fixture::quick_limits() };
    let server = fixture::builder(fixture::WipeCounter::default()).limits(limits).build().expect("valid");
    let port = listen(&server).await;
    for _ in 0..3 {
        let mut socket = websocket(port).await;
        for id in 0..2 {
            let listen = peer::modern(id, "subscriptions/listen", json!({ "notifications": {} }), json!({}));
            let opened = async {
                // The permits of earlier sockets are released once those are closed.
                loop {
                    ws_send(&mut socket, &listen).await;
                    if ws_receive(&mut socket).await["method"] == "notifications/subscriptions/acknowledged" {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            timeout(TEST_TIMEOUT, opened).await.expect("a place in time");
        }
    }
}
