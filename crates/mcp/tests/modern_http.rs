//! 2026-07-28 over HTTP: no handshake, no session, headers that repeat the body, and HTTP statuses.

mod fixture;

use corbie_mcp::transport::http::Options;
use fixture::peer::{self, EventStream, HttpReply, JSON, http, initialize, modern, modern_headers, post, post_modern};
use serde_json::{Value, json};

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

async fn listen() -> u16 {
    fixture::listen(&fixture::server(), Options::default()).await
}

fn echo(id: i64) -> Value {
    modern(id, "tools/call", json!({ "name": "echo", "arguments": { "text": "hi" } }), json!({}))
}

/// Posts with valid headers, except for `name`, which is replaced or omitted.
async fn post_but(port: u16, body: &Value, name: &str, value: Option<&str>) -> HttpReply {
    let headers = modern_headers(body);
    let headers = headers.iter().map(|(name, value)| (*name, value.as_str())).filter(|(other, _)| *other != name);
    let headers: Vec<(&str, &str)> = headers.chain(value.map(|value| (name, value))).collect();
    http(port, "POST", "/mcp", &headers, &body.to_string()).await
}

fn check_error(reply: &HttpReply, status: u16, code: i64) {
    let answer = reply.json();
    assert_eq!((reply.status, &answer["error"]["code"]), (status, &json!(code)), "{answer}");
    assert_eq!(answer["id"], 1, "{answer}");
    assert!(answer["error"]["data"]["error_type"].is_string(), "{answer}");
}

#[tokio::test]
async fn x01_a_modern_request_needs_no_handshake_and_its_result_has_a_type() {
    let reply = post_modern(listen().await, &echo(1)).await;
    assert_eq!((reply.status, &reply.json()["result"]["resultType"]), (200, &json!("complete")));
    assert!(!reply.headers.contains_key("mcp-session-id"));
}

#[tokio::test]
async fn x01_modern_lists_say_how_long_and_by_whom_they_may_be_kept() {
    let port = listen().await;
    for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list", "server/discover"] {
        let result = post_modern(port, &modern(1, method, json!({}), json!({}))).await.json()["result"].clone();
        assert_eq!(result["resultType"], "complete", "{method}");
        assert!(result["ttlMs"].is_u64() && result["cacheScope"].is_string(), "{method}: {result}");
    }
}

#[tokio::test]
async fn x01_discover_tells_all_five_versions() {
    let reply = post_modern(listen().await, &modern(1, "server/discover", json!({}), json!({}))).await;
    let versions = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
    assert_eq!(reply.json()["result"]["supportedVersions"], json!(versions));
}

#[tokio::test]
async fn x01_initialize_echoes_legacy_versions_and_gives_the_newest_legacy_one_for_others() {
    let port = listen().await;
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        ("", "2025-06-18"),
    ] {
        let result = post(port, &initialize(asked, json!({}))).await.json()["result"].clone();
        assert_eq!(result["protocolVersion"], answered, "{asked}");
        assert!(result.get("resultType").is_none(), "a handshake is legacy");
    }
    let unstated = post(port, &peer::request(1, "initialize", json!({}))).await.json();
    assert_eq!(unstated["result"]["protocolVersion"], "2025-06-18");
}

#[tokio::test]
async fn x01_t17_a_version_we_do_not_speak_gets_400_and_the_ones_we_do() {
    let mut body = echo(1);
    body["params"]["_meta"][META_VERSION] = "2099-01-01".into();
    let reply = post_but(listen().await, &body, "mcp-protocol-version", Some("2099-01-01")).await;
    check_error(&reply, 400, -32022);
    let data = &reply.json()["error"]["data"];
    assert_eq!(data["requested"], "2099-01-01");
    assert!(data["supported"].as_array().is_some_and(|all| all.contains(&json!("2026-07-28"))), "{data}");
}

#[tokio::test]
async fn t16_a_header_that_is_missing_or_disagrees_with_the_body_gets_400() {
    let port = listen().await;
    for (name, value) in [
        ("mcp-method", None),
        ("mcp-method", Some("tools/list")),
        ("mcp-method", Some("TOOLS/CALL")),
        ("mcp-name", None),
        ("mcp-name", Some("wipe")),
        ("mcp-name", Some("=?base64?!!!?=")),
        ("mcp-protocol-version", None),
        ("mcp-protocol-version", Some("2025-11-25")),
    ] {
        check_error(&post_but(port, &echo(1), name, value).await, 400, -32020);
    }
    peer::assert_served(port).await;
}

#[tokio::test]
async fn t16_a_modern_header_over_a_body_that_is_not_modern_gets_400() {
    let body = peer::call(1, "echo", json!({ "text": "hi" }));
    check_error(&post_but(listen().await, &body, "", None).await, 400, -32602);
}

#[tokio::test]
async fn t16_the_name_header_follows_the_method() {
    let port = listen().await;
    for (method, params) in [
        ("prompts/get", json!({ "name": "greet", "arguments": { "name": "Ada" } })),
        ("resources/read", json!({ "uri": "fixture://text" })),
    ] {
        let body = modern(1, method, params, json!({}));
        assert_eq!(post_modern(port, &body).await.status, 200, "{method}");
        check_error(&post_but(port, &body, "mcp-name", Some("another")).await, 400, -32020);
    }
}

#[tokio::test]
async fn t16_a_name_too_rich_for_a_header_comes_in_base64() {
    let body = modern(1, "resources/read", json!({ "uri": "fixture://items/é" }), json!({}));
    let reply = post_but(listen().await, &body, "mcp-name", Some("=?base64?Zml4dHVyZTovL2l0ZW1zL8Op?=")).await;
    assert_eq!((reply.status, &reply.json()["result"]["contents"][0]["text"]), (200, &json!("item é")));
}

#[tokio::test]
async fn t17_e03_an_unknown_method_gets_404() {
    let port = listen().await;
    // `ping` and `initialize` are legacy methods.
    for method in ["no/such/method", "ping", "initialize"] {
        check_error(&post_modern(port, &modern(1, method, json!({}), json!({}))).await, 404, -32601);
    }
}

#[tokio::test]
async fn t17_a_capability_the_client_lacks_gets_400_and_is_named() {
    let body = modern(1, "tools/call", json!({ "name": "ask_model" }), json!({}));
    let reply = post_modern(listen().await, &body).await;
    check_error(&reply, 400, -32021);
    assert_eq!(reply.json()["error"]["data"]["requiredCapabilities"], json!({ "sampling": {} }));
}

#[tokio::test]
async fn t17_what_a_tool_or_its_arguments_get_wrong_is_200() {
    let port = listen().await;
    let unknown = modern(1, "tools/call", json!({ "name": "no_such_tool" }), json!({}));
    check_error(&post_modern(port, &unknown).await, 200, -32602);
    let stuck = modern(1, "tools/call", json!({ "name": "stuck" }), json!({}));
    let reply = post_modern(port, &stuck).await;
    check_error(&reply, 200, -31007);
    assert_eq!(reply.json()["error"]["data"]["legacyCode"], -32007);
}

#[tokio::test]
async fn t15_a_session_header_is_ignored_and_none_is_issued() {
    let reply = post_but(listen().await, &echo(1), "mcp-session-id", Some("of-another-time")).await;
    assert_eq!(reply.status, 200);
    assert!(!reply.headers.contains_key("mcp-session-id"));
}

#[tokio::test]
async fn t15_there_is_no_get() {
    let headers = [("accept", "text/event-stream"), ("mcp-protocol-version", "2026-07-28")];
    assert_eq!(EventStream::open(listen().await, "GET", &headers, "").await.status, 405);
}

#[tokio::test]
async fn t14_a_modern_notification_gets_202() {
    let body = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1, "_meta": { META_VERSION: "2026-07-28" } } });
    let reply = post_modern(listen().await, &body).await;
    assert_eq!((reply.status, reply.body.as_str()), (202, ""));
}

#[tokio::test]
async fn t12_progress_comes_before_a_modern_answer_on_its_own_stream() {
    let mut body = modern(1, "tools/call", json!({ "name": "steps" }), json!({}));
    body["params"]["_meta"]["progressToken"] = 7.into();
    let reply = post_modern(listen().await, &body).await;
    assert!(reply.is_stream(), "{reply:?}");
    let events = reply.events();
    assert_eq!(events[0]["params"], json!({ "progressToken": 7, "progress": 1, "total": 3, "message": "working" }));
    assert_eq!(events.last().expect("an answer")["result"]["resultType"], "complete");
}

/// One set of headers cannot match several bodies.
#[tokio::test]
async fn x27_modern_requests_in_a_batch_are_refused_one_by_one() {
    let port = listen().await;
    let batch = json!([echo(1), peer::request(2, "ping", json!({}))]).to_string();
    let answers = http(port, "POST", "/mcp", &[JSON], &batch).await.json();
    assert_eq!(answers[0]["error"]["code"], -32600);
    assert_eq!(answers[1]["result"], json!({}));
}

#[tokio::test]
async fn t16_a_batch_under_a_modern_header_is_refused_whole() {
    let port = fixture::listen(&fixture::server(), Options::default()).await;
    let headers = [JSON, ("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
    let body = json!([peer::call(1, "echo", json!({ "text": "hidden" }))]).to_string();
    let reply = peer::http(port, "POST", "/mcp", &headers, &body).await;
    assert_eq!((reply.status, reply.body.contains("hidden")), (400, false));
}

#[tokio::test]
async fn t16_the_rest_style_serves_nothing_modern() {
    let port = fixture::listen(&fixture::server(), Options::default()).await;
    let modern_body =
        peer::modern(1, "tools/call", json!({ "name": "echo", "arguments": { "text": "hidden" } }), json!({}));
    let plain_body = json!({ "name": "echo", "arguments": { "text": "hidden" } });
    let modern_header = ("mcp-protocol-version", "2026-07-28");
    for (headers, body) in [(vec![JSON], &modern_body["params"]), (vec![JSON, modern_header], &plain_body)] {
        let reply = peer::http(port, "POST", "/mcp/tools/call", &headers, &body.to_string()).await;
        assert_eq!((reply.status, reply.body.contains("hidden")), (400, false), "{}", reply.body);
    }
}
