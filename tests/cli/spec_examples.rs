//! Runs the examples of the specifications, verbatim, against the program.
//!
//! If an example calls a tool of a later release, an existing tool replaces it; all the rest is pasted unchanged.
//! `classification.rs` tests the answers of the classification tools.

use serde_json::{Value, json};

use crate::http::HttpClient;
use crate::process::{TestProcess, corbie, modern_meta, request};

fn example(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

fn serve() -> (TestProcess, HttpClient) {
    let mut server = corbie("--http --port 0").start();
    let client = server.client();
    (server, client)
}

/// Every member of `part` is in `whole`, with the same value.
#[track_caller]
fn assert_contains(whole: &Value, part: &Value) {
    match part {
        Value::Object(members) => members.iter().for_each(|(name, value)| assert_contains(&whole[name], value)),
        value => assert_eq!(whole, value),
    }
}

/// Asserts the same members with the same types, regardless of values.
#[track_caller]
fn assert_same_shape(found: &Value, example: &Value) {
    match (found, example) {
        (Value::Object(found), Value::Object(example)) => {
            for (name, value) in example {
                assert_same_shape(found.get(name).unwrap_or_else(|| panic!("no `{name}` in {found:?}")), value);
            }
        }
        (Value::Array(found), Value::Array(example)) => {
            for found in found {
                assert_same_shape(found, &example[0]);
            }
        }
        (found, example) => assert_eq!(std::mem::discriminant(found), std::mem::discriminant(example), "{found}"),
    }
}

// === 000: the classification protocol ===

/// "Initialization Sequence".
#[test]
fn t20_t21_t27_the_routers_start_sequence_over_rest() {
    let (_server, client) = serve();
    let opened = client.call("POST", "/mcp/initialize", &[], "");
    assert_eq!((opened.status, opened.header("content-type")), (200, Some("application/json")));
    let opened = opened.json();
    let versioning = example(
        r#"{"protocolVersion": "2024-11-05", "serverInfo": {"name": "embedding-classifier", "version": "1.0.0"}}"#,
    );
    assert_same_shape(&opened, &versioning);
    assert_eq!(opened["protocolVersion"], versioning["protocolVersion"]);
    assert!(opened["capabilities"].is_object(), "server capabilities, without a wrapper: {opened}");
    assert!(opened.get("jsonrpc").is_none() && opened.get("result").is_none());

    let listed = client.call("POST", "/mcp/tools/list", &[], "").json();
    assert_eq!(listed.as_object().unwrap().keys().collect::<Vec<_>>(), ["tools"]);
    let called = client.post("/mcp/tools/call", &json!({ "name": "list_categories", "arguments": {} }));
    assert_eq!(called.status, 200);
    assert_same_shape(&called.json(), &example(r#"{"content": [{"type": "text", "text": "{}"}], "isError": false}"#));
}

/// "Style 1: Single Endpoint (JSON-RPC)": there is no `jsonrpc` member.
#[test]
fn t11_x12_the_body_without_jsonrpc_is_answered_with_it() {
    let (_server, client) = serve();
    let body = r#"{
      "method": "tools/call",
      "params": {
        "name": "classify_text",
        "arguments": { "text": "..." }
      },
      "id": 1
    }"#;
    let reply = client.call("POST", "/mcp", &[], body);
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    let answer = reply.json();
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(1)));
    assert_same_shape(
        &answer["result"],
        &example(r#"{"content": [{"type": "text", "text": "{}"}], "isError": false}"#),
    );
}

/// "Style 2: REST-Style (Recommended)".
#[test]
fn t21_t22_the_rest_style_gives_the_bare_result() {
    let (_server, client) = serve();
    let body = r#"{
      "name": "classify_text",
      "arguments": { "text": "..." }
    }"#;
    let reply = client.call("POST", "/mcp/tools/call", &[], body);
    assert_eq!(reply.status, 200);
    let result = reply.json();
    assert_eq!((&result["content"][0]["type"], &result["isError"]), (&json!("text"), &json!(false)));
    assert!(result.get("jsonrpc").is_none() && result.get("id").is_none());
}

#[test]
fn t40_health_begins_with_the_status() {
    let (_server, client) = serve();
    let reply = client.get("/health");
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    let health = reply.json();
    assert_eq!(health["status"], "ok");
    let example = example(
        r#"{
          "status": "ok",
          "categories": ["math", "science"],
          "model": "Qwen/Qwen3-Embedding-0.6B",
          "index_size": 95
        }"#,
    );
    assert_same_shape(&health, &example);
    assert_eq!(
        health["tools_count"],
        client.post("/mcp/tools/list", &json!({})).json()["tools"].as_array().unwrap().len()
    );
}

/// "Or as JSON-RPC error".
#[test]
fn x06_t26_an_unknown_tool_is_a_json_rpc_error_in_both_styles() {
    let (_server, client) = serve();
    let documented = r#"{
      "jsonrpc": "2.0",
      "id": 1,
      "error": {
        "code": -32603,
        "message": "Internal error: ..."
      }
    }"#;
    let answer =
        client.post("/mcp", &example(r#"{"method": "tools/call", "params": {"name": "memory_put"}, "id": 1}"#));
    assert_eq!(answer.status, 200);
    assert_same_shape(&answer.json(), &example(documented));
    let error = answer.json()["error"].clone();
    assert_eq!((&error["code"], &error["data"]["error_type"]), (&json!(-32602), &json!("ToolNotFoundError")));
    assert!(error["message"].as_str().unwrap().contains("memory_put"));

    let reply = client.post("/mcp/tools/call", &json!({ "name": "memory_put", "arguments": {} }));
    assert_eq!(reply.status, 404);
    let body = reply.json();
    assert_eq!((&body["id"], &body["error"]), (&Value::Null, &error));
}

// === 002: the server over stdio ===

#[test]
fn m43_m45_x10_the_capabilities_are_those_documented() {
    let documented = example(
        r#"{
          "capabilities": {
            "models": {
              "listChanged": true
            },
            "completion": {
              "supportsStreaming": false
            },
            "tools": {
              "supportsProgress": false
            },
            "resources": {
              "subscribe": false,
              "listChanged": false
            }
          }
        }"#,
    );
    let mut server = corbie("").start();
    let opening = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":"c","version":"1"},"capabilities":{}}}"#;
    let opened = server.send_and_receive(&example(opening))["result"].clone();
    assert_eq!(opened["protocolVersion"], "2025-06-18", "X-01: none asked for");
    let served = opened["capabilities"].as_object().unwrap();
    assert!(served.contains_key("tools") && served.contains_key("resources"));
    for (name, flags) in documented["capabilities"].as_object().unwrap() {
        // M-50: unsupported capabilities are not declared.
        if let Some(told) = served.get(name) {
            assert_contains(told, flags);
        }
    }
}

/// "Supported MCP Methods": methods without parameters are sent without `params`, as the first message.
#[test]
fn m21_m22_m25_t06_methods_without_parameters_need_nothing_before_them() {
    for (method, member) in [("tools/list", Some("tools")), ("resources/list", Some("resources")), ("ping", None)] {
        let ended = corbie("").run(&format!("{}\n", json!({ "jsonrpc": "2.0", "method": method, "id": 1 })));
        let answer = ended.messages().remove(0);
        assert_eq!(answer["id"], 1);
        match member {
            Some(member) => assert!(answer["result"][member].is_array(), "{answer}"),
            None => assert_eq!(answer["result"], json!({})),
        }
    }
}

/// "Example Request". Without a provider the answer is an error.
#[test]
fn t06_the_example_request_is_answered_as_the_first_message() {
    let body = r#"{
      "jsonrpc": "2.0",
      "method": "completion/complete",
      "params": {
        "prompt": "Hello, world!",
        "model": "gpt-4o"
      },
      "id": 1
    }"#;
    let answer = corbie("").start().send_and_receive(&example(body));
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(1)));
    match answer.get("result") {
        Some(result) => assert_same_shape(result, &example(r#"{"message": {"role": "assistant", "content": "Hi!"}}"#)),
        None => {
            assert!(answer["error"]["code"].is_i64() && answer["error"]["data"]["error_type"].is_string(), "{answer}")
        }
    }
}

/// "MCP Protocol Errors".
#[test]
fn e01_e02_e03_e04_the_four_protocol_errors() {
    let input = [
        "not JSON",
        r#"{"id": 2, "method": "ping"}"#,
        r#"{"jsonrpc": "2.0", "id": 3, "method": "no/such"}"#,
        r#"{"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {}}"#,
    ];
    let answers = corbie("").run(&input.map(|line| format!("{line}\n")).concat()).messages();
    let told: Vec<(Value, Value)> =
        answers.iter().map(|answer| (answer["id"].clone(), answer["error"]["code"].clone())).collect();
    let expected = [(Value::Null, -32700), (json!(2), -32600), (json!(3), -32601), (json!(4), -32602)]
        .map(|(id, code)| (id, json!(code)));
    assert_eq!(told, expected);
}

// === 003: the knowledge server ===

/// "Version Negotiation".
#[test]
fn m40_m42_m44_the_version_and_capabilities_are_those_documented() {
    let documented = example(
        r#"{
          "protocolVersion": "2025-06-18",
          "capabilities": {
            "tools": {
              "listChanged": true
            },
            "prompts": {
              "listChanged": false
            }
          },
          "serverInfo": {
            "name": "knowledge-server",
            "version": "1.0.0"
          }
        }"#,
    );
    let opening = request(1, "initialize", json!({ "protocolVersion": "2025-06-18" }));
    let (_server, client) = serve();
    for opened in [corbie("").start().send_and_receive(&opening), client.post("/mcp", &opening).json()] {
        let opened = &opened["result"];
        assert_same_shape(opened, &documented);
        assert_eq!(opened["protocolVersion"], documented["protocolVersion"]);
        assert_contains(&opened["capabilities"], &documented["capabilities"]);
    }
}

/// "Error Handling".
#[test]
fn e15_errors_have_the_documented_form() {
    let documented = example(
        r#"{
          "jsonrpc": "2.0",
          "id": "request-id",
          "error": {
            "code": -32000,
            "message": "Error description",
            "data": {
              "error_type": "validation_error",
              "details": {}
            }
          }
        }"#,
    );
    let mut server = corbie("").start();
    let answer = server.send_and_receive(&request("request-id", "tools/call", json!({ "name": "no_such_tool" })));
    assert_same_shape(&answer, &documented);
    assert_eq!(answer["id"], documented["id"]);
    for (method, params) in
        [("no/such", json!({})), ("resources/read", json!({ "uri": "no:such" })), ("prompts/get", json!({}))]
    {
        let error = server.send_and_receive(&request(1, method, params))["error"].clone();
        assert!(error["message"].is_string() && error["data"]["error_type"].is_string(), "{error}");
    }
}

/// "Cancellation".
#[test]
fn m28_x08_cancelling_is_silent_as_a_notification_and_an_error_as_a_request() {
    let body = r#"{
      "jsonrpc": "2.0",
      "method": "tools/cancel",
      "params": {
        "taskId": "task-uuid"
      }
    }"#;
    let (_server, client) = serve();
    let reply = client.call("POST", "/mcp", &[], body);
    assert_eq!((reply.status, reply.body.as_str()), (202, ""));

    let mut server = corbie("").start();
    server.send(&example(body));
    // The next message answers the next request.
    let mut asked = example(body);
    asked["id"] = json!("as a request");
    let answer = server.send_and_receive(&asked);
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("as a request"), &json!(-32602)));
    assert_eq!(client.post("/mcp", &asked).json()["error"]["code"], -32602);
}

/// "HTTP Streaming Transport": the same message over POST, with and without accepting a stream.
#[test]
fn t10_t12_the_example_over_http_is_answered_in_a_documented_form() {
    let body = r#"{
      "jsonrpc": "2.0",
      "id": "1",
      "method": "tools/call",
      "params": {
        "name": "knowledge-search",
        "arguments": {
          "query": "authentication",
          "top_k": 5
        }
      }
    }"#;
    let (_server, client) = serve();
    for headers in [&[][..], &[("Accept", "*/*")], &[("Accept", "application/json, text/event-stream")]] {
        let reply = client.call("POST", "/mcp", headers, body);
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
        let answer = reply.json();
        assert_eq!(answer["id"], "1", "a string stays a string");
        match answer.get("result") {
            Some(result) => assert_same_shape(result, &example(r#"{"content": [{"type": "text", "text": "{}"}]}"#)),
            None => assert_eq!(answer["error"]["data"]["error_type"], "ToolNotFoundError", "{answer}"),
        }
    }
}

/// "Example Usage" of every tool.
#[test]
fn t24_x34_tool_and_parameters_are_taken_over_rest() {
    let body = r#"{
      "tool": "get_tool_schema",
      "parameters": {
        "name": "inspect_server"
      }
    }"#;
    let (_server, client) = serve();
    let result = client.call("POST", "/mcp/tools/call", &[], body).json();
    assert_eq!(result["structuredContent"]["name"], "inspect_server");
    let result = client.call("POST", "/mcp/tools/call", &[], r#"{"tool": "inspect_server", "parameters": {}}"#).json();
    assert_eq!(result["isError"], false);
}

// === 004: the messages ===

#[test]
fn m01_m02_m03_m04_a_tool_call_and_its_result_have_the_documented_members() {
    let documented = example(
        r#"{
          "jsonrpc": "2.0",
          "id": 1,
          "result": {
            "content": [
              {
                "type": "text",
                "text": "{}"
              }
            ],
            "isError": false
          }
        }"#,
    );
    let (_server, client) = serve();
    for id in [json!("correlation"), json!(1), json!(0), json!(-5), json!(9_007_199_254_740_993_u64)] {
        for (arguments, fails) in [(json!({ "name": "inspect_server" }), false), (json!({}), true)] {
            let call = json!({
                "jsonrpc": "2.0",
                "method": "tools/call",
                "id": id,
                "params": { "name": "get_tool_schema", "arguments": arguments }
            });
            for answer in [corbie("").start().send_and_receive(&call), client.post("/mcp", &call).json()] {
                assert_eq!(answer["id"], id);
                assert_same_shape(&answer["result"], &documented["result"]);
                assert_eq!(answer.as_object().unwrap().keys().collect::<Vec<_>>(), ["jsonrpc", "id", "result"]);
                assert_eq!(answer["result"]["isError"], fails);
                let text = answer["result"]["content"][0]["text"].as_str().unwrap();
                assert!(example(text).is_object() && !text.contains('\n'), "compact JSON in one line: {text}");
            }
        }
    }
}

/// "Tool Registration Schema".
#[test]
fn m60_m61_tools_are_listed_with_the_documented_members() {
    let documented = example(
        r#"{
          "name": "tool",
          "description": "Human-readable description",
          "inputSchema": { "type": "object", "properties": {} },
          "metadata": { "module": "path", "destructive": false, "cache_ttl": 300 }
        }"#,
    );
    let listed = corbie("").start().send_and_receive(&request(1, "tools/list", json!({})))["result"]["tools"].clone();
    for tool in listed.as_array().unwrap() {
        assert_same_shape(tool, &documented);
        assert!(tool["metadata"].as_object().unwrap().contains_key("deprecated_in"));
    }
}

/// "Server Capabilities Schema".
#[test]
fn m48_x11_initialize_gives_the_members_of_both_forms() {
    let documented = example(
        r#"{
          "name": "codomyrmex-mcp",
          "version": "1",
          "capabilities": {
            "tools": {"listChanged": true},
            "resources": {"subscribe": true, "listChanged": true},
            "prompts": {"listChanged": true}
          },
          "tools_count": 1,
          "resources_count": 1,
          "prompts_count": 1
        }"#,
    );
    let opened = corbie("").start().send_and_receive(&request(1, "initialize", json!({})))["result"].clone();
    for (name, value) in documented.as_object().unwrap() {
        match value {
            Value::Object(_) => {
                let areas = ["tools", "resources", "prompts"];
                for area in areas {
                    for flag in value[area].as_object().unwrap().keys() {
                        assert!(opened["capabilities"][area][flag].is_boolean(), "{area}.{flag}");
                    }
                }
            }
            value => assert_same_shape(&opened[name], value),
        }
    }
}

/// All five versions are served concurrently (X-01).
#[test]
fn x01_each_asked_version_is_spoken() {
    for (asked, spoken) in [
        (json!("2024-11-05"), "2024-11-05"),
        (json!("2025-03-26"), "2025-03-26"),
        (json!("2025-06-18"), "2025-06-18"),
        (json!("2025-11-25"), "2025-11-25"),
        (json!("2026-07-28"), "2025-11-25"),
        (json!("1999-01-01"), "2025-11-25"),
        (json!(""), "2025-06-18"),
    ] {
        let opened =
            corbie("").start().send_and_receive(&request(1, "initialize", json!({ "protocolVersion": asked })));
        assert_eq!(opened["result"]["protocolVersion"], spoken, "{asked}");
    }
    let discovered =
        corbie("").start().send_and_receive(&request(1, "server/discover", json!({ "_meta": modern_meta() })));
    let versions = discovered["result"]["supportedVersions"].as_array().unwrap().len();
    assert_eq!((versions, &discovered["result"]["resultType"]), (5, &json!("complete")));
}
