//! `POST /mcp/<method>`: params in, bare result out, and the outcome as HTTP status.

mod fixture;

use corbie_mcp::transport::http::{Http, Options};
use corbie_mcp::{Error, Server, TrustLevel};
use fixture::peer::{self, HttpReply, JSON, http};
use serde_json::{Value, json};

async fn listen() -> u16 {
    fixture::listen(&fixture::server(), Options::default()).await
}

async fn rest(port: u16, method: &str, body: &str) -> HttpReply {
    http(port, "POST", &format!("/mcp/{method}"), &[JSON], body).await
}

/// Calls a tool with this body and returns the text of its result.
async fn call_text(port: u16, body: &Value) -> String {
    let reply = rest(port, "tools/call", &body.to_string()).await;
    assert_eq!(reply.status, 200, "{body}: {}", reply.body);
    reply.json()["content"][0]["text"].as_str().expect("text").to_owned()
}

/// A failure: its status, and a JSON-RPC error object with a null id.
async fn check_failure(port: u16, method: &str, body: &str, status: u16, code: i64) {
    let reply = rest(port, method, body).await;
    let answer = reply.json();
    assert_eq!((reply.status, &answer["error"]["code"]), (status, &json!(code)), "{method} {body}: {answer}");
    assert_eq!((&answer["jsonrpc"], answer.get("id")), (&json!("2.0"), Some(&Value::Null)), "{answer}");
    assert!(answer["error"]["message"].is_string() && answer["error"]["data"]["error_type"].is_string(), "{answer}");
}

#[tokio::test]
async fn t20_t21_t27_the_three_paths_give_bare_results_without_a_handshake() {
    let port = listen().await;
    for (method, body, member) in [
        ("tools/call", r#"{"name":"add","arguments":{"a":1,"b":2}}"#, "content"),
        ("tools/list", "{}", "tools"),
        ("initialize", "{}", "capabilities"),
    ] {
        let reply = rest(port, method, body).await;
        assert_eq!((reply.status, reply.headers["content-type"].as_str()), (200, "application/json"), "{method}");
        let result = reply.json();
        assert!(!result[member].is_null(), "{method}: {result}");
        for wrapper in ["jsonrpc", "id", "result"] {
            assert!(result.get(wrapper).is_none(), "{method} has {wrapper}");
        }
    }
}

#[tokio::test]
async fn t21_a_tool_result_always_says_whether_it_is_an_error() {
    let port = listen().await;
    for (tool, is_error) in [("picture", false), ("fail", true)] {
        let result = rest(port, "tools/call", &json!({ "name": tool }).to_string()).await.json();
        assert_eq!(result["isError"], is_error, "{tool}");
    }
}

#[tokio::test]
async fn t22_arguments_may_be_missing_or_null() {
    let port = listen().await;
    for body in [
        json!({ "name": "old" }),
        json!({ "name": "old", "arguments": null }),
        json!({ "name": "old", "arguments": {} }),
    ] {
        assert_eq!(call_text(port, &body).await, "still here", "{body}");
    }
}

#[tokio::test]
async fn t23_z04_params_may_be_wrapped_with_an_empty_method() {
    let port = listen().await;
    let echo = json!({ "name": "echo", "arguments": { "text": "hi" } });
    for body in [
        json!({ "method": "", "params": echo }),
        json!({ "method": "tools/call", "params": echo }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": echo }),
    ] {
        assert_eq!(call_text(port, &body).await, "hi", "{body}");
    }
}

#[tokio::test]
async fn t23_z04_where_no_params_are_needed_the_body_may_be_empty() {
    let port = listen().await;
    for body in ["", " \n", "{}", "null", r#"{"method":""}"#, r#"{"method":"","params":null}"#] {
        for method in ["ping", "tools/list", "initialize", "resources/list", "prompts/list"] {
            assert_eq!(rest(port, method, body).await.status, 200, "{method} {body:?}");
        }
    }
    assert_eq!(rest(port, "ping", "").await.body, "{}");
}

/// Router clients send no `Content-Type` with an empty body.
#[tokio::test]
async fn t23_an_empty_body_needs_no_content_type() {
    assert_eq!(http(listen().await, "POST", "/mcp/ping", &[], "").await.status, 200);
}

#[tokio::test]
async fn t24_x34_tool_and_parameters_stand_for_name_and_arguments() {
    let port = listen().await;
    let parameters = json!({ "text": "hi" });
    assert_eq!(call_text(port, &json!({ "tool": "echo", "parameters": parameters })).await, "hi");
    assert_eq!(
        call_text(port, &json!({ "params": { "tool": "echo", "parameters": parameters }, "method": "" })).await,
        "hi"
    );
    // Canonical names have priority over synonyms.
    let both = json!({ "name": "echo", "arguments": parameters, "tool": "wipe", "parameters": {} });
    assert_eq!(call_text(port, &both).await, "hi");
}

#[tokio::test]
async fn t25_every_method_has_a_path_the_programs_own_too() {
    let server = fixture::builder(Default::default())
        .method("models/list", async |_, _| Ok(json!({ "models": [] })))
        .build()
        .expect("valid");
    let port = fixture::listen(&server, Options::default()).await;
    let complete = r#"{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"G"}}"#;
    for (method, body, member) in [
        ("resources/list", "", "resources"),
        ("resources/templates/list", "", "resourceTemplates"),
        ("resources/read", r#"{"uri":"fixture://text"}"#, "contents"),
        ("prompts/list", "", "prompts"),
        ("prompts/get", r#"{"name":"greet","arguments":{"name":"Ada"}}"#, "messages"),
        ("models/list", "", "models"),
        ("completion/complete", complete, "completion"),
    ] {
        let reply = rest(port, method, body).await;
        assert!(reply.status == 200 && !reply.json()[member].is_null(), "{method}: {reply:?}");
    }
}

#[tokio::test]
async fn t25_z04_lists_with_nothing_to_list_are_empty_not_missing() {
    let server = Server::builder("bare", "0").build().expect("valid");
    let port = fixture::listen(&server, Options::default()).await;
    for (method, member) in [
        ("tools/list", "tools"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ] {
        let reply = rest(port, method, "").await;
        assert_eq!((reply.status, &reply.json()[member]), (200, &json!([])), "{method}");
    }
}

#[tokio::test]
async fn t26_x38_each_failure_has_its_status_and_a_json_rpc_error() {
    let server = fixture::builder(Default::default())
        .method("busy", async |_, _| Err(Error::RateLimited("too many calls; wait a second".into())))
        .method("broken", async |_, _| -> Result<Value, Error> { panic!("secret detail of the panic") })
        .build()
        .expect("valid");
    let port = fixture::listen(&server, fixture::with_trust(TrustLevel::Verified)).await;
    for (method, body, status, code) in [
        ("no/such/method", "{}", 404, -32601),
        ("tools/call", r#"{"name":"no_such_tool"}"#, 404, -32602),
        ("resources/read", r#"{"uri":"fixture://nothing"}"#, 404, -32602),
        ("prompts/get", r#"{"name":"nothing"}"#, 404, -32602),
        ("tools/call", "not JSON", 400, -32700),
        ("tools/call", "[]", 400, -32600),
        ("tools/call", "{}", 400, -32602),
        ("tools/call", r#"{"method":"","params":[]}"#, 400, -32602),
        ("tools/call", r#"{"name":"wipe"}"#, 403, -32010),
        ("tools/call", r#"{"name":"stuck"}"#, 504, -32007),
        ("busy", "", 429, -32002),
        ("broken", "", 500, -32603),
    ] {
        check_failure(port, method, body, status, code).await;
    }
}

#[tokio::test]
async fn t26_a_path_outside_gets_404_with_a_json_rpc_error() {
    let port = listen().await;
    for path in ["/nowhere", "/mcp/", "/mcp2/tools/list"] {
        let reply = http(port, "POST", path, &[JSON], "{}").await;
        assert_eq!(reply.status, 404, "{path}");
        assert!(reply.body.contains("-32601"), "{path}: {:?}", reply.body);
    }
}

#[tokio::test]
async fn t26_a_draining_server_answers_503_while_it_finishes_what_it_began() {
    let gate = fixture::Gate::new();
    let server = fixture::builder(Default::default()).tool(gate.tool()).build().expect("valid");
    let port = fixture::listen(&server, Options::default()).await;
    let held = tokio::spawn(async move { rest(port, "tools/call", r#"{"name":"gate"}"#).await });
    gate.entered().await;
    server.drain();
    check_failure(port, "tools/list", "{}", 503, -32012).await;
    gate.open();
    assert_eq!(held.await.expect("no panic").status, 200);
}

#[tokio::test]
async fn t26_z06_failures_of_a_tool_stay_200() {
    let port = listen().await;
    for body in [r#"{"name":"fail"}"#, r#"{"name":"panic"}"#, r#"{"name":"add","arguments":{"a":"two"}}"#] {
        let reply = rest(port, "tools/call", body).await;
        assert_eq!((reply.status, &reply.json()["isError"]), (200, &json!(true)), "{body}");
    }
}

#[tokio::test]
async fn x01_initialize_over_rest_is_of_2024_unless_it_asks_for_another() {
    let port = listen().await;
    for (asked, answered) in [
        ("", "2024-11-05"),
        (r#"{"protocolVersion":""}"#, "2024-11-05"),
        (r#"{"protocolVersion":"2025-03-26"}"#, "2025-03-26"),
        (r#"{"protocolVersion":"2026-07-28"}"#, "2025-11-25"),
        (r#"{"protocolVersion":"1900-01-01"}"#, "2025-11-25"),
    ] {
        assert_eq!(rest(port, "initialize", asked).await.json()["protocolVersion"], answered, "{asked}");
    }
}

#[tokio::test]
async fn x13_only_post_is_served_on_a_method_path() {
    let port = listen().await;
    assert_eq!(http(port, "GET", "/mcp/tools/list", &[], "").await.status, 405);
    peer::assert_served(port).await;
}

/// Two listeners of one `Http` share all state except the address.
#[tokio::test]
async fn t27_any_listener_serves_without_a_handshake_elsewhere() {
    let http = Http::new(fixture::server(), Options::default());
    for _ in 0..2 {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let port = listener.local_addr().expect("bound").port();
        let http = http.clone();
        tokio::spawn(async move { http.serve(listener).await });
        assert_eq!(rest(port, "tools/list", "").await.status, 200);
    }
}
