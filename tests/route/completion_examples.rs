//! V-07: examples and error codes of spec 002 with the real program and the mock provider, over every transport.

use serde_json::{Value, json};

use crate::http::HttpClient;
use crate::process::{TestCommand, corbie, modern_meta, request};
use crate::upstream::FakeUpstream;

/// No retry fits into the timeout, so transient failures are reported immediately.
const MOCK: &str = "providers: {detect_ports: [], mock: {type: mock}}\nrouter: {timeout: 500ms}\n";

fn mock_command(arguments: &str) -> TestCommand {
    corbie(arguments).file("corbie.yaml", MOCK)
}

/// A failure requested from the mock, and the expected code, type, kind and REST status.
const FAILURES: [(&str, i64, &str, &str, u16); 10] = [
    ("authentication", -32001, "AuthenticationError", "authentication", 401),
    ("rate-limited", -32002, "RateLimited", "rate_limited", 429),
    ("quota-exhausted", -32002, "RateLimited", "quota_exhausted", 429),
    ("model-not-found", -32003, "ModelNotFound", "model_not_found", 404),
    ("unavailable", -32004, "ProviderUnavailable", "unavailable", 503),
    ("invalid-response", -32004, "ProviderUnavailable", "invalid_response", 503),
    ("network", -32006, "NetworkError", "network", 502),
    ("truncated", -32006, "NetworkError", "truncated", 502),
    ("timeout", -32007, "TimeoutError", "timeout", 504),
    ("bad-request", -32602, "InvalidParams", "mock_error", 400),
];

/// A success in between, so that the circuit breaker does not open after five failures.
fn good_params() -> Value {
    json!({ "prompt": "Hello, world!", "model": "mock" })
}

fn params(failure: &str) -> Value {
    json!({ "prompt": "Hello, world!", "model": format!("mock/mock-error-{failure}") })
}

#[track_caller]
fn assert_error(error: &Value, number: i64, error_type: &str, kind: &str) {
    assert_eq!(error["code"], number, "{error}");
    assert_eq!((&error["data"]["error_type"], &error["data"]["kind"]), (&json!(error_type), &json!(kind)), "{error}");
    assert!(error["message"].as_str().is_some_and(|message| message.len() > 20), "{error}");
}

fn modern_code(number: i64) -> i64 {
    if number == -32602 { number } else { number + 1000 }
}

/// A modern request with the headers that repeat its body.
fn post_modern(client: &HttpClient, body: &Value) -> Value {
    let method = body["method"].as_str().unwrap();
    let headers = [
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
    ];
    client.call("POST", "/mcp", &headers, &body.to_string()).json()
}

fn modern_request(params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"] = modern_meta();
    request(1, "completion/complete", params)
}

#[test]
fn v07_p07_p08_p10_the_example_of_spec_002_over_stdio() {
    let mut server = mock_command("stdio").start();
    let answer = server.send_and_receive(&json!({
        "jsonrpc": "2.0",
        "method": "completion/complete",
        "params": { "prompt": "Hello, world!", "model": "mock" },
        "id": 1,
    }));
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(1)));
    let result = &answer["result"];
    assert_eq!(result["message"], json!({ "role": "assistant", "content": "Hi! How can I help you today?" }));
    assert_eq!(result["usage"], json!({ "promptTokens": 3, "completionTokens": 8, "totalTokens": 11 }));
    assert_eq!((&result["model"], &result["provider"]), (&json!("mock"), &json!("mock")));
    let short = server.send_and_receive(&request(
        2,
        "completion/complete",
        json!({ "prompt": "Hello, world!", "model": "mock", "maxTokens": 3 }),
    ));
    assert_eq!(short["result"]["usage"]["completionTokens"], 3, "{short}");
}

#[test]
fn p09_the_example_of_spec_002_goes_to_openai_in_openais_words() {
    let upstream = FakeUpstream::start();
    let settings = format!("providers: {{detect_ports: [], openai: {{base_url: '{}'}}}}", upstream.base("openai"));
    let setup = corbie("stdio").file("corbie.yaml", &settings).variable("OPENAI_API_KEY", "sk-one");
    let answer = setup.start().send_and_receive(&request(
        1,
        "completion/complete",
        json!({ "prompt": "Hello, world!", "model": "gpt-4o" }),
    ));
    let result = &answer["result"];
    assert_eq!(result["message"], json!({ "role": "assistant", "content": "echo: Hello, world!" }), "{answer}");
    assert_eq!((&result["model"], &result["provider"]), (&json!("gpt-4o"), &json!("openai")));
    let usage = &result["usage"];
    let count = |name: &str| usage[name].as_u64().unwrap();
    assert_eq!(count("totalTokens"), count("promptTokens") + count("completionTokens"));
    let [sent] = &upstream.requests_for("gpt-4o")[..] else { panic!("one request") };
    assert_eq!(
        (&sent["path"], &sent["headers"]["authorization"]),
        (&json!("/v1/chat/completions"), &json!("Bearer sk-one"))
    );
    assert_eq!(sent["body"]["messages"], json!([{ "role": "user", "content": "Hello, world!" }]));
}

#[test]
fn v07_every_code_is_forced_once_over_stdio_in_both_eras() {
    let mut server = mock_command("stdio").start();
    for (failure, number, error_type, kind, _) in FAILURES {
        let legacy = server.send_and_receive(&request(1, "completion/complete", params(failure)));
        assert_error(&legacy["error"], number, error_type, kind);
        let answer = server.send_and_receive(&modern_request(&params(failure)));
        assert_error(&answer["error"], modern_code(number), error_type, kind);
        if modern_code(number) != number {
            assert_eq!(answer["error"]["data"]["legacyCode"], number, "{answer}");
        }
        server.send_and_receive(&request(2, "completion/complete", good_params()));
    }
}

#[test]
fn v07_every_code_is_forced_once_over_http_in_both_eras_and_over_rest() {
    let mut server = mock_command("serve --port 0").start();
    let client = server.client();
    for (failure, number, error_type, kind, status) in FAILURES {
        let legacy = client.post("/mcp", &request(1, "completion/complete", params(failure)));
        assert_error(&legacy.json()["error"], number, error_type, kind);
        let answer = post_modern(&client, &modern_request(&params(failure)));
        assert_error(&answer["error"], modern_code(number), error_type, kind);
        let rest = client.post("/mcp/completion/complete", &params(failure));
        assert_eq!(rest.status, status, "{rest:?}");
        assert!(rest.body.contains(error_type) && rest.body.contains(kind), "{rest:?}");
        assert_eq!(client.post("/mcp/completion/complete", &good_params()).status, 200);
    }
}

/// The replies over HTTP and in the modern era equal those over stdio.
#[test]
fn v07_the_example_of_spec_002_over_http_and_rest() {
    let mut server = mock_command("serve --port 0").start();
    let client = server.client();
    let example = good_params();
    let rpc = client.post("/mcp", &request(1, "completion/complete", example.clone())).json()["result"].clone();
    let modern = post_modern(&client, &modern_request(&example))["result"].clone();
    let rest = client.post("/mcp/completion/complete", &example).json();
    for result in [rpc, modern, rest] {
        assert_eq!(result["message"], json!({ "role": "assistant", "content": "Hi! How can I help you today?" }));
        assert_eq!(result["usage"], json!({ "promptTokens": 3, "completionTokens": 8, "totalTokens": 11 }), "{result}");
    }
}

#[test]
fn v07_p13_without_a_provider_it_is_a_configuration_error_everywhere() {
    let setup = || corbie("serve --stdio --port 0").file("corbie.yaml", "providers: {detect_ports: []}");
    let mut server = setup().start();
    let client = server.client();
    let asked = json!({ "prompt": "Hello, world!", "model": "gpt-4o" });
    assert_error(
        &server.send_and_receive(&request(1, "completion/complete", asked.clone()))["error"],
        -32005,
        "ConfigurationError",
        "no_provider",
    );
    assert_error(
        &server.send_and_receive(&modern_request(&asked))["error"],
        -31005,
        "ConfigurationError",
        "no_provider",
    );
    assert_error(&post_modern(&client, &modern_request(&asked))["error"], -31005, "ConfigurationError", "no_provider");
    assert_eq!(client.post("/mcp/completion/complete", &asked).status, 503);
}

/// "Graceful shutdown on SIGTERM, complete in-flight requests".
#[cfg(unix)]
#[test]
fn p18_v07_a_prompt_that_is_under_way_is_answered_before_the_end() {
    let upstream = FakeUpstream::start();
    for signalled in [true, false] {
        let settings = format!("providers: {{detect_ports: [], openai: {{base_url: '{}'}}}}", upstream.base("openai"));
        let mut server = corbie("stdio").file("corbie.yaml", &settings).variable("OPENAI_API_KEY", "sk-one").start();
        upstream.clear_requests();
        server.send(&request(1, "completion/complete", json!({ "prompt": "Hello", "model": "openai/slow-400" })));
        crate::process::wait_for("the request to arrive", || (!upstream.requests().is_empty()).then_some(()));
        match signalled {
            true => server.signal("TERM"),
            false => server.close_stdin(),
        }
        assert_eq!(server.receive()["result"]["message"]["content"], "echo: Hello");
        assert_eq!(server.wait().code, Some(0));
    }
}

#[test]
fn p13_an_unknown_model_is_not_found() {
    let mut server = mock_command("stdio").start();
    let answer =
        server.send_and_receive(&request(1, "completion/complete", json!({ "prompt": "hi", "model": "gpt-99" })));
    assert_error(&answer["error"], -32003, "ModelNotFound", "model_not_found");
}

#[test]
fn p06_p10_x03_initialize_tells_the_capabilities_of_spec_002() {
    let initialize =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let answer = mock_command("stdio").start().send_and_receive(&request(1, "initialize", initialize));
    let capabilities = &answer["result"]["capabilities"];
    assert_eq!(capabilities["models"], json!({ "listChanged": true }), "{answer}");
    assert_eq!(capabilities["completion"], json!({ "supportsStreaming": false }), "{answer}");
    assert!(capabilities["completions"].is_object(), "{answer}");
}
