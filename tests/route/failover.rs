//! P-17, P-18: failover order, exclusions and circuit breaker.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use corbie::providers::Delta;
use corbie_mcp::Era;
use serde_json::{Value, json};

use crate::fixture::{app, app_with_categories, ask_request, call, complete, last_decision, request};
use crate::upstream::{FORMATS, FakeUpstream, RecordedRequest, ScriptedServer, listing, write_json};

/// The received completion requests in order, as `name key model`.
type RequestOrder = Arc<Mutex<Vec<String>>>;

/// A server that lists one model and responds with a status.
fn fake_provider(name: &'static str, model: &'static str, status: u16, log: &RequestOrder) -> ScriptedServer {
    let log = log.clone();
    ScriptedServer::start(move |request, connection| {
        if request.head.starts_with("GET") {
            return write_json(connection, &listing(&[model]));
        }
        log.lock().unwrap().push(format!("{name} {} {}", key(request), asked_model(request)));
        if status == 200 {
            return write_json(connection, &answer(model));
        }
        let head = format!("HTTP/1.1 {status} Failing\r\nContent-Length: 2\r\n\r\n{{}}");
        let _ = connection.write_all(head.as_bytes());
    })
}

fn key(request: &RecordedRequest) -> String {
    let bearer = request.head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("authorization").then(|| value.trim_start_matches("Bearer ").to_owned())
    });
    bearer.unwrap_or_default()
}

fn asked_model(request: &RecordedRequest) -> String {
    let body: Value = serde_json::from_str(&request.body).unwrap();
    body["model"].as_str().unwrap().to_owned()
}

fn answer(model: &str) -> Value {
    json!({
        "id": "1", "object": "chat.completion", "model": model,
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": "here" }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 },
    })
}

fn provider_settings(peer: &ScriptedServer, keys: &[&str]) -> Value {
    json!({ "type": "openai-compatible", "base_url": format!("http://127.0.0.1:{}/v1", peer.port), "api_keys": keys })
}

/// Two providers with the model of a category, a third with its fallback, and a fourth that succeeds.
struct ProviderChain {
    log: RequestOrder,
    peers: [ScriptedServer; 4],
}

impl ProviderChain {
    fn new() -> ProviderChain {
        let log = RequestOrder::default();
        let peers = [
            fake_provider("first", "billing-model", 503, &log),
            fake_provider("second", "billing-model", 503, &log),
            fake_provider("third", "clerk-model", 503, &log),
            fake_provider("last", "last-model", 200, &log),
        ];
        ProviderChain { log, peers }
    }

    fn settings(&self, router: Value) -> Value {
        let [first, second, third, last] = &self.peers;
        json!({
            "providers": {
                "a-first": provider_settings(first, &["k1", "k2"]),
                "b-second": provider_settings(second, &["k3"]),
                "c-third": provider_settings(third, &["k4"]),
                "d-last": provider_settings(last, &["k5"]),
            },
            "defaults": { "model": "last-model" },
            "router": router,
        })
    }

    fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p17_the_other_key_the_same_model_elsewhere_the_fallbacks_and_then_the_default() {
    let street = ProviderChain::new();
    let app = app_with_categories(street.settings(json!({ "fallbacks": { "billing": ["clerk-model"] } })));
    request(&app, "models/list", json!({})).await.unwrap();
    let answered = complete(&app, json!({ "prompt": "INV-12 is wrong" })).await.unwrap();
    assert_eq!(answered["provider"], "d-last");
    // Provider failures are not retried: each provider is called once.
    assert_eq!(
        street.take_log(),
        [
            "first k1 billing-model",
            "first k2 billing-model",
            "second k3 billing-model",
            "third k4 clerk-model",
            "last k5 last-model",
        ]
    );
    let decision = last_decision(&app).await;
    assert_eq!((&decision["reason"], decision["attempts"].as_array().unwrap().len()), (&json!("default"), 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn p17_without_failover_one_is_asked_once() {
    let street = ProviderChain::new();
    let app = app_with_categories(street.settings(json!({ "failover": false })));
    request(&app, "models/list", json!({})).await.unwrap();
    let error = complete(&app, json!({ "prompt": "INV-12 is wrong" })).await.unwrap_err();
    assert_eq!(error.to_object(Era::Legacy).code, -32004);
    assert_eq!(street.take_log(), ["first k1 billing-model"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn p17_a_model_that_the_caller_names_is_not_replaced_unless_the_operator_says_so() {
    let street = ProviderChain::new();
    let app = app_with_categories(street.settings(json!({ "fallbacks": { "billing": ["clerk-model"] } })));
    request(&app, "models/list", json!({})).await.unwrap();
    let pinned = json!({ "prompt": "INV-12 is wrong", "model": "billing-model" });
    let error = complete(&app, pinned.clone()).await.unwrap_err().to_object(Era::Legacy);
    assert_eq!((error.code, &error.data.unwrap()["details"]["attempts"]), (-32004, &json!(3)));
    assert_eq!(street.take_log(), ["first k1 billing-model", "first k2 billing-model", "second k3 billing-model"]);
    // With the provider in the name too, no other provider is called.
    complete(&app, json!({ "prompt": "INV-12", "model": "b-second/billing-model" })).await.unwrap_err();
    assert_eq!(street.take_log(), ["second k3 billing-model"]);

    let app = app_with_categories(street.settings(json!({ "replace_pinned": true })));
    request(&app, "models/list", json!({})).await.unwrap();
    assert_eq!(complete(&app, pinned).await.unwrap()["provider"], "d-last");
    assert_eq!(street.take_log().last().unwrap(), "last k5 last-model");
}

#[tokio::test(flavor = "multi_thread")]
async fn p17_after_five_failures_a_provider_is_left_alone_and_said_to_rest() {
    let upstream = FakeUpstream::start();
    let app = app(json!({ "providers": { "openai": upstream.provider("openai") } }));
    let status = async || call(&app, "list_providers", json!({})).await["providers"][0]["status"].clone();
    assert_eq!(status().await, "unknown");
    for failed in 1..=6 {
        let error = complete(&app, json!({ "prompt": "Hello", "model": "openai/status-503" })).await.unwrap_err();
        assert_eq!(error.to_object(Era::Legacy).code, -32004, "{failed}");
        assert_eq!(status().await, if failed < 5 { "failing" } else { "circuit_open" }, "{failed}");
    }
    assert_eq!(upstream.requests_for("status-503").len(), 5, "the sixth is not sent");
    let error = complete(&app, json!({ "prompt": "Hello", "model": "openai/echo-small" })).await.unwrap_err();
    assert!(error.to_string().contains("circuit open"), "{error}");
    assert!(upstream.requests_for("echo-small").is_empty());
    let explained = call(&app, "explain_route", json!({ "prompt": "Hello", "model": "openai/echo-small" })).await;
    assert_eq!(explained["candidates"][0]["circuit_open"], true, "{explained}");
}

#[tokio::test(flavor = "multi_thread")]
async fn p17_who_rests_is_passed_over_at_once() {
    let upstream = FakeUpstream::start();
    let app = app(json!({
        "providers": { "openai": upstream.provider("openai"), "spare": { "type": "mock" } },
        "defaults": { "model": "spare/mock" },
        "router": { "replace_pinned": true },
    }));
    for _ in 0..8 {
        let answered = complete(&app, json!({ "prompt": "Hello", "model": "openai/status-500" })).await.unwrap();
        assert_eq!(answered["provider"], "spare");
    }
    assert_eq!(upstream.requests_for("status-500").len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn p18_the_deadline_covers_every_provider() {
    let upstream = FakeUpstream::start();
    let settings = |timeout: &str| {
        json!({
            "providers": { "openai": upstream.provider("openai"), "spare": { "type": "mock" } },
            "defaults": { "model": "spare/mock" },
            "router": { "replace_pinned": true, "timeout": timeout },
        })
    };
    let started = Instant::now();
    let app = app(settings("400ms"));
    let error = complete(&app, json!({ "prompt": "Hello", "model": "openai/stall" })).await.unwrap_err();
    assert_eq!(error.to_object(Era::Legacy).code, -32007);
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    let decision = last_decision(&app).await;
    assert_eq!(decision["attempts"].as_array().unwrap().len(), 1, "no time is left for the next: {decision}");
}

#[tokio::test(flavor = "multi_thread")]
async fn p14_a_provider_that_recovers_is_asked_again_after_a_second() {
    let upstream = FakeUpstream::start();
    let app = app(json!({ "providers": { "openai": upstream.provider("openai") } }));
    let started = Instant::now();
    let answered = complete(&app, json!({ "prompt": "Hello", "model": "openai/flaky-429-1" })).await.unwrap();
    assert_eq!(answered["message"]["content"], "echo: Hello");
    assert!(started.elapsed() >= Duration::from_secs(1));
    assert_eq!(upstream.requests_for("flaky-429-1").len(), 2);
    assert_eq!(answered["_meta"]["corbie/decision"]["attempts"][0]["requests"], 2);
}

/// Outcome of a stream: its text and the kind of its failure.
async fn stream_outcome(app: &corbie::app::App, model: &str) -> Result<(String, Option<String>, String), String> {
    let opened = app.router.stream(ask_request(Some(model), "Hello, world!")).await;
    let mut answering = opened.map_err(|error| error.kind().to_owned())?;
    let (mut text, mut failed) = (String::new(), None);
    while let Some(piece) = answering.next().await {
        match piece {
            Ok(Delta::Text { text: more }) => text += &more,
            Ok(_) => {}
            Err(error) => failed = Some(error.kind().to_owned()),
        }
    }
    Ok((text, failed, answering.record().provider.clone().unwrap_or_default()))
}

#[tokio::test(flavor = "multi_thread")]
async fn p17_a_stream_that_fails_before_its_first_word_is_taken_up_by_somebody_else() {
    let upstream = FakeUpstream::start();
    for format in FORMATS {
        let app = app(json!({
            "providers": { "main": upstream.provider_with(format, json!({ "timeout": "300ms" })), "spare": { "type": "mock" } },
            "defaults": { "model": "spare/mock" },
            "router": { "replace_pinned": true, "timeout": "900ms" },
        }));
        let first = if format == "google" { "end-0" } else { "end-1" };
        for fault in ["status-503", "not-json", "empty", first] {
            let (text, failed, provider) = stream_outcome(&app, &format!("main/{fault}")).await.unwrap();
            assert_eq!((failed, provider.as_str()), (None, "spare"), "{format} {fault}");
            assert_eq!(text, "Hi! How can I help you today?");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p17_a_stream_that_fails_later_says_so_in_the_stream_and_is_never_taken_for_an_end() {
    let upstream = FakeUpstream::start();
    for format in FORMATS {
        let app = app(json!({
            "providers": {
                "main": upstream.provider(format),
                "impatient": upstream.provider_with(format, json!({ "timeout": "500ms" })),
                "spare": { "type": "mock" },
            },
            "defaults": { "model": "spare/mock" },
            "router": { "replace_pinned": true },
        }));
        // The number of events before the answer is complete depends on the format.
        let pieces = if format == "google" { 2 } else { 4 };
        let (cut, end) = (format!("cut-{pieces}"), format!("end-{pieces}"));
        let cases = [
            ("main", "error-mid", "unavailable"),
            ("impatient", "stall-mid", "timeout"),
            ("main", &*cut, "truncated"),
            ("main", &*end, "truncated"),
        ];
        for (name, fault, kind) in cases {
            let (text, failed, provider) = stream_outcome(&app, &format!("{name}/{fault}")).await.unwrap();
            assert_eq!((failed.as_deref(), provider.as_str()), (Some(kind), name), "{format} {fault}");
            assert!(!text.is_empty() && "echo: Hello, world!".starts_with(&text), "{format} {fault}: {text:?}");
            let record = &app.router.decision_log().newest(1)[0];
            assert_eq!((record.error.as_deref(), json!(record.outcome)), (Some(kind), json!("failed")));
        }
        let (text, failed, _) = stream_outcome(&app, "main/shred").await.unwrap();
        assert_eq!((text.as_str(), failed), ("echo: Hello, world!", None), "{format}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p17_a_stream_without_anybody_else_tells_the_failure_before_it_begins() {
    let upstream = FakeUpstream::start();
    for format in FORMATS {
        let app = app(json!({
            "providers": { "main": upstream.provider_with(format, json!({ "timeout": "300ms" })) },
            "router": { "timeout": "900ms" },
        }));
        for (fault, kind) in [
            ("status-401", "authentication"),
            ("status-429", "rate_limited"),
            ("quota", "quota_exhausted"),
            ("stall", "timeout"),
            ("reset", "network"),
            ("not-json", "invalid_response"),
        ] {
            assert_eq!(stream_outcome(&app, &format!("main/{fault}")).await.unwrap_err(), kind, "{format} {fault}");
        }
    }
}
