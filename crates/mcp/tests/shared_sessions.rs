//! Legacy sessions on several instances with a shared key: a session is valid on every instance.

mod fixture;

use corbie_mcp::transport::http::Options;
use corbie_mcp::transport::{Auth, Token};
use corbie_mcp::{Event, Server, StateKey};
use fixture::WipeCounter;
use fixture::peer::{self, BOTH, EventStream, HttpReply, JSON, call, http, initialize, request, text_of};
use serde_json::{Value, json};

const SESSION: &str = "mcp-session-id";
const EVENTS: (&str, &str) = ("accept", "text/event-stream");
const ANN: (&str, &str) = ("authorization", "Bearer of-ann");
const BOB: (&str, &str) = ("authorization", "Bearer of-bob");

fn instance(secret: &[u8]) -> Server {
    fixture::builder(WipeCounter::default()).state_key(StateKey::from_secret(secret)).build().expect("valid")
}

/// An instance with tokens for two users.
async fn listen(server: &Server) -> u16 {
    let tokens = [("ann", "of-ann"), ("bob", "of-bob")].map(|(name, secret)| Token::new(name, secret, None));
    fixture::listen(server, Options { auth: Auth::tokens(tokens), ..Options::default() }).await
}

async fn listen_with(secret: &[u8]) -> u16 {
    listen(&instance(secret)).await
}

async fn post(port: u16, who: (&str, &str), session: Option<&str>, body: &Value) -> HttpReply {
    let headers: Vec<_> = [JSON, who].into_iter().chain(session.map(|id| (SESSION, id))).collect();
    http(port, "POST", "/mcp", &headers, &body.to_string()).await
}

async fn open(port: u16, version: &str, capabilities: Value) -> String {
    post(port, ANN, None, &initialize(version, capabilities)).await.headers[SESSION].clone()
}

fn ping() -> Value {
    request(1, "ping", json!({}))
}

#[tokio::test]
async fn a13_t15_a_session_of_one_instance_is_served_by_all_that_have_its_key() {
    let (one, other) = (listen_with(b"shared").await, listen_with(b"shared").await);
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let id = open(one, version, json!({})).await;
        assert!((32..512).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
        for port in [other, one, other] {
            let listed = post(port, ANN, Some(&id), &request(1, "tools/list", json!({}))).await;
            assert_eq!(listed.status, 200, "{version}");
            assert!(listed.json()["result"]["tools"].is_array(), "{version}");
            let called = post(port, ANN, Some(&id), &call(2, "echo", json!({ "text": "hi" }))).await;
            assert_eq!(text_of(&called.json()), "hi", "{version}");
        }
    }
}

/// `structuredContent` was added in 2025-06-18: clients with an older version do not receive it.
#[tokio::test]
async fn a13_t15_the_version_that_was_agreed_on_is_kept_on_every_instance() {
    let (one, other) = (listen_with(b"shared").await, listen_with(b"shared").await);
    for (version, structured) in [("2024-11-05", false), ("2025-06-18", true)] {
        let id = open(one, version, json!({})).await;
        for port in [one, other] {
            let sum = post(port, ANN, Some(&id), &call(1, "add", json!({ "a": 1, "b": 2 }))).await.json();
            assert_eq!(sum["result"].get("structuredContent").is_some(), structured, "{version}: {sum}");
        }
    }
}

#[tokio::test]
async fn a13_t15_what_the_client_can_answer_is_known_on_every_instance() {
    let (one, other) = (listen_with(b"shared").await, listen_with(b"shared").await);
    let id = open(one, "2025-06-18", json!({ "elicitation": {} })).await;
    let headers = [JSON, BOTH, ANN, (SESSION, &id)];
    let mut call = EventStream::open_as(other, "POST", &headers, &call(1, "ask_name", json!({})).to_string()).await;
    assert_eq!(call.next().await.expect("a question")["method"], "elicitation/create");
}

#[tokio::test]
async fn t15_a_session_under_another_key_is_not_known() {
    let (one, other) = (listen_with(b"shared").await, listen_with(b"of others").await);
    let alone = listen(&fixture::server()).await;
    let id = open(one, "2025-06-18", json!({})).await;
    for port in [other, alone] {
        for (method, body) in [("POST", ping().to_string()), ("GET", String::new()), ("DELETE", String::new())] {
            let reply = http(port, method, "/mcp", &[JSON, ANN, EVENTS, (SESSION, &id)], &body).await;
            assert_eq!(reply.status, 404, "{method}");
        }
    }
    let id = open(alone, "2025-06-18", json!({})).await;
    assert_eq!(post(one, ANN, Some(&id), &ping()).await.status, 404);
}

#[tokio::test]
async fn t15_a_session_of_another_caller_is_not_known_on_any_instance() {
    let (one, other) = (listen_with(b"shared").await, listen_with(b"shared").await);
    let id = open(one, "2025-06-18", json!({})).await;
    for port in [one, other] {
        assert_eq!(post(port, BOB, Some(&id), &ping()).await.status, 404);
        assert_eq!(http(port, "DELETE", "/mcp", &[BOB, (SESSION, &id)], "").await.status, 404);
        assert_eq!(post(port, ANN, Some(&id), &ping()).await.status, 200);
    }
}

#[tokio::test]
async fn t15_a_session_can_be_ended_where_it_was_not_opened() {
    let (one, other) = (listen_with(b"shared").await, listen_with(b"shared").await);
    let id = open(one, "2025-06-18", json!({})).await;
    assert_eq!(http(other, "DELETE", "/mcp", &[ANN, (SESSION, &id)], "").await.status, 204);
    assert_eq!(post(other, ANN, Some(&id), &ping()).await.status, 404);
    assert_eq!(http(other, "DELETE", "/mcp", &[ANN, (SESSION, &id)], "").await.status, 404);
}

#[tokio::test]
async fn t15_a_stream_of_news_opens_on_any_instance() {
    let (one, other) = (listen_with(b"shared").await, instance(b"shared"));
    let id = open(one, "2025-06-18", json!({})).await;
    let port = listen(&other).await;
    let mut news = EventStream::open_as(port, "GET", &[ANN, EVENTS, (SESSION, &id)], "").await;
    assert_eq!(news.status, 200);
    other.publish(Event::ToolsChanged);
    assert_eq!(news.next().await.expect("news")["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn a13_t15_a_key_that_comes_late_is_used_from_then_on() {
    let late = fixture::server();
    let (one, other) = (listen(&late).await, listen_with(b"shared").await);
    let before = open(one, "2025-06-18", json!({})).await;
    late.set_shared_state_key(StateKey::from_secret(b"shared"));
    let after = open(one, "2025-06-18", json!({})).await;
    for (port, id, status) in [(one, &before, 200), (other, &before, 404), (one, &after, 200), (other, &after, 200)] {
        assert_eq!(post(port, ANN, Some(id), &ping()).await.status, status);
    }
}

#[tokio::test]
async fn t15_hostile_ids_are_not_known_and_break_nothing() {
    let port = listen_with(b"shared").await;
    let id = open(port, "2025-06-18", json!({})).await;
    let (half, twice, swapped) = (&id[..40], id.repeat(2), id.to_ascii_uppercase());
    let zeros = "A".repeat(80);
    for hostile in [half, &twice, &swapped, &zeros, "", "=", "%00", "\"", "../../etc/passwd", &"x".repeat(5000)] {
        assert_eq!(post(port, ANN, Some(hostile), &ping()).await.status, 404, "{hostile:.90}");
    }
    let bytes = [
        &b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer of-ann\r\nconnection: close\r\n"[..],
        b"content-type: application/json\r\nmcp-session-id: \xff\xfe\x80\r\ncontent-length: 2\r\n\r\n{}",
    ]
    .concat();
    assert_eq!(peer::raw(port, &bytes).await.status, 404);
    assert_eq!(post(port, ANN, Some(&id), &ping()).await.status, 200);
}
