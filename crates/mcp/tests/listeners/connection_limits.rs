//! Connection count and timeout limits (S-10).

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use corbie_mcp::Limits;
use corbie_mcp::transport::http::Options;
use corbie_mcp::transport::{Auth, TrustedProxies};
use http::{HeaderMap, Method};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::client::{ask, ask_on, ask_with, closed, metric, ping, with};
use crate::fixture::peer::{self, TEST_TIMEOUT, call};
use crate::fixture::{self, Gate, WipeCounter};
use crate::test_certificate::{TestCertificate, listen_tls};

#[tokio::test]
async fn s10_an_idle_connection_is_closed_after_its_own_time() {
    let limits = Limits {
        idle_timeout: Duration::from_millis(100),
        request_read_timeout: TEST_TIMEOUT * 3,
        ..fixture::quick_limits()
    };
    let server = with(limits);
    let port = fixture::listen(&server, Options::default()).await;
    let mut stream = peer::connect(port).await;
    assert_eq!(ask_on(&mut stream).await, "HTTP/1.1 200 OK");
    assert_eq!(closed(&mut stream).await, "");
}

#[tokio::test]
async fn s10_a_kept_connection_is_served_after_more_time_than_a_head_has() {
    let limits = Limits { request_read_timeout: Duration::from_millis(50), ..fixture::quick_limits() };
    let server = with(limits);
    let port = fixture::listen(&server, Options::default()).await;
    let mut kept = peer::connect(port).await;
    assert_eq!(ask_on(&mut kept).await, "HTTP/1.1 200 OK");
    // As long as the timeout of idle new connections, which were opened later.
    for _ in 0..2 {
        closed(&mut peer::connect(port).await).await;
    }
    assert_eq!(ask_on(&mut kept).await, "HTTP/1.1 200 OK");
    // Once started, the next head has the usual timeout.
    kept.write_all(b"GET /li").await.expect("writable");
    assert_eq!(closed(&mut kept).await, "");
}

#[tokio::test]
async fn s10_a_request_that_takes_long_is_not_idle() {
    let gate = Gate::new();
    let limits = Limits {
        idle_timeout: Duration::from_millis(50),
        request_read_timeout: Duration::from_millis(50),
        ..fixture::quick_limits()
    };
    let server = fixture::builder(WipeCounter::default()).limits(limits).tool(gate.tool()).build().expect("valid");
    let port = fixture::listen(&server, Options::default()).await;
    let asking = tokio::spawn(async move {
        ask(peer::connect(port).await, "localhost", "", &call(1, "gate", json!({})).to_string()).await
    });
    gate.entered().await;
    for _ in 0..3 {
        closed(&mut peer::connect(port).await).await;
    }
    gate.open();
    assert_eq!(asking.await.expect("no panic").status, 200);
}

#[tokio::test]
async fn s10_an_idle_connection_makes_room_and_a_busy_one_does_not() {
    let gate = Gate::new();
    let limits = Limits { max_connections: 2, request_read_timeout: TEST_TIMEOUT * 3, ..fixture::quick_limits() };
    let server = fixture::builder(WipeCounter::default()).limits(limits).tool(gate.tool()).build().expect("valid");
    let port = fixture::listen(&server, Options::default()).await;
    let busy = tokio::spawn(async move {
        ask(peer::connect(port).await, "localhost", "", &call(1, "gate", json!({})).to_string()).await
    });
    gate.entered().await;
    let mut idle = peer::connect(port).await;
    assert_eq!(ask_on(&mut idle).await, "HTTP/1.1 200 OK");

    let mut newcomer = peer::connect(port).await;
    assert_eq!(ask_on(&mut newcomer).await, "HTTP/1.1 200 OK");
    assert_eq!(closed(&mut idle).await, "");
    // Both connections are busy now.
    let message = call(2, "gate", json!({})).to_string();
    let also_busy = tokio::spawn(async move { ask(newcomer, "localhost", "", &message).await });
    gate.entered().await;
    let reply = ask(peer::connect(port).await, "localhost", "", &ping()).await;
    assert_eq!((reply.status, reply.headers["retry-after"].as_str()), (503, "1"));
    gate.open();
    gate.open();
    for asked in [busy, also_busy] {
        assert_eq!(asked.await.expect("no panic").status, 200);
    }
}

#[tokio::test]
async fn s10_a_slow_head_a_slow_body_and_a_client_that_does_not_read_end_over_tls_too() {
    let identity = TestCertificate::new();
    let limits = Limits {
        request_read_timeout: Duration::from_millis(300),
        write_timeout: Duration::from_millis(300),
        ..fixture::quick_limits()
    };
    let port = listen_tls(&with(limits), identity.certificates()).await;
    let mut head = identity.connect(port).await.expect("a handshake");
    head.write_all(b"GET /live HTTP/1.1\r\nhost").await.expect("writable");
    assert_eq!(closed(&mut head).await, "");

    let mut body = identity.connect(port).await.expect("a handshake");
    let begun =
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    body.write_all(begun.as_bytes()).await.expect("writable");
    assert!(closed(&mut body).await.starts_with("HTTP/1.1 408"));

    let mut deaf = identity.connect(port).await.expect("a handshake");
    let message = call(1, "echo", json!({ "text": "x".repeat(1_000_000) })).to_string();
    let whole = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{message}",
        message.len()
    );
    let asking = async { while deaf.write_all(whole.as_bytes()).await.is_ok() {} };
    timeout(TEST_TIMEOUT, asking).await.expect("hung up in time");
}

#[tokio::test]
async fn s10_a_flood_of_silent_connections_keeps_nobody_out() {
    const FLOOD: usize = 200;
    let limits = Limits { max_connections: 2, request_read_timeout: TEST_TIMEOUT * 3, ..fixture::quick_limits() };
    let server = with(limits);
    let port = fixture::listen(&server, Options::default()).await;
    let mut flood = Vec::new();
    for _ in 0..FLOOD {
        flood.push(peer::connect(port).await);
    }
    assert_eq!(ask(peer::connect(port).await, "localhost", "", &ping()).await.status, 200);
    // All but those that hold a place or are in the reserve were closed, and the oldest first.
    for stream in &mut flood[2..FLOOD - 20] {
        let said = closed(stream).await;
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 503"), "{said}");
    }
    assert!(metric(port, "corbie_connections_evicted_total").await > 0);
    drop(flood);
    peer::eventually(async || metric(port, "corbie_connections").await == 1).await;
}

const TOKEN: &str = "authorization: Bearer right-token\r\n";

/// Uses up all connections but the reserve with requests that are being worked on.
async fn fill(port: u16, gate: &Gate, connections: usize, token: &'static str) {
    for _ in 0..connections {
        let message = call(1, "gate", json!({})).to_string();
        tokio::spawn(async move { ask(peer::connect(port).await, "localhost", token, &message).await });
        gate.entered().await;
    }
}

fn gated(limits: Limits) -> (Gate, corbie_mcp::Server) {
    let gate = Gate::new();
    let server = fixture::builder(WipeCounter::default()).limits(limits).tool(gate.tool()).build().expect("valid");
    (gate, server)
}

#[tokio::test]
async fn s10_probes_and_authenticated_callers_are_served_when_all_connections_are_in_use() {
    let limits = Limits { max_connections: 2, request_read_timeout: TEST_TIMEOUT * 3, ..fixture::quick_limits() };
    let (gate, server) = gated(limits);
    let options = Options { auth: Auth::bearer(["right-token"]), ..Options::default() };
    let port = fixture::listen(&server, options).await;
    fill(port, &gate, 2, TOKEN).await;
    // Silent connections do not use up the reserve either.
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(peer::connect(port).await);
    }
    for _ in 0..10 {
        for page in ["/live", "/ready", "/health"] {
            let reply = peer::http(port, "GET", page, &[], "").await;
            assert_eq!((reply.status, reply.headers["connection"].as_str()), (200, "close"), "{page}");
        }
        assert_eq!(ask(peer::connect(port).await, "localhost", TOKEN, &ping()).await.status, 200);
        for token in ["", "authorization: Bearer wrong-token\r\n"] {
            let reply = ask(peer::connect(port).await, "localhost", token, &ping()).await;
            assert_eq!((reply.status, reply.headers["retry-after"].as_str()), (503, "1"), "{token}");
        }
    }
    gate.open();
    gate.open();
    peer::eventually(async || ask(peer::connect(port).await, "localhost", "", &ping()).await.status == 401).await;
}

#[tokio::test]
async fn s10_silent_connections_and_unfinished_handshakes_make_room_over_tls() {
    let identity = TestCertificate::new();
    let limits = Limits { max_connections: 2, request_read_timeout: TEST_TIMEOUT * 3, ..fixture::quick_limits() };
    let port = listen_tls(&with(limits), identity.certificates()).await;
    let mut held = Vec::new();
    for _ in 0..12 {
        let mut stream = peer::connect(port).await;
        // The beginning of a handshake.
        stream.write_all(&[0x16, 0x03, 0x01, 0x02]).await.expect("writable");
        held.push(stream);
        let stream = identity.connect(port).await.expect("a handshake");
        assert_eq!(ask(stream, "localhost", "", &ping()).await.status, 200);
    }
}

#[tokio::test]
async fn s10_loopback_has_its_share_where_a_token_is_needed_and_its_holders_are_not_counted() {
    let limits = Limits {
        max_connections: 7,
        max_connections_per_address: 2,
        request_read_timeout: TEST_TIMEOUT * 3,
        ..fixture::quick_limits()
    };
    let (gate, server) = gated(limits);
    let options = Options { auth: Auth::bearer(["right-token"]), ..Options::default() };
    let port = fixture::listen(&server, options).await;
    // Holders of a token use as many as they like.
    fill(port, &gate, 5, TOKEN).await;
    let mut strangers = Vec::new();
    for _ in 0..2 {
        let mut stream = peer::connect(port).await;
        assert_eq!(ask_on(&mut stream).await, "HTTP/1.1 200 OK");
        strangers.push(stream);
    }
    // All connections are taken, so the next one of the address takes the place of its first.
    let mut third = peer::connect(port).await;
    assert_eq!(ask_on(&mut third).await, "HTTP/1.1 200 OK");
    assert_eq!(closed(&mut strangers[0]).await, "");
    assert_eq!(ask(peer::connect(port).await, "localhost", TOKEN, &ping()).await.status, 200);
    (0..5).for_each(|_| gate.open());
}

#[tokio::test]
async fn s10_behind_a_trusted_proxy_each_client_has_its_share() {
    // A client over its share is refused when no connection is left for others.
    let limits = Limits { max_connections: 2, max_connections_per_address: 1, ..fixture::quick_limits() };
    let (gate, server) = gated(limits);
    let trusted_proxies = TrustedProxies::new(|address| address.is_loopback());
    let port = fixture::listen(&server, Options { trusted_proxies, ..Options::default() }).await;
    fill(port, &gate, 1, "x-forwarded-for: 203.0.113.7\r\n").await;
    let status = async |from: &str| ask(peer::connect(port).await, "localhost", from, &ping()).await.status;
    assert_eq!(status("x-forwarded-for: 203.0.113.7\r\n").await, 503);
    assert_eq!(
        status("x-forwarded-for: 198.51.100.1, 203.0.113.7\r\n").await,
        503,
        "the left is the client's own word"
    );
    assert_eq!(status("forwarded: for=203.0.113.8\r\n").await, 200);
    assert_eq!(status("").await, 200, "the proxy itself");
    gate.open();
    peer::eventually(async || status("x-forwarded-for: 203.0.113.7\r\n").await == 200).await;
    fill(port, &gate, 1, "x-forwarded-for: 203.0.113.9\r\nforwarded: for=_x\r\n").await;
    let unclear = status("x-forwarded-for: 203.0.113.9\r\nforwarded: for=_x\r\n").await;
    assert_eq!(unclear, 503, "a client does not leave its share with a header of its own");
    assert_eq!(status("x-forwarded-for: 203.0.113.7\r\n").await, 200);
    gate.open();
}

#[tokio::test]
async fn s10_connections_that_stop_in_the_middle_of_a_head_make_room() {
    let limits = Limits { max_connections: 2, request_read_timeout: TEST_TIMEOUT * 3, ..fixture::quick_limits() };
    let port = fixture::listen(&with(limits), Options::default()).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = peer::connect(port).await;
        stream.write_all(b"GET /live HTTP/1.1\r\nhost: loc").await.expect("writable");
        held.push(stream);
    }
    peer::eventually(async || ask(peer::connect(port).await, "localhost", "", &ping()).await.status == 200).await;
    assert_eq!(closed(&mut held[0]).await, "");
}

/// Begins a head on each connection, and gives the server time to read it.
async fn begin_heads(streams: &mut [TcpStream]) {
    for stream in streams {
        stream.write_all(b"G").await.expect("writable");
    }
    sleep(Duration::from_millis(50)).await;
}

#[tokio::test]
async fn s10_begun_heads_on_all_connections_do_not_keep_an_ordinary_client_out() {
    let limits = Limits { max_connections: 2, request_read_timeout: TEST_TIMEOUT * 3, ..fixture::quick_limits() };
    let port = fixture::listen(&with(limits), Options::default()).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = peer::connect(port).await;
        assert_eq!(ask_on(&mut stream).await, "HTTP/1.1 200 OK");
        held.push(stream);
    }
    begin_heads(&mut held).await;
    assert_eq!(ask(peer::connect(port).await, "localhost", "", &ping()).await.status, 200);
}

#[tokio::test]
async fn s10_begun_heads_in_the_reserve_do_not_keep_probes_and_authenticated_callers_out() {
    let limits = Limits { max_connections: 2, request_read_timeout: TEST_TIMEOUT * 3, ..fixture::quick_limits() };
    let (gate, server) = gated(limits);
    let options = Options { auth: Auth::bearer(["right-token"]), ..Options::default() };
    let port = fixture::listen(&server, options).await;
    fill(port, &gate, 2, TOKEN).await;
    let begin_more_than_the_reserve_has = async || {
        let mut begun = Vec::new();
        for _ in 0..12 {
            begun.push(peer::connect(port).await);
        }
        begin_heads(&mut begun).await;
        begun
    };
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(begin_more_than_the_reserve_has().await);
        assert_eq!(peer::http(port, "GET", "/live", &[], "").await.status, 200);
        held.push(begin_more_than_the_reserve_has().await);
        assert_eq!(ask(peer::connect(port).await, "localhost", TOKEN, &ping()).await.status, 200);
    }
    gate.open();
    gate.open();
}

/// Asks again and again on one connection, and begins the next head with each request: the connection is never idle,
/// and no head is incomplete for long. It connects again when the server closes the connection.
async fn ask_without_a_pause(port: u16) {
    loop {
        let mut stream = peer::connect(port).await;
        if stream.write_all(b"G").await.is_err() {
            continue;
        }
        while stream.write_all(b"ET /live HTTP/1.1\r\nhost: localhost\r\n\r\nG").await.is_ok() {
            let mut reply = [0; 4096];
            match timeout(TEST_TIMEOUT, stream.read(&mut reply)).await {
                Ok(Ok(1..)) => sleep(Duration::from_millis(20)).await,
                _ => break,
            }
        }
    }
}

#[tokio::test]
async fn s10_connections_that_ask_without_a_pause_do_not_keep_an_ordinary_client_out() {
    let limits = Limits { max_connections: 2, request_read_timeout: TEST_TIMEOUT * 3, ..fixture::quick_limits() };
    let port = fixture::listen(&with(limits), Options::default()).await;
    let attackers: Vec<_> = (0..2).map(|_| tokio::spawn(ask_without_a_pause(port))).collect();
    sleep(Duration::from_millis(100)).await;
    for _ in 0..5 {
        assert_eq!(ask(peer::connect(port).await, "localhost", "", &ping()).await.status, 200);
        assert_eq!(peer::http(port, "GET", "/live", &[], "").await.status, 200);
    }
    attackers.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn s10_idle_connections_of_authenticated_callers_are_not_evicted_for_others() {
    let limits = Limits { max_connections: 2, request_read_timeout: TEST_TIMEOUT * 3, ..fixture::quick_limits() };
    let options = Options { auth: Auth::bearer(["right-token"]), ..Options::default() };
    let port = fixture::listen(&with(limits), options).await;
    let (mut first, mut second) = (peer::connect(port).await, peer::connect(port).await);
    for stream in [&mut first, &mut second] {
        assert_eq!(ask_with(stream, TOKEN).await, "HTTP/1.1 200 OK");
    }
    let mut flood = Vec::new();
    for _ in 0..30 {
        flood.push(peer::connect(port).await);
        let refused = ask(peer::connect(port).await, "localhost", "", &ping()).await.status;
        assert_eq!(refused, 503);
    }
    for stream in [&mut first, &mut second] {
        assert_eq!(ask_with(stream, TOKEN).await, "HTTP/1.1 200 OK");
    }
    // Another authenticated caller takes the place of the one that has been idle longest.
    let mut third = peer::connect(port).await;
    assert_eq!(ask_with(&mut third, TOKEN).await, "HTTP/1.1 200 OK");
    assert_eq!(closed(&mut first).await, "");
    assert_eq!(ask_with(&mut third, TOKEN).await, "HTTP/1.1 200 OK");
}

#[tokio::test]
async fn s10_an_address_over_its_share_uses_connections_that_are_free() {
    let limits = Limits {
        max_connections: 6,
        max_connections_per_address: 2,
        request_read_timeout: TEST_TIMEOUT * 3,
        ..fixture::quick_limits()
    };
    let options = Options { auth: Auth::bearer(["right-token"]), ..Options::default() };
    let port = fixture::listen(&with(limits), options).await;
    let mut streams = Vec::new();
    for _ in 0..6 {
        let mut stream = peer::connect(port).await;
        assert_eq!(ask_on(&mut stream).await, "HTTP/1.1 200 OK");
        streams.push(stream);
    }
    for stream in &mut streams {
        assert_eq!(ask_on(stream).await, "HTTP/1.1 200 OK", "it was kept");
    }
    // An authenticated caller needs one of them.
    let mut caller = peer::connect(port).await;
    assert_eq!(ask_with(&mut caller, TOKEN).await, "HTTP/1.1 200 OK");
    assert_eq!(closed(&mut streams[0]).await, "");
    assert_eq!(ask_with(&mut caller, TOKEN).await, "HTTP/1.1 200 OK");
}

/// A page without an end.
fn endless_page(_: &Method, path: &str, _: &HeaderMap) -> Option<Response> {
    let chunks = futures_util::stream::repeat_with(|| Ok::<_, std::convert::Infallible>(vec![b'x'; 1 << 16]));
    (path == "/page").then(|| Response::new(Body::from_stream(chunks)))
}

#[tokio::test]
async fn s10_a_client_over_its_share_loses_a_request_in_progress_when_others_need_a_connection() {
    let limits = Limits {
        max_connections: 3,
        max_connections_per_address: 1,
        write_timeout: TEST_TIMEOUT * 3,
        ..fixture::quick_limits()
    };
    let trusted_proxies = TrustedProxies::new(|address| address.is_loopback());
    let options = Options { trusted_proxies, pages: Some(endless_page), ..Options::default() };
    let port = fixture::listen(&with(limits), options).await;
    let mut held = Vec::new();
    for client in ["203.0.113.7", "203.0.113.7", "203.0.113.9"] {
        let mut stream = peer::connect(port).await;
        let get = format!("GET /page HTTP/1.1\r\nhost: localhost\r\nx-forwarded-for: {client}\r\n\r\n");
        stream.write_all(get.as_bytes()).await.expect("writable");
        let mut status = [0; 15];
        stream.read_exact(&mut status).await.expect("readable");
        assert_eq!(&status, b"HTTP/1.1 200 OK", "{client}");
        held.push(stream);
    }
    let reply = ask(peer::connect(port).await, "localhost", "x-forwarded-for: 203.0.113.8\r\n", &ping()).await;
    assert_eq!(reply.status, 200);
    closed(&mut held[0]).await;
    for stream in [1, 2] {
        // More than the buffers of the connection hold.
        held[stream].read_exact(&mut vec![0; 20_000_000]).await.expect("it goes on");
    }
}

#[tokio::test]
async fn s10_requests_that_wait_for_a_connection_leave_the_reserve_to_probes_and_authenticated_callers() {
    let limits = Limits { max_connections: 2, request_read_timeout: TEST_TIMEOUT * 3, ..fixture::quick_limits() };
    let (gate, server) = gated(limits);
    let options = Options { auth: Auth::bearer(["right-token"]), ..Options::default() };
    let port = fixture::listen(&server, options).await;
    fill(port, &gate, 2, TOKEN).await;
    let flood: Vec<_> = (0..100)
        .map(|_| tokio::spawn(async move { ask(peer::connect(port).await, "localhost", "", &ping()).await.status }))
        .collect();
    for _ in 0..10 {
        assert_eq!(peer::http(port, "GET", "/live", &[], "").await.status, 200);
        assert_eq!(ask(peer::connect(port).await, "localhost", TOKEN, &ping()).await.status, 200);
    }
    for asked in flood {
        assert_eq!(asked.await.expect("no panic"), 503);
    }
    gate.open();
    gate.open();
}

const GUEST: &str = "authorization: Bearer guest-token\r\n";

const UPGRADE: &str = "GET /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                       sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

const EVENT_STREAM: &str = "GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n";

/// Sends a head with these headers; returns the connection and the status of its reply.
async fn open(port: u16, head: &str, headers: &str) -> (TcpStream, u16) {
    let mut stream = peer::connect(port).await;
    stream.write_all(format!("{head}{headers}\r\n").as_bytes()).await.expect("writable");
    let mut reply = Vec::new();
    while !reply.ends_with(b"\r\n\r\n") {
        reply.push(timeout(TEST_TIMEOUT, stream.read_u8()).await.expect("in time").expect("a whole head"));
    }
    let status = String::from_utf8_lossy(&reply[9..12]).parse().expect("a status");
    (stream, status)
}

/// Sends a short masked text frame; a mask of zeros leaves the payload unchanged.
async fn send_frame(stream: &mut TcpStream, text: &str) {
    let mut frame = vec![0x81, 0x80 | u8::try_from(text.len()).expect("short"), 0, 0, 0, 0];
    frame.extend_from_slice(text.as_bytes());
    stream.write_all(&frame).await.expect("writable");
}

/// Whether a WebSocket is open and answers.
async fn answers(stream: &mut TcpStream) -> bool {
    send_frame(stream, &ping()).await;
    let mut received = Vec::new();
    while !received.windows(8).any(|bytes| bytes == b"\"result\"") {
        match timeout(TEST_TIMEOUT, stream.read_u8()).await.expect("in time") {
            Ok(byte) => received.push(byte),
            Err(_) => return false,
        }
    }
    true
}

/// More attempts than there are connections and permits of the reserve.
const ATTEMPTS: usize = 24;

#[tokio::test]
async fn s10_websockets_of_one_token_do_not_lock_out_other_callers() {
    for (is_busy, proxy) in [(false, ""), (true, ""), (false, "x-forwarded-for: 203.0.113.7\r\n")] {
        let limits = Limits { max_connections: 8, request_read_timeout: TEST_TIMEOUT * 3, ..fixture::quick_limits() };
        let (gate, server) = gated(limits);
        let auth = Auth::bearer(["right-token", "guest-token"]);
        let trusted_proxies = TrustedProxies::new(move |address| !proxy.is_empty() && address.is_loopback());
        let port = fixture::listen(&server, Options { auth, trusted_proxies, ..Options::default() }).await;
        let (guest, token) = (format!("{GUEST}{proxy}"), format!("{TOKEN}{proxy}"));
        let mut sockets = Vec::new();
        for attempt in 0..ATTEMPTS {
            let (mut stream, status) = open(port, UPGRADE, &guest).await;
            assert_eq!(status, if attempt < 8 { 101 } else { 503 }, "the reserve holds no WebSocket");
            if is_busy && status == 101 {
                send_frame(&mut stream, &call(1, "gate", json!({})).to_string()).await;
                gate.entered().await;
            }
            sockets.push(stream);
        }
        for _ in 0..10 {
            assert_eq!(ask(peer::connect(port).await, "localhost", &token, &ping()).await.status, 200);
            assert_eq!(peer::http(port, "GET", "/live", &[], "").await.status, 200);
        }
        let mut rest = Vec::new();
        let reading = sockets[0].read_to_end(&mut rest);
        let _ = timeout(TEST_TIMEOUT, reading).await.expect("the first one was evicted");
        if !is_busy {
            assert!(rest.windows(2).any(|code| code == 1013_u16.to_be_bytes()), "try again later: {rest:?}");
        }
        // A socket within the share of its caller stays open, whatever the other token does.
        let (mut socket, status) = open(port, UPGRADE, &token).await;
        assert_eq!(status, 101);
        for _ in 0..ATTEMPTS {
            sockets.push(open(port, UPGRADE, &guest).await.0);
        }
        assert!(answers(&mut socket).await);
        assert_eq!(ask(peer::connect(port).await, "localhost", &token, &ping()).await.status, 200);
        (0..8).for_each(|_| gate.open());
    }
}

#[tokio::test]
async fn s10_event_streams_and_unfinished_bodies_of_one_token_do_not_lock_out_other_callers() {
    let limits = Limits { max_connections: 8, request_read_timeout: TEST_TIMEOUT * 3, ..fixture::quick_limits() };
    let auth = || Auth::bearer(["right-token", "guest-token"]);
    let listen = async || fixture::listen(&with(limits.clone()), Options { auth: auth(), ..Options::default() }).await;
    let port = listen().await;
    let mut held = Vec::new();
    for attempt in 0..ATTEMPTS {
        let (stream, status) = open(port, EVENT_STREAM, GUEST).await;
        assert_eq!(status, if attempt < 8 { 200 } else { 503 });
        held.push(stream);
    }
    for _ in 0..10 {
        assert_eq!(ask(peer::connect(port).await, "localhost", TOKEN, &ping()).await.status, 200);
    }
    let port = listen().await;
    for _ in 0..ATTEMPTS {
        let mut stream = peer::connect(port).await;
        let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n";
        stream.write_all(format!("{head}{GUEST}\r\n{{").as_bytes()).await.expect("writable");
        held.push(stream);
    }
    for _ in 0..10 {
        assert_eq!(ask(peer::connect(port).await, "localhost", TOKEN, &ping()).await.status, 200);
    }
}

#[tokio::test]
async fn s10_identities_within_their_shares_keep_their_websockets_and_the_reserve_serves_single_requests() {
    let limits = Limits { max_connections: 8, request_read_timeout: TEST_TIMEOUT * 3, ..fixture::quick_limits() };
    let options = Options { auth: Auth::bearer(["right-token", "a", "b", "c", "d"]), ..Options::default() };
    let port = fixture::listen(&with(limits), options).await;
    let mut sockets = Vec::new();
    for token in ["a", "a", "b", "b", "c", "c", "d", "d"] {
        let (socket, status) = open(port, UPGRADE, &format!("authorization: Bearer {token}\r\n")).await;
        assert_eq!(status, 101);
        sockets.push(socket);
    }
    for _ in 0..10 {
        assert_eq!(open(port, UPGRADE, TOKEN).await.1, 503);
        assert_eq!(open(port, EVENT_STREAM, TOKEN).await.1, 503);
        assert_eq!(ask(peer::connect(port).await, "localhost", TOKEN, &ping()).await.status, 200);
    }
    for socket in &mut sockets {
        assert!(answers(socket).await);
    }
}
