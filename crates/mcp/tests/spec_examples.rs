//! The JSON examples of the specifications, sent verbatim.
//!
//! Tools of later releases are replaced by stubs that return the printed results. The tests verify that the protocol
//! layer accepts each request and sends each reply in the documented form.

mod fixture;

use corbie_mcp::transport::http::Options;
use corbie_mcp::{
    CallResult, Error, FailedCall, FailureCause, Json, RequestStyle, Server, TaskSupport, Tool, ToolBuilder, ToolCall,
    ToolReply, TrustLevel,
};
use fixture::peer::{self, JSON, Stdio, http};
use serde_json::{Value, json};

/// Errors of spec 000: the same text in every style, `isError` by the style of the request (X-04).
fn classification(failure: &FailedCall<'_>, style: RequestStyle) -> Result<CallResult, Error> {
    let message = match failure.cause {
        FailureCause::Library(error) => error.to_string(),
        FailureCause::Tool { message, .. } => message.clone(),
    };
    let result = CallResult::json(json!({ "error": message }));
    Ok(CallResult { is_error: style == RequestStyle::Standard, ..result })
}

/// Errors of spec 003: always a result object (X-05).
fn knowledge(failure: &FailedCall<'_>, _: RequestStyle) -> Result<CallResult, Error> {
    let (error, message) = match failure.cause {
        FailureCause::Library(Error::Schema { violations, .. }) => {
            let missing = violations.iter().any(|violation| violation.keyword == "required");
            (if missing { "missing_required_parameter" } else { "invalid_parameter" }, violations[0].to_string())
        }
        FailureCause::Library(other) => (other.error_type(), other.to_string()),
        FailureCause::Tool { kind, message, .. } => (kind.as_str(), message.clone()),
    };
    let result = CallResult::json(json!({ "success": false, "error": error, "message": message }));
    Ok(CallResult { is_error: true, ..result })
}

fn categories() -> Value {
    json!({
        "categories": ["math", "science", "technology", "history", "general"],
        "category_system_prompts": { "math": "You are a mathematics expert. When answering math questions:\n- Show step-by-step solutions" },
        "category_descriptions": { "math": "Mathematical and computational queries" },
    })
}

fn server() -> Server {
    let object = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required });
    let text = |name: &str, schema: Value, reply: Value, dialect| {
        let builder: ToolBuilder = Tool::builder(name).description(name).input_schema(schema).dialect(dialect);
        builder.run(move |_, _| std::future::ready(CallResult::json(reply.clone())))
    };
    let class = json!({ "class": 0, "confidence": 0.92, "model": "openai/gpt-oss-20b", "use_reasoning": false });
    let found = json!({ "success": true, "query": "authentication", "results": [], "total_results": 0 });
    fixture::builder(fixture::WipeCounter::default())
        .tool(text("list_categories", object(json!({}), json!([])), categories(), classification))
        .tool(text("classify_text", object(json!({ "text": { "type": "string" } }), json!(["text"])), class, classification))
        .tool(text(
            "knowledge-add",
            object(json!({ "file_path": { "type": "string" }, "async": { "type": "boolean" } }), json!(["file_path"])),
            json!({ "success": true, "task_id": "uuid-v4-task-id", "message": "Document queued for processing", "estimated_time_seconds": 30 }),
            knowledge,
        ))
        .tool(text("knowledge-search", object(json!({ "query": { "type": "string" } }), json!(["query"])), found, knowledge))
        .tool(text("knowledge-status", object(json!({}), json!([])), json!({ "success": true }), knowledge))
        .tool(
            Tool::builder("memory_put").no_input().task_support(TaskSupport::Never).run(async |_, _| Json(true)),
        )
        .method("completion/complete", async |_, params| {
            let params: Value = params.parse()?;
            match params["prompt"].as_str() {
                Some(_) => Ok(json!({
                    "message": { "role": "assistant", "content": "Hi! How can I help you today?" },
                    "usage": { "promptTokens": 3, "completionTokens": 8, "totalTokens": 11 },
                })),
                None => Err(Error::invalid_params("give `prompt`, or `ref` with `argument`")),
            }
        })
        .method("models/list", async |_, _| Ok(json!({ "models": [] })))
        .capability("models", json!({ "listChanged": true }))
        .capability("completion", json!({ "supportsStreaming": false }))
        .suppress_legacy_changes()
        .build()
        .expect("valid")
}

async fn rest(path: &str, body: &str) -> Value {
    let port = fixture::listen(&server(), Options::default()).await;
    let reply = http(port, "POST", path, &[JSON], body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()
}

fn text_of(result: &Value) -> Value {
    serde_json::from_str(result["content"][0]["text"].as_str().expect("a text item")).expect("JSON in the text")
}

// === 000: classification ===

#[tokio::test]
async fn t20_t21_t22_spec_000_rest_call_gets_the_bare_result() {
    let result =
        rest("/mcp/tools/call", r#"{ "name": "classify_text", "arguments": { "text": "What is 2 + 2?" } }"#).await;
    assert_eq!(result["isError"], false);
    assert_eq!(text_of(&result)["model"], "openai/gpt-oss-20b");
    assert!(result.get("jsonrpc").is_none());
}

#[tokio::test]
async fn x28_spec_000_list_categories_is_compact_json_in_one_line() {
    let result = rest("/mcp/tools/call", r#"{"name": "list_categories", "arguments": {}}"#).await;
    assert_eq!(text_of(&result), categories());
    assert!(!result["content"][0]["text"].as_str().expect("text").contains('\n'));
}

#[tokio::test]
async fn t11_x12_spec_000_single_endpoint_without_jsonrpc() {
    let body =
        r#"{ "method": "tools/call", "params": { "name": "classify_text", "arguments": { "text": "..." } }, "id": 1 }"#;
    let answer = rest("/mcp", body).await;
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(1)));
    assert_eq!(text_of(&answer["result"])["class"], 0);
}

#[tokio::test]
async fn x04_e16_spec_000_errors_follow_the_style_of_the_request() {
    let port = fixture::listen(&server(), Options::default()).await;
    let bad = json!({ "name": "classify_text", "arguments": {} });
    let plain = http(port, "POST", "/mcp/tools/call", &[JSON], &bad.to_string()).await.json();
    assert_eq!(plain["isError"], false);
    assert!(text_of(&plain)["error"].is_string());
    assert!(text_of(&plain).get("class").is_none(), "Z-3: an error never looks like a class");
    let bare =
        http(port, "POST", "/mcp", &[JSON], &json!({ "method": "tools/call", "params": bad, "id": 1 }).to_string())
            .await;
    assert_eq!(bare.json()["result"]["isError"], false);
    let standard = peer::post(port, &json!({ "jsonrpc": "2.0", "method": "tools/call", "params": bad, "id": 1 })).await;
    assert_eq!(standard.json()["result"]["isError"], true);
    assert_eq!(text_of(&standard.json()["result"]), text_of(&plain));
}

#[tokio::test]
async fn t20_spec_000_start_sequence_over_rest() {
    let opened = rest("/mcp/initialize", r#"{"clientInfo": {"name": "router"}}"#).await;
    assert_eq!(opened["protocolVersion"], "2024-11-05");
    assert!(opened["serverInfo"]["name"].is_string() && opened["serverInfo"]["version"].is_string());
    assert!(rest("/mcp/tools/list", "").await["tools"].is_array());
}

// === 002: providers ===

#[tokio::test]
async fn x03_spec_002_completion_example_over_stdio() {
    let mut peer = Stdio::start(&server(), TrustLevel::Trusted);
    peer.send(r#"{ "jsonrpc": "2.0", "method": "completion/complete", "params": { "prompt": "Hello, world!", "model": "gpt-4o" }, "id": 1 }"#).await;
    let expected: Value = serde_json::from_str(
        r#"{ "jsonrpc": "2.0", "result": { "message": { "role": "assistant", "content": "Hi! How can I help you today?" },
             "usage": { "promptTokens": 3, "completionTokens": 8, "totalTokens": 11 } }, "id": 1 }"#,
    )
    .expect("the example is JSON");
    assert_eq!(peer.receive().await, expected);
    // The standard form, and neither form.
    let standard =
        json!({ "ref": { "type": "ref/prompt", "name": "greet" }, "argument": { "name": "name", "value": "G" } });
    let answer =
        peer.call(&json!({ "jsonrpc": "2.0", "id": 2, "method": "completion/complete", "params": standard })).await;
    assert_eq!(answer["result"]["completion"]["values"], json!(["Grace"]));
    let answer = peer.call(&json!({ "jsonrpc": "2.0", "id": 3, "method": "completion/complete", "params": {} })).await;
    assert_eq!(answer["error"]["code"], -32602);
}

#[tokio::test]
async fn m43_to_m47_x10_spec_002_and_003_capabilities_are_all_there() {
    let opened = rest("/mcp/initialize", "{}").await;
    let capabilities = &opened["capabilities"];
    let expected = [
        ("/models/listChanged", true),
        ("/completion/supportsStreaming", false),
        ("/tools/supportsProgress", false),
        ("/tools/listChanged", true),
        ("/resources/subscribe", false),
        ("/resources/listChanged", false),
        ("/prompts/listChanged", false),
    ];
    for (pointer, value) in expected {
        assert_eq!(capabilities.pointer(pointer), Some(&json!(value)), "{pointer}");
    }
}

// === 003: knowledge ===

#[tokio::test]
async fn t24_x34_spec_003_usage_examples_over_rest() {
    let usages = [
        r#"{ "tool": "knowledge-add", "parameters": { "file_path": "/path/to/document.pdf", "metadata": { "author": "John Doe", "tags": ["technical", "api-docs"] }, "async": true } }"#,
        r#"{ "tool": "knowledge-search", "parameters": { "query": "How to set up vector database?", "top_k": 5, "min_relevance": 0.5, "filters": { "format": "pdf", "date_range": { "start": "2025-01-01", "end": "2025-12-31" } } } }"#,
        r#"{ "tool": "knowledge-status", "parameters": {} }"#,
    ];
    for usage in usages {
        let result = rest("/mcp/tools/call", usage).await;
        assert_eq!(text_of(&result)["success"], true, "{usage}");
    }
}

#[tokio::test]
async fn x05_x07_spec_003_missing_argument_is_a_result_in_its_dialect() {
    let result = rest("/mcp/tools/call", r#"{ "tool": "knowledge-add", "parameters": {} }"#).await;
    assert_eq!(result["isError"], true);
    assert_eq!(text_of(&result)["error"], "missing_required_parameter");
}

#[tokio::test]
async fn t10_x37_spec_003_http_example_keeps_its_string_id() {
    let body = r#"{ "jsonrpc": "2.0", "id": "1", "method": "tools/call", "params": { "name": "knowledge-search", "arguments": { "query": "authentication", "top_k": 5 } } }"#;
    let answer = rest("/mcp", body).await;
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!("1")));
    assert_eq!(answer["result"]["content"][0]["type"], "text");
}

#[tokio::test]
async fn x08_spec_003_cancel_example_is_silent_as_a_notification() {
    let mut peer = Stdio::start(&server(), TrustLevel::Trusted);
    peer.send(r#"{ "jsonrpc": "2.0", "method": "tools/cancel", "params": { "taskId": "task-uuid" } }"#).await;
    let answer = peer.call(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).await;
    assert_eq!(answer["id"], 1, "the notification was not answered");
}

#[tokio::test]
async fn e15_spec_003_error_format() {
    let mut peer = Stdio::start(&server(), TrustLevel::Trusted);
    let answer = peer
        .call(&json!({ "jsonrpc": "2.0", "id": "request-id", "method": "tools/call", "params": { "name": "nothing" } }))
        .await;
    assert_eq!(answer["id"], "request-id");
    let error = &answer["error"];
    assert!(error["code"].is_i64() && error["message"].is_string());
    assert!(error["data"]["error_type"].is_string() && error["data"]["details"].is_object());
}

#[tokio::test]
async fn x01_spec_003_version_negotiation() {
    let mut peer = Stdio::start(&server(), TrustLevel::Trusted);
    let asked =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    let answer = peer.call(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked })).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
}

// === 004: core ===

#[tokio::test]
async fn m02_m03_v09_spec_004_call_and_result_are_the_documented_types() {
    let call = r#"{"jsonrpc":"2.0","method":"tools/call","id":7,"params":{"name":"memory_put","arguments":{}}}"#;
    assert_eq!(ToolCall::from_json(call).expect("valid").to_json(), call);
    let mut peer = Stdio::start(&server(), TrustLevel::Trusted);
    peer.send(call).await;
    let answer = peer.receive().await.to_string();
    let reply = ToolReply::from_json(&answer).expect("the documented reply");
    assert!(!reply.result.is_error);
}

#[tokio::test]
async fn x11_m48_spec_004_handshake_has_name_version_and_counts() {
    let server = server();
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    let answer = peer.call(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} })).await;
    let opened = &answer["result"];
    assert_eq!((&opened["name"], &opened["version"]), (&json!("fixture"), &json!("1.2.3")));
    assert_eq!(opened["tools_count"], server.registry().len());
    assert!(opened["resources_count"].is_u64() && opened["prompts_count"].is_u64());
}
