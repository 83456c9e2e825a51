//! Errors: the status gives the kind to SDKs, and the body has OpenAI's shape.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fixture::{
    ApiServer, CHAT_PATH, chat_request, expect_error, server_command, settings_for_each_format, with_members,
};
use crate::upstream::{FORMATS, FakeUpstream};

/// Settings with a timeout shorter than the delay requested by a provider.
fn settings_with_short_timeout(upstream: &FakeUpstream) -> Value {
    let mut settings = settings_for_each_format(upstream);
    settings["router"] = json!({ "failover": true, "timeout": "1500ms" });
    settings
}

#[test]
fn a_rate_limit_upstream_keeps_its_wait_and_is_not_to_be_tried_again_by_the_sdk() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::start(&settings_with_short_timeout(&upstream));
    for format in FORMATS {
        let asked = chat_request(&format!("{format}/status-429-after-2"), "hello");
        for asked in [asked.clone(), with_members(asked, json!({ "stream": true }))] {
            let started = Instant::now();
            let reply = face.chat(&asked);
            let error = expect_error(&reply, 429);
            assert_eq!(reply.header("retry-after"), Some("2"), "{format}");
            assert_eq!(reply.header("x-should-retry"), Some("false"), "{format}");
            assert_eq!(error["type"], "rate_limit_error", "{format}");
            assert!(started.elapsed() < Duration::from_secs(2), "a wait that cannot end in time is not begun");
        }
    }
}

#[test]
fn a_wait_in_milliseconds_or_until_a_date_is_told_in_whole_seconds() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::start(&settings_with_short_timeout(&upstream));
    for (model, waits) in [("status-429-ms-1900", ["2", "2"]), ("status-429-date", ["2", "1"])] {
        let reply = face.chat(&chat_request(&format!("openai/{model}"), "hello"));
        expect_error(&reply, 429);
        assert!(reply.header("retry-after").is_some_and(|wait| waits.contains(&wait)), "{model}: {reply:?}");
    }
}

#[test]
fn an_account_with_nothing_left_is_a_rate_limit_and_not_to_be_tried_again() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::start(&settings_with_short_timeout(&upstream));
    for format in FORMATS {
        let reply = face.chat(&chat_request(&format!("{format}/quota"), "hello"));
        assert_eq!(expect_error(&reply, 429)["code"], "quota_exhausted", "{format}");
        assert_eq!(reply.header("x-should-retry"), Some("false"), "{format}");
    }
}

#[test]
fn a_key_that_a_provider_refuses_is_no_fault_of_the_callers_key() {
    let upstream = FakeUpstream::start();
    let provider =
        |format: &&str| ((*format).to_owned(), upstream.provider_with(format, json!({ "api_key": "bad-key" })));
    let providers: serde_json::Map<String, Value> = FORMATS.iter().map(provider).collect();
    let face = ApiServer::start(&json!({ "providers": providers }));
    for format in FORMATS {
        let reply = face.chat(&chat_request(&format!("{format}/echo-small"), "hello"));
        let error = expect_error(&reply, 502);
        assert_eq!(error["type"], "authentication_error", "{format}");
        assert_eq!(reply.header("x-should-retry"), Some("false"), "{format}");
        assert!(!reply.body.contains("bad-key"), "{format}: {reply:?}");
    }
}

#[test]
fn failures_of_providers_have_statuses_that_tell_them_apart() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::start(&settings_with_short_timeout(&upstream));
    let cases = [
        ("status-400", 400, "invalid_request_error"),
        ("status-404", 404, "invalid_request_error"),
        ("status-503", 503, "server_error"),
        ("reset", 502, "server_error"),
        ("stall", 504, "server_error"),
    ];
    for (model, status, kind) in cases {
        let reply = face.chat(&chat_request(&format!("openai/{model}"), "hello"));
        assert_eq!(expect_error(&reply, status)["type"], kind, "{model}");
        assert_eq!(reply.header("x-should-retry"), Some("false"), "{model}");
    }
    let leak = face.chat(&chat_request("openai/leak", "hello"));
    expect_error(&leak, 400);
    assert!(!leak.body.contains("test-key") && !leak.body.contains("/srv/"), "{leak:?}");
}

#[test]
fn an_unknown_model_is_404_with_the_code_that_sdks_know() {
    let upstream = FakeUpstream::start();
    // With several providers and no default, no provider is called for an unknown model.
    let face = ApiServer::with_upstream(&upstream);
    for stream in [false, true] {
        let reply = face.chat(&with_members(chat_request("no-such-model", "hello"), json!({ "stream": stream })));
        let error = expect_error(&reply, 404);
        assert_eq!((&error["code"], &error["param"]), (&json!("model_not_found"), &json!("model")));
        assert_eq!(error["type"], "invalid_request_error");
        assert!(error["message"].as_str().unwrap().contains("no-such-model"), "{error}");
    }
    let lost = face.chat(&chat_request("openai/status-404", "hello"));
    assert_eq!(expect_error(&lost, 404)["code"], "model_not_found");
}

#[test]
fn a_body_that_cannot_be_read_is_400_and_names_the_member() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    for body in ["", "{", "not json", "[]", "null", "\"text\"", "{\"model\":\"auto\",}"] {
        let reply = face.client.call("POST", CHAT_PATH, &[], body);
        assert_eq!(expect_error(&reply, 400)["type"], "invalid_request_error", "{body}");
    }
    let reply = face.client.call_bytes("POST", CHAT_PATH, b"{\"model\": \"\xff\xfe\"}");
    expect_error(&reply, 400);
    // In passthrough mode the provider validates the request.
    let asked = chat_request("anthropic/echo-small", "hello");
    let cases = [
        ("messages", Value::Null),
        ("messages", json!([])),
        ("messages", json!("hello")),
        ("messages", json!([{ "role": "nobody", "content": "hello" }])),
        ("messages", json!([7])),
        ("model", json!(7)),
        ("stream", json!("yes")),
        ("temperature", json!("warm")),
        ("max_tokens", json!("many")),
        ("tools", json!({})),
        ("tool_choice", json!(7)),
        ("response_format", json!("json")),
        ("stop", json!(7)),
    ];
    for (name, value) in cases {
        let reply = face.chat(&with_members(asked.clone(), json!({ name: value })));
        assert_eq!(expect_error(&reply, 400)["param"], name, "{value}");
    }
    for model in ["auto", "openai/echo-small"] {
        let mut without = chat_request(model, "hello");
        without.as_object_mut().unwrap().shift_remove("messages");
        assert_eq!(expect_error(&face.chat(&without), 400)["param"], "messages");
    }
    let twice = r#"{"model":"openai/echo-small","messages":[{"role":"user","content":"a"}],"model":"openai/other"}"#;
    let reply = face.client.call("POST", CHAT_PATH, &[], twice);
    assert!(expect_error(&reply, 400)["message"].as_str().unwrap().contains("duplicate members"), "{reply:?}");
    assert!(upstream.requests_for("echo-small").is_empty(), "nobody is asked");
}

#[test]
fn what_is_larger_than_the_limit_is_413() {
    let upstream = FakeUpstream::start();
    let mut settings = settings_for_each_format(&upstream);
    settings["server"] = json!({ "limits": { "max_message_bytes": 4096 } });
    let face = ApiServer::start(&settings);
    let large = chat_request("openai/echo-small", &"a".repeat(5000));
    assert_eq!(expect_error(&face.chat(&large), 413)["type"], "invalid_request_error");
    let large = json!({ "model": "auto", "input": "a".repeat(5000) });
    assert_eq!(expect_error(&face.client.post("/v1/embeddings", &large), 413)["type"], "invalid_request_error");
    assert_eq!(face.chat(&chat_request("openai/echo-small", &"a".repeat(3000))).status, 200);
}

#[test]
fn other_methods_are_405_and_other_paths_404() {
    let face = ApiServer::from_command(server_command("serve --port 0", &json!({})));
    for path in [CHAT_PATH, "/v1/embeddings"] {
        for method in ["GET", "PUT", "DELETE", "PATCH"] {
            let reply = face.client.call(method, path, &[], "");
            assert_eq!(expect_error(&reply, 405)["type"], "invalid_request_error", "{method} {path}");
            assert_eq!(reply.header("allow"), Some("POST"), "{method} {path}");
        }
    }
    for path in ["/v1/responses", "/v1/chat", "/v1/completions", "/v1/chat/completions/some-id", "/v1/files"] {
        for reply in [face.client.get(path), face.client.post(path, &json!({}))] {
            assert_eq!(expect_error(&reply, 404)["type"], "invalid_request_error", "{path}");
        }
    }
}

#[test]
fn without_a_provider_the_failure_says_what_to_do() {
    let face = ApiServer::from_command(server_command("serve --port 0", &json!({})));
    for model in ["auto", "gpt-4o"] {
        let reply = face.chat(&chat_request(model, "hello"));
        let error = expect_error(&reply, 503);
        assert_eq!(error["code"], "no_provider", "{model}");
        assert!(error["message"].as_str().unwrap().contains("OPENAI_API_KEY"), "{error}");
    }
}

#[test]
fn an_unknown_path_is_logged_with_the_paths_that_are_served() {
    let mut face = ApiServer::start(&json!({}));
    let reply = face.client.post("/v1/v1/chat/completions?key=sk-1", &json!({}));
    expect_error(&reply, 404);
    let line = face.server.wait_for_log("/v1/v1/chat/completions");
    assert!(line.contains("INFO") && line.contains("`/v1/chat/completions`"), "{line}");
    assert!(line.contains("base URL") && !line.contains("sk-1"), "{line}");
}
