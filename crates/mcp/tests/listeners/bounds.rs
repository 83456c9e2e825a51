//! How many connections there may be, and how long each may take (S-10).

use std::time::Duration;

use corbie_mcp::Limits;
use corbie_mcp::transport::http::Options;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::client::{ask, ask_on, closed, metric, ping, with};
use crate::fixture::peer::{self, PATIENCE, call};
use crate::fixture::{self, Gate, Wiped};
use crate::identity::{Identity, listen_tls};

#[tokio::test]
async fn s10_an_idle_connection_is_closed_after_its_own_time() {
    let limits = Limits {
        idle_timeout: Duration::from_millis(100),
        request_read_timeout: PATIENCE * 3,
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
    // As long as a connection that has sent nothing is waited for, which came later.
    for _ in 0..2 {
        closed(&mut peer::connect(port).await).await;
    }
    assert_eq!(ask_on(&mut kept).await, "HTTP/1.1 200 OK");
    // Begun, the next head has as long as any.
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
    let server = fixture::builder(Wiped::default()).limits(limits).tool(gate.tool()).build().expect("valid");
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
    let limits = Limits { max_connections: 2, request_read_timeout: PATIENCE * 3, ..fixture::quick_limits() };
    let server = fixture::builder(Wiped::default()).limits(limits).tool(gate.tool()).build().expect("valid");
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
    // Both are busy now.
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
    let identity = Identity::new();
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
    timeout(PATIENCE, asking).await.expect("hung up in time");
}

#[tokio::test]
async fn s10_a_flood_of_connections_leaves_none_behind() {
    const FLOOD: i64 = 200;
    let limits = Limits { max_connections: 1, request_read_timeout: PATIENCE * 3, ..fixture::quick_limits() };
    let server = with(limits);
    let port = fixture::listen(&server, Options::default()).await;
    let held = peer::connect(port).await;
    let mut flood = Vec::new();
    for _ in 0..FLOOD {
        flood.push(peer::connect(port).await);
    }
    // Told why or not, each of them is closed.
    for stream in &mut flood {
        let said = closed(stream).await;
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 503"), "{said}");
    }
    drop(held);
    peer::eventually(async || peer::raw(port, b"GET /live HTTP/1.0\r\nhost: localhost\r\n\r\n").await.status == 200)
        .await;
    assert!(metric(port, "corbie_connections_rejected_total").await >= FLOOD);
}
