//! Server info and capabilities, and that every advertised method exists.

mod fixture;

use corbie_mcp::{Error, Server, ServerBuilder, TrustLevel};
use fixture::WipeCounter;
use fixture::peer::{self, Stdio, TestTransport, initialize, modern, request, request_over_stdio};
use serde_json::{Value, json};

/// A server with the capability flags of the published contracts and two custom methods.
fn product() -> ServerBuilder {
    fixture::builder(WipeCounter::default())
        .suppress_legacy_changes()
        .capability("models", json!({ "listChanged": true }))
        .capability("completion", json!({ "supportsStreaming": false }))
        .method("models/list", async |_, _| Ok(json!({ "models": [{ "id": "gpt-4o" }] })))
        .method("completion/complete", async |_, params: corbie_mcp::message::Params| -> Result<Value, Error> {
            Ok(json!({ "content": params.parse::<Value>()?["prompt"] }))
        })
}

fn server() -> Server {
    product().build().expect("valid")
}

async fn initialized(server: &Server, version: &str) -> Value {
    request_over_stdio(server, &initialize(version, json!({}))).await["result"].take()
}

async fn discovered(server: &Server) -> Value {
    request_over_stdio(server, &modern(1, "server/discover", json!({}), json!({}))).await["result"].take()
}

// === initialize ===

#[tokio::test]
async fn m20_initialize_takes_every_member_or_none() {
    let server = server();
    for params in [
        json!({}),
        json!({ "protocolVersion": "2025-11-25" }),
        json!({ "capabilities": { "roots": { "listChanged": true } } }),
        json!({ "clientInfo": { "name": "c", "version": "1", "title": "C" } }),
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } }),
    ] {
        let answer = request_over_stdio(&server, &request(1, "initialize", params.clone())).await;
        assert_eq!(answer["result"]["serverInfo"]["name"], "fixture", "{params}");
    }
    let bare = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize" });
    assert_eq!(request_over_stdio(&server, &bare).await["result"]["serverInfo"]["name"], "fixture");
}

#[tokio::test]
async fn m40_the_version_is_negotiated() {
    let server = server();
    for (asked, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("", "2025-06-18"),
    ] {
        for way in [TestTransport::Stdio, TestTransport::Http, TestTransport::WebSocket] {
            let answer = way.request(&server, TrustLevel::Trusted, &initialize(asked, json!({}))).await;
            assert_eq!(answer["result"]["protocolVersion"], given, "`{asked}` over {way:?}");
        }
    }
    for params in [json!({}), json!({ "protocolVersion": "" })] {
        let answer = TestTransport::Rest.request(&server, TrustLevel::Trusted, &request(1, "initialize", params)).await;
        assert_eq!(answer["result"]["protocolVersion"], "2024-11-05");
    }
}

#[tokio::test]
async fn m40_a_modern_request_needs_no_handshake_and_an_unknown_version_is_told_what_there_is() {
    let found = discovered(&server()).await;
    let all = json!(["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]);
    assert_eq!((&found["supportedVersions"], &found["resultType"]), (&all, &json!("complete")));

    let mut request = modern(1, "server/discover", json!({}), json!({}));
    request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2030-01-01");
    let error = &request_over_stdio(&server(), &request).await["error"];
    assert_eq!((&error["code"], &error["data"]["supported"]), (&json!(-32022), &all));
}

#[tokio::test]
async fn m41_a14_x40_one_name_and_version_wherever_the_server_is_named() {
    let server = Server::builder("magpie", "4.5.6").builtins().build().expect("valid");
    let info = json!({ "name": "magpie", "version": "4.5.6" });
    let opened = initialized(&server, "2025-11-25").await;
    assert_eq!(opened["serverInfo"], info);
    assert_eq!(discovered(&server).await["_meta"]["io.modelcontextprotocol/serverInfo"], info);

    let inspected = peer::json_of(&request_over_stdio(&server, &peer::call(1, "inspect_server", json!({}))).await);
    let port = fixture::listen(&server, Default::default()).await;
    let health = peer::http(port, "GET", "/health", &[], "").await.json();
    for told in [opened, inspected, health] {
        assert_eq!(json!({ "name": told["name"], "version": told["version"] }), info);
    }
}

#[tokio::test]
async fn m42_m43_m44_m45_m46_m47_m49_x09_x10_the_capabilities_are_the_union_of_what_is_asked() {
    assert_eq!(
        initialized(&server(), "2025-06-18").await["capabilities"],
        json!({
            "tools": { "listChanged": true, "supportsProgress": false },
            "resources": { "subscribe": false, "listChanged": false },
            "prompts": { "listChanged": false },
            "logging": {},
            "completions": {},
            "models": { "listChanged": true },
            "completion": { "supportsStreaming": false },
        })
    );
}

#[tokio::test]
async fn x10_a_capability_of_the_program_is_merged_into_the_servers_own() {
    let server = fixture::builder(WipeCounter::default())
        .capability("tools", json!({ "sorted": true }))
        .capability("extensions", json!({ "com.example/birds": {} }))
        .build()
        .expect("valid");
    let tools = initialized(&server, "2025-11-25").await["capabilities"]["tools"].take();
    assert_eq!(tools, json!({ "listChanged": true, "supportsProgress": false, "sorted": true }));
    let extensions = discovered(&server).await["capabilities"]["extensions"].take();
    assert_eq!(extensions, json!({ "io.modelcontextprotocol/tasks": {}, "com.example/birds": {} }));
}

#[tokio::test]
async fn m48_x11_the_counts_are_the_real_numbers() {
    let server = server();
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    for round in 0..2 {
        let told = peer.call(&initialize("2025-11-25", json!({}))).await["result"].take();
        for (method, member, count) in [
            ("tools/list", "tools", "tools_count"),
            ("resources/list", "resources", "resources_count"),
            ("prompts/list", "prompts", "prompts_count"),
        ] {
            let listed = peer.call(&request(1, method, json!({}))).await;
            let real = listed["result"][member].as_array().map(Vec::len);
            assert_eq!(told[count].as_u64().map(|count| count as usize), real, "{member}, round {round}");
        }
        for member in ["protocolVersion", "capabilities", "serverInfo", "name", "version"] {
            assert!(!told[member].is_null(), "{member} is missing");
        }
        // After removing a tool, the count is one lower.
        if round == 0 {
            server.unregister("nan");
            assert_eq!(peer.receive().await["method"], "notifications/tools/list_changed");
        }
    }
}

#[tokio::test]
async fn m49_completions_are_advertised_where_they_are_served() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        assert_eq!(initialized(&server(), version).await["capabilities"]["completions"], json!({}), "{version}");
    }
}

#[tokio::test]
async fn m50_what_is_advertised_is_served() {
    let server = server();
    let of = |capability: &str| match capability {
        "tools" => request(1, "tools/list", json!({})),
        "resources" => request(1, "resources/list", json!({})),
        "prompts" => request(1, "prompts/list", json!({})),
        "logging" => request(1, "logging/setLevel", json!({ "level": "warning" })),
        "completions" => complete(json!({ "ref": greet(), "argument": { "name": "name", "value": "" } })),
        "completion" => complete(json!({ "prompt": "hello" })),
        "models" => request(1, "models/list", json!({})),
        other => panic!("nobody knows how to use `{other}`"),
    };
    for version in ["2024-11-05", "2025-11-25"] {
        let told = initialized(&server, version).await;
        for capability in told["capabilities"].as_object().expect("an object").keys() {
            let answer = request_over_stdio(&server, &of(capability)).await;
            assert!(answer["result"].is_object(), "{capability}: {answer}");
        }
    }
}

#[tokio::test]
async fn m45_x49_legacy_clients_are_told_false_and_modern_clients_true() {
    let server = server();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let told = initialized(&server, version).await["capabilities"].take();
        assert_eq!(told["resources"], json!({ "subscribe": false, "listChanged": false }), "{version}");
    }
    let told = discovered(&server).await["capabilities"].take();
    assert_eq!(told["resources"], json!({ "subscribe": true, "listChanged": true }));

    let loud = initialized(&fixture::server(), "2025-11-25").await["capabilities"].take();
    assert_eq!(loud["resources"], json!({ "subscribe": true, "listChanged": true }));
    assert_eq!(loud["prompts"], json!({ "listChanged": true }));
}

// === methods ===

fn complete(params: Value) -> Value {
    request(1, "completion/complete", params)
}

fn greet() -> Value {
    json!({ "type": "ref/prompt", "name": "greet" })
}

async fn result(method: &str, params: Value) -> Value {
    let mut answer = request_over_stdio(&server(), &request(1, method, params)).await;
    assert!(answer["result"].is_object(), "{method}: {answer}");
    answer["result"].take()
}

#[tokio::test]
async fn m21_initialized_is_taken_in_silence_and_ping_is_answered() {
    let mut peer = Stdio::start(&server(), TrustLevel::Trusted);
    peer.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    let answer = peer.call(&request(1, "ping", json!({}))).await;
    assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
}

#[tokio::test]
async fn m22_tools_are_listed_with_and_without_params_and_page_by_page() {
    let whole = result("tools/list", json!({})).await["tools"].take();
    let bare = request_over_stdio(&server(), &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).await;
    assert_eq!(bare["result"]["tools"], whole);

    let limits = corbie_mcp::Limits { page_size: 5, ..fixture::quick_limits() };
    let server = product().limits(limits).build().expect("valid");
    let first = request_over_stdio(&server, &request(1, "tools/list", json!({}))).await;
    let cursor = &first["result"]["nextCursor"];
    let second = request_over_stdio(&server, &request(1, "tools/list", json!({ "cursor": cursor }))).await;
    assert_eq!(first["result"]["tools"], json!(whole.as_array().expect("tools")[..5]));
    assert_eq!(second["result"]["tools"], json!(whole.as_array().expect("tools")[5..10]));
}

#[tokio::test]
async fn m23_tools_are_called_by_name_with_arguments() {
    let called = result("tools/call", json!({ "name": "echo", "arguments": { "text": "hi" } })).await;
    assert_eq!(called["content"], json!([{ "type": "text", "text": "hi" }]));
}

#[tokio::test]
async fn m24_models_are_listed_over_every_transport() {
    for way in TestTransport::ALL {
        let answer = way.request(&server(), TrustLevel::Untrusted, &request(1, "models/list", json!({}))).await;
        assert_eq!(answer["result"], json!({ "models": [{ "id": "gpt-4o" }] }), "{way:?}");
    }
}

#[tokio::test]
async fn m24_x03_the_params_choose_between_generation_and_completion() {
    assert_eq!(result("completion/complete", json!({ "prompt": "hi" })).await, json!({ "content": "hi" }));
    let standard = json!({ "ref": greet(), "argument": { "name": "name", "value": "A" } });
    let suggested = result("completion/complete", standard.clone()).await;
    assert_eq!(suggested["completion"]["values"], json!(["Ada", "Alan"]));
}

#[tokio::test]
async fn x03_a_completion_of_both_kinds_is_refused_whoever_serves_them() {
    let both = json!({ "prompt": "hi", "ref": greet(), "argument": { "name": "name", "value": "A" } });
    for server in [server(), fixture::server()] {
        let answer = request_over_stdio(&server, &complete(both.clone())).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
}

#[tokio::test]
async fn x03_a_completion_of_neither_kind_is_refused_whoever_serves_them() {
    for params in [json!({}), json!({ "ref": greet() }), json!({ "argument": { "name": "name", "value": "" } })] {
        for server in [fixture::server(), server()] {
            let answer = request_over_stdio(&server, &complete(params.clone())).await;
            assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
        }
    }
}

#[tokio::test]
async fn m25_x32_resources_are_listed_without_params_and_read_by_uri() {
    let bare = request_over_stdio(&server(), &json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/list" })).await;
    assert_eq!(bare["result"]["resources"][1]["uri"], "fixture://text");
    let read = result("resources/read", json!({ "uri": "fixture://text" })).await;
    assert_eq!(read["contents"][0]["text"], "some text");
}

#[tokio::test]
async fn m26_prompts_are_listed_and_filled_in() {
    let listed = result("prompts/list", json!({})).await;
    assert_eq!(listed["prompts"][0]["name"], "greet");
    let filled = result("prompts/get", json!({ "name": "greet", "arguments": { "name": "Ada" } })).await;
    assert_eq!(filled["messages"][0]["content"]["text"], "Greet Ada.");
}

#[tokio::test]
async fn m27_templates_are_listed_even_if_there_are_none() {
    let listed = result("resources/templates/list", json!({})).await;
    assert_eq!(listed["resourceTemplates"][0]["uriTemplate"], "fixture://items/{id}");
    let bare = Server::builder("bare", "1").build().expect("valid");
    for (method, member) in [
        ("resources/templates/list", "resourceTemplates"),
        ("resources/list", "resources"),
        ("prompts/list", "prompts"),
        ("tools/list", "tools"),
    ] {
        assert_eq!(request_over_stdio(&bare, &request(1, method, json!({}))).await["result"], json!({ member: [] }));
    }
}

#[tokio::test]
async fn m31_an_unknown_method_and_params_that_are_no_object_are_refused() {
    for way in [TestTransport::Stdio, TestTransport::Http, TestTransport::WebSocket] {
        let unknown = way.request(&server(), TrustLevel::Trusted, &request(1, "tools/eat", json!({}))).await;
        assert_eq!(unknown["error"]["code"], -32601, "{way:?}");
        for params in [json!([]), json!("text"), json!(7), json!(false)] {
            let answer = way.request(&server(), TrustLevel::Trusted, &request(1, "tools/list", params.clone())).await;
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32602), &json!(1)), "{params} over {way:?}");
        }
    }
    let unknown =
        TestTransport::Rest.request(&server(), TrustLevel::Trusted, &request(1, "tools/eat", json!({}))).await;
    assert_eq!((&unknown["error"]["code"], &unknown["status"]), (&json!(-32601), &json!(404)));
}
