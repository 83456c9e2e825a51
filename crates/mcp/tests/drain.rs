//! Graceful shutdown: in-flight requests are completed, later requests are rejected, all in bounded time.

mod fixture;

use std::process::Stdio as Pipe;
use std::time::Duration;

use corbie_mcp::transport::http::{Http, Options};
use corbie_mcp::{Limits, Server, Tool, TrustLevel};
use fixture::peer::{self, JSON, Stdio, TEST_TIMEOUT, TestTransport, call, modern, request, text_of};
use fixture::{Gate, WipeCounter};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::Message;

fn gated(grace: Duration) -> (Server, Gate) {
    let gate = Gate::new();
    let limits = Limits { shutdown_grace: grace, ..fixture::quick_limits() };
    (fixture::builder(WipeCounter::default()).limits(limits).tool(gate.tool()).build().expect("valid"), gate)
}

const SHUTDOWN_GRACE: Duration = Duration::from_secs(600);

fn hold() -> Value {
    call(1, "gate", json!({}))
}

fn ping() -> Value {
    request(2, "ping", json!({}))
}

// === the reply arrives, new requests are rejected, serving ends ===

#[tokio::test]
async fn v08_a07_a08_e14_a_drain_over_stdio() {
    let (server, gate) = gated(SHUTDOWN_GRACE);
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    peer.send(&hold().to_string()).await;
    gate.entered().await;
    server.drain();
    let refused = peer.call(&ping()).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(2), &json!(-32012)));
    gate.open();
    let answered = peer.receive().await;
    assert_eq!((&answered["id"], text_of(&answered)), (&json!(1), "through the gate"));
    timeout(TEST_TIMEOUT, peer.serving).await.expect("serving ends").expect("no panic").expect("no error");
}

#[tokio::test]
async fn v08_a07_a08_e14_a_drain_over_http() {
    let (server, gate) = gated(SHUTDOWN_GRACE);
    let (port, serving) = fixture::serve(&server, Options::default()).await;
    let held = tokio::spawn(async move { peer::post(port, &hold()).await });
    gate.entered().await;
    server.drain();
    assert_eq!(peer::post(port, &ping()).await.json()["error"]["code"], -32012);
    let rest = peer::http(port, "POST", "/mcp/ping", &[JSON], "").await;
    assert_eq!((rest.status, &rest.json()["error"]["code"]), (503, &json!(-32012)));
    let modern = peer::post_modern(port, &modern(3, "tools/list", json!({}), json!({}))).await;
    assert_eq!(modern.json()["error"]["code"], -31012);
    gate.open();
    assert_eq!(text_of(&held.await.expect("no panic").json()), "through the gate");
    timeout(TEST_TIMEOUT, serving).await.expect("serving ends").expect("no panic").expect("no error");
    assert!(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn v08_a07_a08_e14_a_drain_over_rest() {
    let (server, gate) = gated(SHUTDOWN_GRACE);
    let (port, serving) = fixture::serve(&server, Options::default()).await;
    let held =
        tokio::spawn(async move { peer::http(port, "POST", "/mcp/tools/call", &[JSON], r#"{"name":"gate"}"#).await });
    gate.entered().await;
    server.drain();
    gate.open();
    let held = held.await.expect("no panic");
    assert_eq!((held.status, &held.json()["content"][0]["text"]), (200, &json!("through the gate")));
    timeout(TEST_TIMEOUT, serving).await.expect("serving ends").expect("no panic").expect("no error");
}

#[tokio::test]
async fn v08_a07_a08_e14_a_drain_over_websocket() {
    let (server, gate) = gated(SHUTDOWN_GRACE);
    let (port, serving) = fixture::serve(&server, Options::default()).await;
    let mut socket = peer::websocket(port).await;
    peer::ws_send(&mut socket, &hold()).await;
    gate.entered().await;
    server.drain();
    peer::ws_send(&mut socket, &ping()).await;
    let refused = peer::ws_receive(&mut socket).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(2), &json!(-32012)));
    gate.open();
    assert_eq!(text_of(&peer::ws_receive(&mut socket).await), "through the gate");
    timeout(TEST_TIMEOUT, serving).await.expect("serving ends").expect("no panic").expect("no error");
    let closed = async {
        loop {
            match socket.next().await {
                Some(Ok(Message::Close(frame))) => return frame.map(|frame| u16::from(frame.code)),
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!(timeout(TEST_TIMEOUT, closed).await.expect("in time"), Some(1001), "the socket says that we go away");
}

/// A program that exits as soon as serving ends, with a tool whose reply takes a while to write.
fn program(gate: &Gate) -> (Server, u16, std::thread::JoinHandle<()>) {
    let held = gate.clone();
    let tool = Tool::builder("long").timeout(SHUTDOWN_GRACE).no_input().run(move |_, _| {
        let held = held.clone();
        async move {
            held.enter().await;
            "x".repeat(4_000_000)
        }
    });
    let server = Server::builder("s", "1").tool(tool).build().expect("valid");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.set_nonblocking(true).expect("settable");
    let port = listener.local_addr().expect("bound").port();
    let http = Http::new(server.clone(), Options::default());
    let ended = std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("runtime");
        runtime.block_on(async { http.serve(TcpListener::from_std(listener)?).await }).expect("no error");
        runtime.shutdown_background();
    });
    (server, port, ended)
}

#[tokio::test]
async fn v08_a07_a_reply_over_http_is_out_before_serving_ends() {
    let gate = Gate::new();
    let (server, port, ended) = program(&gate);
    let held = tokio::spawn(async move { peer::post(port, &call(1, "long", json!({}))).await });
    gate.entered().await;
    server.drain();
    gate.open();
    assert_eq!(text_of(&held.await.expect("no panic").json()).len(), 4_000_000);
    tokio::task::spawn_blocking(|| ended.join()).await.expect("joined").expect("no panic");
}

#[tokio::test]
async fn v08_a07_a_reply_over_websocket_is_out_before_serving_ends() {
    let gate = Gate::new();
    let (server, port, ended) = program(&gate);
    let mut socket = peer::websocket(port).await;
    peer::ws_send(&mut socket, &call(1, "long", json!({}))).await;
    gate.entered().await;
    server.drain();
    gate.open();
    assert_eq!(text_of(&peer::ws_receive(&mut socket).await).len(), 4_000_000);
    drop(socket);
    tokio::task::spawn_blocking(|| ended.join()).await.expect("joined").expect("no panic");
}

#[tokio::test]
async fn a07_the_end_of_input_lets_everything_sent_be_answered() {
    let (server, gate) = gated(SHUTDOWN_GRACE);
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    for id in 0..100 {
        peer.send(&call(id, "gate", json!({})).to_string()).await;
        gate.open();
    }
    let mut ids: Vec<_> = peer.end().await.iter().filter_map(|answer| answer["id"].as_i64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..100).collect::<Vec<_>>());
}

#[tokio::test]
async fn a07_with_nothing_in_flight_a_drain_ends_serving_at_once() {
    let (server, _) = gated(SHUTDOWN_GRACE);
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    peer.call(&ping()).await;
    let (port, serving) = fixture::serve(&server, Options::default()).await;
    let socket = peer::websocket(port).await;
    server.drain();
    timeout(TEST_TIMEOUT, peer.serving).await.expect("stdio ends").expect("no panic").expect("no error");
    timeout(TEST_TIMEOUT, serving).await.expect("HTTP ends").expect("no panic").expect("no error");
    drop(socket);
}

#[tokio::test]
async fn a08_a_request_in_the_drain_is_refused_over_every_transport() {
    let (server, gate) = gated(SHUTDOWN_GRACE);
    let mut holder = Stdio::start(&server, TrustLevel::Trusted);
    holder.send(&hold().to_string()).await;
    gate.entered().await;
    server.drain();
    for way in [TestTransport::Http, TestTransport::Rest] {
        let answer = way.request(&server, TrustLevel::Trusted, &call(1, "wipe", json!({}))).await;
        assert_eq!(answer["error"]["code"], -32012, "{way:?}");
    }
}

// === bounded time ===

#[test]
fn a08_the_grace_is_thirty_seconds_unless_said_otherwise() {
    assert_eq!(Limits::default().shutdown_grace, Duration::from_secs(30));
}

/// How long stdio continues to serve, on a paused clock, if a call hangs and `stop` is called.
async fn stdio_serves_on(grace: Duration, stop: impl FnOnce(&Server)) -> Duration {
    let (server, gate) = gated(grace);
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    peer.send(&hold().to_string()).await;
    gate.entered().await;
    let began = Instant::now();
    stop(&server);
    peer.serving.await.expect("no panic").expect("no error");
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a08_a_drain_over_stdio_takes_no_longer_than_the_grace() {
    let grace = Duration::from_secs(20);
    let took = stdio_serves_on(grace, Server::drain).await;
    assert!(took >= grace && took < grace + Duration::from_secs(10), "took {took:?}");
}

#[tokio::test(start_paused = true)]
async fn a08_a_second_signal_ends_stdio_at_once() {
    let took = stdio_serves_on(SHUTDOWN_GRACE, Server::stop_now).await;
    assert!(took < Duration::from_secs(10), "took {took:?}");
}

#[tokio::test]
async fn a08_a_drain_over_http_takes_no_longer_than_the_grace() {
    let (server, gate) = gated(Duration::from_millis(50));
    let (port, serving) = fixture::serve(&server, Options::default()).await;
    let _held = peer::send_http(port, "POST", &[JSON], &hold().to_string()).await;
    gate.entered().await;
    server.drain();
    timeout(TEST_TIMEOUT, serving).await.expect("serving ends").expect("no panic").expect("no error");
}

#[tokio::test]
async fn a08_a_second_signal_ends_http_at_once() {
    let (server, gate) = gated(SHUTDOWN_GRACE);
    let (port, serving) = fixture::serve(&server, Options::default()).await;
    let _held = peer::send_http(port, "POST", &[JSON], &hold().to_string()).await;
    gate.entered().await;
    server.drain();
    server.stop_now();
    timeout(TEST_TIMEOUT, serving).await.expect("serving ends").expect("no panic").expect("no error");
}

// === signals ===

#[cfg(unix)]
#[tokio::test]
async fn a07_sigterm_and_sigint_end_a_program_with_0() {
    for signal in ["-TERM", "-INT"] {
        let mut child = tokio::process::Command::new(fixture::example("echo"))
            .stdin(Pipe::piped())
            .stdout(Pipe::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the example starts");
        let mut stdin = child.stdin.take().expect("piped");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        stdin.write_all(format!("{}\n", ping()).as_bytes()).await.expect("it reads");
        let mut line = String::new();
        timeout(TEST_TIMEOUT, stdout.read_line(&mut line)).await.expect("in time").expect("readable");
        assert!(line.contains(r#""id":2"#), "{line}");
        let pid = child.id().expect("it runs").to_string();
        let sent = tokio::process::Command::new("kill").args([signal, &pid]).status().await.expect("kill runs");
        assert!(sent.success());
        let status = timeout(TEST_TIMEOUT, child.wait()).await.expect("it ends").expect("waitable");
        assert_eq!(status.code(), Some(0), "{signal}");
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).await.expect("readable");
        assert_eq!(rest, "", "stdout is for the protocol");
    }
}
