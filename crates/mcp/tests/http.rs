//! `POST /mcp`: JSON-RPC requests, responses and HTTP statuses.

mod fixture;

use corbie_mcp::transport::http::Options;
use corbie_mcp::{Error, Limits, TrustLevel};
use fixture::peer::{self, HttpReply, JSON, Stdio, call, http, initialize, post, request};
use serde_json::{Value, json};

const SESSION: &str = "mcp-session-id";

async fn listen() -> u16 {
    fixture::listen(&fixture::server(), Options::default()).await
}

async fn post_text(port: u16, headers: &[(&str, &str)], body: &str) -> HttpReply {
    let headers: Vec<_> = [JSON].iter().chain(headers).copied().collect();
    http(port, "POST", "/mcp", &headers, body).await
}

fn ping() -> String {
    request(1, "ping", json!({})).to_string()
}

#[tokio::test]
async fn t10_a_request_is_answered_with_200_and_a_json_rpc_response() {
    let reply = post(listen().await, &call(7, "add", json!({ "a": 1, "b": 2 }))).await;
    assert_eq!((reply.status, reply.headers["content-type"].as_str()), (200, "application/json"));
    let answer = reply.json();
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(7)));
    assert_eq!(answer["result"]["content"][0]["text"], r#"{"sum":3}"#);
}

#[tokio::test]
async fn t10_a_content_type_with_a_charset_is_json_too() {
    let kind = ("content-type", "Application/JSON; charset=utf-8");
    assert_eq!(http(listen().await, "POST", "/mcp", &[kind], &ping()).await.status, 200);
}

#[tokio::test]
async fn t10_a_body_sent_in_chunks_is_read_whole() {
    let (port, body) = (listen().await, ping());
    let (first, second) = body.split_at(10);
    let head = format!("POST /mcp HTTP/1.1\r\nhost: localhost:{port}\r\ncontent-type: application/json\r\n");
    let chunks = format!("{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n", first.len(), second.len());
    let sent = format!("{head}transfer-encoding: chunked\r\nconnection: close\r\n\r\n{chunks}");
    assert_eq!(peer::raw(port, sent.as_bytes()).await.json()["result"], json!({}));
}

#[tokio::test]
async fn t11_x12_a_body_without_jsonrpc_is_served_and_its_answer_carries_it() {
    let reply = post(listen().await, &json!({ "method": "ping", "params": {}, "id": 1 })).await;
    assert_eq!((reply.status, reply.json()), (200, json!({ "jsonrpc": "2.0", "id": 1, "result": {} })));
}

async fn check_jsonrpc_is_refused(version: Value) {
    let reply = post(listen().await, &json!({ "jsonrpc": version, "id": 1, "method": "ping" })).await;
    assert_eq!(reply.json()["error"]["code"], -32600, "{version}: {}", reply.body);
}

#[tokio::test]
async fn x12_another_jsonrpc_than_2_0_is_refused() {
    for version in [json!("1.0"), json!(""), json!(2.0), json!({})] {
        check_jsonrpc_is_refused(version).await;
    }
}

#[tokio::test]
async fn x12_a_null_jsonrpc_is_there_and_is_not_2_0() {
    check_jsonrpc_is_refused(Value::Null).await;
}

#[tokio::test]
async fn t12_clients_that_do_not_ask_for_events_get_plain_json_always() {
    let port = listen().await;
    let mut noisy = call(1, "steps", json!({}));
    noisy["params"]["_meta"] = json!({ "progressToken": "p" });
    for accept in [None, Some(("accept", "*/*")), Some(("accept", "application/json"))] {
        let reply = post_text(port, accept.as_slice(), &noisy.to_string()).await;
        assert_eq!(reply.headers["content-type"], "application/json", "{accept:?}");
        assert_eq!(reply.json()["result"]["content"][0]["text"], "done", "{accept:?}");
    }
}

#[tokio::test]
async fn t14_m09_a_body_of_notifications_or_responses_gets_202_and_nothing_else() {
    let port = listen().await;
    let notification = json!({ "jsonrpc": "2.0", "method": "no/such/notification" });
    let response = json!({ "jsonrpc": "2.0", "id": "unasked", "result": {} });
    for body in [notification.clone(), json!([notification, notification]), response] {
        let reply = post(port, &body).await;
        assert_eq!((reply.status, reply.body.as_str()), (202, ""), "{body}");
    }
}

#[tokio::test]
async fn t15_a_session_is_issued_by_initialize_known_afterwards_and_ended_by_delete() {
    let port = listen().await;
    let opened = post(port, &initialize("2025-06-18", json!({}))).await;
    let session = (SESSION, opened.headers[SESSION].as_str());
    assert!(session.1.len() >= 32 && session.1.bytes().all(|byte| byte.is_ascii_graphic()), "{session:?}");

    assert_eq!(post_text(port, &[session], &ping()).await.status, 200);
    assert_eq!(http(port, "DELETE", "/mcp", &[session], "").await.status, 204);
    assert_eq!(post_text(port, &[session], &ping()).await.status, 404);
    assert_eq!(http(port, "DELETE", "/mcp", &[session], "").await.status, 404);
}

#[tokio::test]
async fn t15_an_unknown_session_gets_404_on_every_method() {
    let port = listen().await;
    let unknown = (SESSION, "from-before-the-restart");
    let events = ("accept", "text/event-stream");
    for (method, body) in [("POST", ping()), ("GET", String::new()), ("DELETE", String::new())] {
        let reply = http(port, method, "/mcp", &[JSON, unknown, events], &body).await;
        assert_eq!(reply.status, 404, "{method}");
        assert!(reply.json()["error"]["message"].as_str().is_some_and(|text| text.contains("initialize")), "{method}");
    }
}

#[tokio::test]
async fn t15_x14_neither_a_session_nor_initialize_is_ever_required() {
    let port = listen().await;
    for method in ["tools/list", "resources/list", "prompts/list", "ping"] {
        let reply = post(port, &request(1, method, json!({}))).await;
        assert!(reply.status == 200 && reply.json()["result"].is_object(), "{method}: {reply:?}");
        assert!(!reply.headers.contains_key(SESSION), "{method}");
    }
}

#[tokio::test]
async fn t16_a_supported_version_header_is_accepted_and_an_absent_one_ignored() {
    let port = listen().await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let reply = post_text(port, &[("mcp-protocol-version", version)], &ping()).await;
        assert_eq!(reply.status, 200, "{version}");
    }
    assert_eq!(post_text(port, &[], &ping()).await.status, 200);
}

async fn check_unsupported_version(method: &str, body: &str) {
    let headers = [JSON, ("mcp-protocol-version", "1999-01-01"), ("accept", "text/event-stream")];
    // Not `http`, which would wait for the end of a stream that must not start.
    let reply = peer::EventStream::open(listen().await, method, &headers, body).await;
    assert_eq!(reply.status, 400, "{method}");
}

#[tokio::test]
async fn t16_an_unsupported_version_header_gets_400_on_post() {
    check_unsupported_version("POST", &ping()).await;
}

#[tokio::test]
async fn t16_an_unsupported_version_header_gets_400_on_get() {
    check_unsupported_version("GET", "").await;
}

#[tokio::test]
async fn t17_only_what_fails_before_a_message_exists_has_an_http_error() {
    let server = fixture::builder(Default::default())
        .method("busy", async |_, _| Err(Error::RateLimited("too many calls; wait a second".into())))
        .method("broken", async |_, _| -> Result<Value, Error> { panic!("secret detail of the panic") })
        .build()
        .expect("valid");
    let port = fixture::listen(&server, Options::default()).await;
    for (body, status, code) in [
        ("not JSON".to_owned(), 400, -32700),
        ("{}".to_owned(), 200, -32600),
        (request(1, "no/such/method", json!({})).to_string(), 200, -32601),
        (call(1, "no_such_tool", json!({})).to_string(), 200, -32602),
        (call(1, "stuck", json!({})).to_string(), 200, -32007),
        (request(1, "broken", json!({})).to_string(), 200, -32603),
        (request(1, "busy", json!({})).to_string(), 429, -32002),
    ] {
        let reply = post_text(port, &[], &body).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (status, &json!(code)), "{body}");
    }
}

#[tokio::test]
async fn t17_t26_a_body_over_the_limit_gets_413() {
    let limits = Limits { max_message_bytes: 1000, ..fixture::quick_limits() };
    let server = fixture::builder(Default::default()).limits(limits).build().expect("valid");
    let port = fixture::listen(&server, Options::default()).await;
    let body = call(1, "echo", json!({ "text": "x".repeat(1000) })).to_string();
    for path in ["/mcp", "/mcp/tools/call"] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost:{port}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let reply = peer::raw(port, format!("{head}{body}").as_bytes()).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (413, &json!(-32600)), "{path}");
        peer::assert_served(port).await;
    }
}

/// A client that waits for `100 Continue`, or is slow, need not send a body that will be rejected.
#[tokio::test]
async fn t17_a_declared_length_over_the_limit_gets_413_before_the_body() {
    let port = listen().await;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost:{port}\r\ncontent-type: application/json\r\ncontent-length: 5000000000\r\n\r\n"
    );
    assert_eq!(peer::raw(port, head.as_bytes()).await.status, 413);
    peer::assert_served(port).await;
}

#[tokio::test]
async fn x13_the_path_decides_the_form_of_the_reply_and_the_body_never_does() {
    let port = listen().await;
    let wrapped = request(1, "tools/list", json!({}));
    assert!(post(port, &wrapped).await.json()["result"]["tools"].is_array());
    let bare = http(port, "POST", "/mcp/tools/list", &[JSON], &wrapped.to_string()).await.json();
    assert!(bare["tools"].is_array() && bare.get("jsonrpc").is_none(), "{bare}");
    // A REST body on the JSON-RPC path is a JSON-RPC error.
    let reply = post(port, &json!({ "name": "echo", "arguments": { "text": "hi" } })).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (200, &json!(-32600)));
}

#[tokio::test]
async fn x23_all_transports_lead_to_the_same_tools_and_the_same_counts() {
    let server = fixture::server();
    for way in peer::TestTransport::ALL {
        way.request(&server, TrustLevel::Trusted, &call(1, "echo", json!({ "text": "hi" }))).await;
    }
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    let seen = peer::json_of(&peer.call(&call(2, "inspect_server", json!({}))).await);
    assert_eq!(seen["tools"]["echo"]["calls"], 4);
}

#[tokio::test]
async fn x37_ids_come_back_as_they_were_sent() {
    let port = listen().await;
    for id in ["0", "-1", "9007199254740993", "18446744073709551615", "\"7\"", "\"\"", "\"Grüße\""] {
        let reply = post_text(port, &[], &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).await;
        assert_eq!(reply.body, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
}
