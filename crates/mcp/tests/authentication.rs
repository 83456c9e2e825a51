//! HTTP access control: tokens, host names, web origins, and listen addresses.

mod fixture;

use corbie_mcp::Server;
use corbie_mcp::transport::http::{Http, Options};
use corbie_mcp::transport::{Auth, RateLimit};
use fixture::peer::{self, HttpReply, JSON, http};
use serde_json::json;
use tokio::net::TcpListener;

const TOKEN: (&str, &str) = ("authorization", "Bearer right-token");
const EVENTS: (&str, &str) = ("accept", "text/event-stream");
const UPGRADE: [(&str, &str); 4] = [
    ("connection", "upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

async fn listen(options: Options) -> u16 {
    fixture::listen(&fixture::server(), options).await
}

async fn listen_with_token() -> u16 {
    listen(Options { auth: Auth::bearer(["other-token", "right-token"]), ..Options::default() }).await
}

/// Sends a request to every endpoint with these headers; streams and sockets are opened, but not read.
async fn request_all_paths(port: u16, headers: &[(&str, &str)]) -> Vec<(&'static str, HttpReply)> {
    let with = |more: &[(&'static str, &'static str)]| headers.iter().chain(more).copied().collect::<Vec<_>>();
    let ping = peer::request(1, "ping", json!({})).to_string();
    let mut replies = vec![
        ("POST /mcp", http(port, "POST", "/mcp", &with(&[JSON]), &ping).await),
        ("POST /mcp/ping", http(port, "POST", "/mcp/ping", &with(&[JSON]), "").await),
        ("GET /metrics", http(port, "GET", "/metrics", headers, "").await),
        ("DELETE /mcp", http(port, "DELETE", "/mcp", headers, "").await),
        ("GET /nowhere", http(port, "GET", "/nowhere", headers, "").await),
    ];
    for (way, more) in [("GET /mcp", &[EVENTS][..]), ("WebSocket", &UPGRADE)] {
        let opened = peer::EventStream::open_as(port, "GET", &with(more), "").await;
        replies.push((way, HttpReply { status: opened.status, headers: opened.headers.clone(), body: String::new() }));
    }
    replies
}

#[tokio::test]
async fn s05_x45_with_a_token_set_every_way_in_needs_it() {
    let port = listen_with_token().await;
    for headers in [&[][..], &[("authorization", "Bearer wrong")], &[("authorization", "Basic right-token")]] {
        for (way, reply) in request_all_paths(port, headers).await {
            assert_eq!(reply.status, 401, "{way} {headers:?}");
            assert!(reply.headers["www-authenticate"].starts_with("Bearer"), "{way}");
        }
    }
    let reply = http(port, "POST", "/mcp", &[JSON], "{}").await.json();
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(null), &json!(-32001)));
    assert_eq!(reply["error"]["data"]["error_type"], "AuthenticationError");
}

#[tokio::test]
async fn s05_any_of_the_tokens_opens_every_way_in() {
    let port = listen_with_token().await;
    for token in [TOKEN, ("authorization", "bearer other-token")] {
        let statuses: Vec<u16> =
            request_all_paths(port, &[token]).await.iter().map(|(_, reply)| reply.status).collect();
        assert_eq!(statuses, [200, 200, 200, 405, 404, 200, 101], "{token:?}");
    }
}

#[tokio::test]
async fn s05_strangers_learn_one_word_from_the_health_pages() {
    let port = listen_with_token().await;
    for page in ["/health", "/live", "/ready"] {
        let reply = http(port, "GET", page, &[], "").await;
        assert_eq!((reply.status, reply.json()), (200, json!({ "status": "ok" })), "{page}");
    }
    let known = http(port, "GET", "/health", &[TOKEN], "").await.json();
    assert_eq!(known["version"], "1.2.3");
}

#[tokio::test]
async fn s03_s05_a_refusal_does_not_repeat_the_token() {
    let reply =
        http(listen_with_token().await, "POST", "/mcp", &[JSON, ("authorization", "Bearer wrong-token")], "{}").await;
    assert!(!format!("{reply:?}").contains("wrong-token"), "{reply:?}");
}

#[tokio::test]
async fn x45_on_loopback_no_token_is_asked_for_and_a_stray_one_does_no_harm() {
    let port = listen(Options::default()).await;
    for headers in [&[JSON][..], &[JSON, ("authorization", "Bearer for-someone-else")]] {
        assert_eq!(http(port, "POST", "/mcp/ping", headers, "").await.status, 200);
    }
}

/// A listener on all interfaces with these options, or the error.
async fn serve_everywhere(server: Server, auth: Auth) -> Result<u16, std::io::Error> {
    let listener = TcpListener::bind("0.0.0.0:0").await.expect("free ports");
    let port = listener.local_addr().expect("bound").port();
    let options = Options { auth, ..Options::default() };
    let mut serving = Box::pin(async move { Http::new(server, options).serve(listener).await });
    // A rejection is immediate; serving continues.
    match futures_util::poll!(&mut serving) {
        std::task::Poll::Ready(ended) => ended.map(|()| port),
        std::task::Poll::Pending => {
            tokio::spawn(serving);
            Ok(port)
        }
    }
}

#[tokio::test]
async fn s06_an_address_beyond_loopback_without_a_token_is_refused() {
    let error = serve_everywhere(fixture::server(), Auth::None).await.expect_err("refused");
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("MCP_API_KEY") && error.to_string().contains("127.0.0.1"), "{error}");
}

#[tokio::test]
async fn s06_x45_an_address_beyond_loopback_is_served_to_those_who_have_the_token() {
    let port = serve_everywhere(fixture::server(), Auth::bearer(["right-token"])).await.expect("served");
    assert_eq!(http(port, "POST", "/mcp/ping", &[JSON], "").await.status, 401);
    assert_eq!(http(port, "POST", "/mcp/ping", &[JSON, TOKEN], "").await.status, 200);
}

#[tokio::test]
async fn s07_z18_a_foreign_host_or_origin_is_refused_at_every_way_in() {
    let port = listen(Options::default()).await;
    for header in [
        ("host", "evil.example"),
        ("host", "localhost.evil.example"),
        ("host", "127.0.0.1.evil.example"),
        ("origin", "http://evil.example"),
        ("origin", "http://localhost.evil.example"),
        ("origin", "http://evil.example/?http://localhost"),
        ("origin", "http://localhost@evil.example"),
        ("origin", "null"),
        ("origin", "file://"),
        ("origin", "\u{fc}"),
    ] {
        for (way, reply) in request_all_paths(port, &[header]).await {
            assert_eq!(reply.status, 403, "{way} {header:?}");
            assert!(!reply.headers.contains_key("access-control-allow-origin"), "{way} {header:?}");
        }
        assert_eq!(http(port, "GET", "/health", &[header], "").await.status, 403, "{header:?}");
        peer::assert_served(port).await;
    }
}

#[tokio::test]
async fn s07_a_request_without_a_host_is_refused() {
    let port = listen(Options::default()).await;
    assert_eq!(peer::raw(port, b"GET /health HTTP/1.0\r\n\r\n").await.status, 400);
    peer::assert_served(port).await;
}

#[tokio::test]
async fn s07_loopback_pages_and_configured_ones_may_call_and_read_the_reply() {
    let options = Options {
        allowed_hosts: vec!["mcp.example.org".into()],
        allowed_origins: vec!["https://app.example.org".into()],
        ..Options::default()
    };
    let port = listen(options).await;
    for origin in ["http://localhost:6274", "http://127.0.0.1", "http://[::1]:3000", "https://app.example.org"] {
        let headers = [JSON, ("origin", origin), ("host", "mcp.example.org")];
        let reply = http(port, "POST", "/mcp/ping", &headers, "").await;
        assert_eq!((reply.status, reply.headers["access-control-allow-origin"].as_str()), (200, origin));
        assert!(reply.headers["access-control-expose-headers"].contains("mcp-session-id"));
        assert!(reply.headers["vary"].to_ascii_lowercase().contains("origin"));
    }
}

#[tokio::test]
async fn s07_without_an_origin_no_page_is_given_leave() {
    let reply = http(listen(Options::default()).await, "POST", "/mcp/ping", &[JSON], "").await;
    assert!(!reply.headers.keys().any(|name| name.starts_with("access-control")), "{reply:?}");
}

/// A browser sends a preflight without the token.
#[tokio::test]
async fn s07_a_preflight_is_answered_without_a_token_and_only_to_allowed_pages() {
    let port = listen_with_token().await;
    let ask = |origin| async move {
        let asked = [("origin", origin), ("access-control-request-method", "POST")];
        http(port, "OPTIONS", "/mcp", &asked, "").await
    };
    let reply = ask("http://localhost:6274").await;
    assert_eq!((reply.status, reply.headers["access-control-allow-origin"].as_str()), (204, "http://localhost:6274"));
    for header in ["authorization", "content-type", "mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name"]
    {
        assert!(reply.headers["access-control-allow-headers"].contains(header), "{header}");
    }
    assert_eq!(ask("http://evil.example").await.status, 403);
}

#[tokio::test]
async fn s09_x20_every_request_of_an_address_counts_also_the_bad_ones() {
    let limit = RateLimit { per_second: 1, burst: 3 };
    let options = || Options { rate_limit: Some(limit), auth: Auth::bearer(["right"]), ..Options::default() };
    let right = ("authorization", "Bearer right");
    let wrong = ("authorization", "Bearer wrong");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (header, body, served) in [(right, ping, 200), (wrong, ping, 401), (right, "{", 400)] {
        let port = fixture::listen(&fixture::server(), options()).await;
        let mut statuses = Vec::new();
        for _ in 0..6 {
            statuses.push(peer::http(port, "POST", "/mcp", &[JSON, header], body).await.status);
        }
        assert_eq!(statuses[..3], [served; 3], "{statuses:?}");
        assert!(statuses[3..].contains(&429), "{statuses:?}");
        let health = peer::http(port, "GET", "/health", &[], "").await;
        assert_eq!(health.status, 200, "operators are let through");
    }
}
