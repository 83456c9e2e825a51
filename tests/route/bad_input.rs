//! P-07, P-13, X-03: invalid requests are rejected without calling a provider.

use corbie_mcp::Era;
use serde_json::{Value, json};

use crate::fixture::{app, call, complete};
use crate::process::{corbie, request};
use crate::upstream::FakeUpstream;

#[tokio::test(flavor = "multi_thread")]
async fn p07_x03_params_of_a_wrong_type_are_refused_and_nobody_is_asked() {
    let upstream = FakeUpstream::start();
    let app = app(json!({ "providers": { "openai": upstream.provider("openai") } }));
    let reference = json!({ "type": "ref/prompt", "name": "x" });
    let argument = json!({ "name": "a", "value": "b" });
    let wrong = [
        json!({}),
        json!({ "prompt": null }),
        json!({ "prompt": 5 }),
        json!({ "prompt": ["Hello"] }),
        json!({ "prompt": { "text": "Hello" } }),
        json!({ "prompt": "" }),
        json!({ "prompt": " \n\t" }),
        json!({ "prompt": "Hello", "model": 5 }),
        json!({ "prompt": "Hello", "model": ["gpt-4o"] }),
        json!({ "prompt": "Hello", "model": "" }),
        json!({ "prompt": "Hello", "model": " " }),
        json!({ "prompt": "Hello", "model": "gpt-4o", "maxTokens": 0 }),
        json!({ "prompt": "Hello", "model": "gpt-4o", "maxTokens": -1 }),
        json!({ "prompt": "Hello", "model": "gpt-4o", "maxTokens": 1.5 }),
        json!({ "prompt": "Hello", "model": "gpt-4o", "maxTokens": "5" }),
        json!({ "prompt": "Hello", "model": "gpt-4o", "maxTokens": true }),
        json!({ "prompt": "Hello", "model": "gpt-4o", "maxTokens": 4_294_967_296_u64 }),
        json!({ "prompt": "Hello", "model": "gpt-4o", "ref": reference, "argument": argument }),
        json!({ "ref": reference }),
    ];
    for params in wrong {
        let error = complete(&app, params.clone()).await.unwrap_err().to_object(Era::Legacy);
        assert_eq!(error.code, -32602, "{params}: {error:?}");
        assert!(error.message.len() > 10, "{params}: {error:?}");
    }
    assert!(upstream.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn p07_a_limit_goes_on_to_the_provider() {
    let upstream = FakeUpstream::start();
    let app = app(json!({ "providers": { "openai": upstream.provider("openai") } }));
    for limit in [json!(2), Value::Null] {
        let params = json!({ "prompt": "one two three", "model": "gpt-4o", "maxTokens": limit });
        complete(&app, params).await.unwrap();
    }
    let [limited, unlimited] = &upstream.requests_for("gpt-4o")[..] else { panic!("two requests") };
    let of = |request: &Value| {
        let body = request["body"].as_object().unwrap();
        body.get("max_completion_tokens").or(body.get("max_tokens")).cloned()
    };
    assert_eq!((of(limited), of(unlimited)), (Some(json!(2)), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn p13_an_unknown_model_is_told_with_names_that_are_near() {
    let upstream = FakeUpstream::start();
    let app = app(json!({ "providers": { "house": upstream.provider("openai-compatible") } }));
    let error = complete(&app, json!({ "prompt": "Hello", "model": "ecko-smal" })).await.unwrap_err();
    let error = error.to_object(Era::Legacy);
    assert_eq!(error.code, -32003);
    assert!(error.message.contains("did you mean `echo-small`"), "{error:?}");
    assert_eq!(error.data.unwrap()["details"]["near"][0], "echo-small");
    assert!(upstream.requests_for("ecko-smal").is_empty(), "nobody is asked for it");
    // A name similar to no model gets no suggestion, and a very long name is truncated in the message.
    let error = complete(&app, json!({ "prompt": "Hello", "model": "z".repeat(5000) })).await.unwrap_err();
    let message = error.to_string();
    assert!(!message.contains("did you mean") && message.len() < 400, "{message}");
    assert!(message.contains("models/list"), "{message}");
}

/// Records, logs and suggestions contain model names, so their length is bounded.
#[tokio::test(flavor = "multi_thread")]
async fn p13_a_name_of_megabytes_is_no_model_and_is_kept_nowhere() {
    let upstream = FakeUpstream::start();
    let app = app(json!({
        "providers": { "house": upstream.provider("openai-compatible") },
        "defaults": { "provider": "house" },
    }));
    for name in ["z".repeat(3_000_000), format!("house/{}", "ä".repeat(1_000_000))] {
        let error = complete(&app, json!({ "prompt": "Hello", "model": name })).await.unwrap_err();
        assert_eq!(error.to_object(Era::Legacy).code, -32003);
        assert!(error.to_object(Era::Legacy).message.len() < 1000);
    }
    assert!(upstream.requests().is_empty());
    let kept = serde_json::to_string(&app.router.decision_log().newest(9)).unwrap();
    assert!(kept.len() < 4000, "{} bytes", kept.len());
}

/// Google has the model in the path, so a crafted name could change the path.
#[tokio::test(flavor = "multi_thread")]
async fn p12_a_models_name_stays_one_part_of_the_path() {
    let upstream = FakeUpstream::start();
    let app = app(json!({ "providers": { "google": upstream.provider("google") }, "router": { "timeout": "900ms" } }));
    for name in ["../../v1/models", "..", "a/b", "a?key=x", "a#b", "a b", "a%2e%2e/b", "ä", "a\r\nx: y"] {
        upstream.clear_requests();
        let _ = complete(&app, json!({ "prompt": "Hello", "model": format!("google/{name}") })).await;
        for request in upstream.requests() {
            let path = request["path"].as_str().unwrap();
            let rest = path.strip_prefix("/v1beta/models/").and_then(|rest| rest.strip_suffix(":generateContent"));
            let plain = rest.is_some_and(|rest| !rest.contains(['/', '?', '#', ' ']) && !rest.is_empty());
            assert!(plain || request["method"] == "GET" && path.starts_with("/v1beta/models?"), "{name}: {path}");
        }
    }
}

/// MCP's own completion has the same method; the params distinguish it.
#[tokio::test(flavor = "multi_thread")]
async fn p20_x03_an_argument_is_completed_and_nobody_is_asked() {
    let upstream = FakeUpstream::start();
    let app = app(json!({ "providers": { "openai": upstream.provider("openai") } }));
    let params = json!({
        "ref": { "type": "ref/resource", "uri": "corbie://decisions/{id}" },
        "argument": { "name": "id", "value": "1" },
    });
    let completed = complete(&app, params).await.unwrap();
    assert!(completed["completion"]["values"].is_array() && completed.get("message").is_none(), "{completed}");
    assert!(upstream.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn p19_the_tool_refuses_what_the_method_refuses() {
    let upstream = FakeUpstream::start();
    let app = app(json!({ "providers": { "openai": upstream.provider("openai") } }));
    let unreadable = json!([{ "role": "nobody", "content": "hi" }]);
    for arguments in [
        json!({}),
        json!({ "prompt": "" }),
        json!({ "prompt": "a", "messages": [{ "role": "user", "content": "b" }] }),
        json!({ "messages": [] }),
        json!({ "messages": unreadable }),
        json!({ "prompt": "a", "max_tokens": 0 }),
        json!({ "prompt": "a", "temperature": 3 }),
    ] {
        let params = json!({ "name": "chat_completion", "arguments": arguments });
        match crate::fixture::request(&app, "tools/call", params).await {
            Ok(result) => assert_eq!(result["isError"], true, "{arguments}: {result}"),
            Err(error) => assert_eq!(error.to_object(Era::Legacy).code, -32602, "{arguments}"),
        }
    }
    assert!(upstream.requests().is_empty());
    let failed = call(&app, "chat_completion", json!({ "prompt": "a", "model": "status-503" }));
    let unknown = failed.await;
    assert_eq!(unknown["error"]["details"]["code"], -32003, "{unknown}");
}

/// Five megabytes exceed the default message limit and pass with a higher limit.
#[test]
fn p07_a_prompt_of_five_megabytes_meets_the_limit_or_reaches_the_provider() {
    let upstream = FakeUpstream::start();
    let provider = format!("providers: {{detect_ports: [], openai: {{base_url: '{}'}}}}\n", upstream.base("openai"));
    let long = request(1, "completion/complete", json!({ "prompt": "word ".repeat(1_000_000), "model": "gpt-4o" }));
    let setup = |more: &str| {
        corbie("stdio").file("corbie.yaml", &format!("{provider}{more}")).variable("OPENAI_API_KEY", "sk-one")
    };
    let mut server = setup("").start();
    let refused = server.send_and_receive(&long);
    assert!(refused["error"]["code"].is_i64(), "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("max_message_bytes"), "{refused}");
    assert_eq!(server.send_and_receive(&request(2, "ping", json!({})))["result"], json!({}), "it goes on");
    assert!(upstream.requests().is_empty());

    let mut server = setup("server: {limits: {max_message_bytes: 16MiB}}\n").start();
    let answer = server.send_and_receive(&long);
    assert_eq!(answer["result"]["usage"]["promptTokens"], 1_000_000, "{:.300}", answer.to_string());
    let [sent] = &upstream.requests()[..] else { panic!("one request") };
    assert!(sent["body"]["length"].as_u64().unwrap() > 5_000_000, "{sent}");
}
