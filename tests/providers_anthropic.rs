#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! Anthropic's protocol, played from files: what we send for a chat, and what we make of an answer.
//!
//! In `providers/anthropic`, `<case>.chat.json` becomes `<case>.request.json`, `<case>.response.json` becomes
//! `<case>.completion.json`, and `<case>.stream.txt` becomes `<case>.deltas.json`. `CORBIE_BLESS=1` rewrites what we
//! make; read the difference before you keep it.

use std::fs;
use std::path::PathBuf;

use corbie::config::secret::Secret;
use corbie::providers::chat::{Chat, Effort, Message, Reasoning, Role};
use corbie::providers::{Delta, Endpoint, Error, Event, Events, Head, Refuses, anthropic};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value, json};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/providers/anthropic")
}

/// The cases that have a file with this ending, and the bytes of it.
fn cases(ending: &str) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_name()?.to_str()?.strip_suffix(ending).map(str::to_owned);
    let mut cases: Vec<_> = files.filter_map(|path| Some((name(&path)?, fs::read(&path).unwrap()))).collect();
    cases.sort();
    assert!(!cases.is_empty(), "no {ending}");
    cases
}

fn check(file: &str, made: impl Serialize) {
    let made = serde_json::to_string_pretty(&made).unwrap() + "\n";
    let path = folder().join(file);
    if std::env::var_os("CORBIE_BLESS").is_some() {
        fs::write(path, made).unwrap();
    } else {
        assert_eq!(made, fs::read_to_string(path).unwrap(), "{file}");
    }
}

fn endpoint() -> Endpoint {
    let base = "https://api.anthropic.com".parse().unwrap();
    Endpoint { base, key: Some(Secret::new("sk-ant-secret")), headers: HeaderMap::new() }
}

/// When answers come: 2015-10-21 07:28:00, a Wednesday.
fn moment() -> std::time::SystemTime {
    std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_445_412_480)
}

fn sent(chat: &Chat, refuses: Refuses) -> Value {
    serde_json::from_slice(anthropic::request(chat, &endpoint(), refuses).body()).unwrap()
}

fn caller(case: &str) -> Map<String, Value> {
    serde_json::from_slice(&fs::read(folder().join(format!("{case}.caller.json"))).unwrap()).unwrap()
}

fn answered(status: u16, headers: &[(&'static str, &'static str)], body: &[u8]) -> Result<String, Error> {
    let headers =
        headers.iter().map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)));
    let head = Head { status: StatusCode::from_u16(status).unwrap(), headers: &headers.collect(), at: moment() };
    anthropic::response(head, body).map(|completion| completion.text())
}

/// The deltas of a stream, and whether it came to its end.
fn played<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<(Vec<Delta>, bool), Error> {
    let (mut events, mut decoder, mut deltas) = (Events::default(), anthropic::Decoder::default(), Vec::new());
    for piece in pieces {
        for event in events.push(piece).unwrap() {
            deltas.extend(decoder.event(&event)?);
        }
    }
    Ok((deltas, decoder.is_complete()))
}

#[test]
fn a_chat_becomes_its_request() {
    for (case, chat) in cases(".chat.json") {
        let chat: Chat = serde_json::from_slice(&chat).unwrap();
        check(&format!("{case}.request.json"), sent(&chat, Refuses::default()));
    }
}

#[test]
fn a_response_becomes_its_completion() {
    for (case, body) in cases(".response.json") {
        let head = Head { status: StatusCode::OK, headers: &HeaderMap::new(), at: moment() };
        let completion = anthropic::response(head, &body).unwrap();
        assert_eq!(
            Value::Object(completion.raw.clone().unwrap().body),
            serde_json::from_slice::<Value>(&body).unwrap()
        );
        check(&format!("{case}.completion.json"), completion);
    }
}

#[test]
fn a_stream_becomes_its_deltas_wherever_it_is_cut() {
    for (case, bytes) in cases(".stream.txt") {
        let (deltas, complete) = played([bytes.as_slice()]).unwrap();
        assert!(complete, "{case}");
        check(&format!("{case}.deltas.json"), &deltas);
        for cut in 0..bytes.len() {
            let (first, second) = bytes.split_at(cut);
            assert_eq!(played([first, second]).unwrap(), (deltas.clone(), true), "{case} cut at {cut}");
        }
    }
}

#[test]
fn a_stream_that_breaks_off_is_not_complete() {
    for (case, bytes) in cases(".stream.txt") {
        // The last event ends with an empty line. Without it, the event has not been sent.
        let end = bytes.len() - if bytes.ends_with(b"\r\n") { 2 } else { 1 };
        for cut in 0..end {
            assert!(!played([&bytes[..cut]]).unwrap().1, "{case} cut at {cut}");
        }
    }
}

#[test]
fn what_a_model_thought_goes_back_as_it_came() {
    for (case, body) in cases(".response.json") {
        let head = Head { status: StatusCode::OK, headers: &HeaderMap::new(), at: moment() };
        let completion = anthropic::response(head, &body).unwrap();
        let messages = vec![Message { role: Role::Assistant, parts: completion.parts }];
        let again = sent(&Chat { messages, ..Chat::default() }, Refuses::default());
        let blocks = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let ours = ["thinking", "redacted_thinking", "tool_use"];
        let of_ours = |block: &Value| ours.contains(&block["type"].as_str().unwrap());
        let came: Value = serde_json::from_slice(&body).unwrap();
        let came: Vec<Value> = blocks(&came["content"]).into_iter().filter(of_ours).collect();
        let went: Vec<Value> = blocks(&again["messages"][0]["content"]).into_iter().filter(of_ours).collect();
        assert_eq!(came, went, "{case}");
    }
}

#[test]
fn a_request_of_this_protocol_passes_unchanged() {
    for (case, _) in cases(".caller.json") {
        let chat = anthropic::parse(caller(&case)).unwrap();
        assert_eq!(sent(&chat, Refuses::default()), Value::Object(caller(&case)), "{case}");
    }
}

#[test]
fn only_what_was_changed_is_changed() {
    let mut chat = anthropic::parse(caller("caller")).unwrap();
    chat.model = "claude-opus-5-5".into();
    chat.stream = true;
    chat.messages.insert(0, Message::text(Role::System, "You know colours."));
    let mut expected = Value::Object(caller("caller"));
    expected["model"] = "claude-opus-5-5".into();
    expected["stream"] = true.into();
    expected["system"].as_array_mut().unwrap().insert(0, json!({"type": "text", "text": "You know colours."}));
    assert_eq!(sent(&chat, Refuses::default()), expected);

    let mut chat = anthropic::parse(caller("caller_plain")).unwrap();
    chat.messages.insert(0, Message::text(Role::System, "You know greetings."));
    chat.reasoning = Some(Reasoning::Effort(Effort::Low));
    let mut expected = Value::Object(caller("caller_plain"));
    expected["system"] =
        json!([{"type": "text", "text": "You know greetings."}, {"type": "text", "text": "You are terse."}]);
    expected["thinking"] = json!({"type": "adaptive"});
    expected["output_config"] = json!({"effort": "low"});
    expected.as_object_mut().unwrap().remove("temperature");
    assert_eq!(sent(&chat, Refuses::default()), expected);

    chat.messages.pop();
    chat.messages.push(Message::text(Role::User, "Hello"));
    assert_eq!(
        sent(&chat, Refuses::default())["messages"],
        json!([{"role": "user", "content": [{"type": "text", "text": "Hello"}]}])
    );
}

#[test]
fn what_a_model_refuses_is_left_out() {
    let refuses = Refuses { temperature: true, top_p: true, stop: true, reasoning: true, ..Refuses::default() };
    let mut expected = caller("caller");
    for member in ["temperature", "top_k", "stop_sequences", "thinking"] {
        expected.remove(member).unwrap();
    }
    expected["output_config"].as_object_mut().unwrap().remove("effort").unwrap();
    assert_eq!(sent(&anthropic::parse(caller("caller")).unwrap(), refuses), Value::Object(expected));

    for (case, chat) in cases(".chat.json") {
        let body = sent(&serde_json::from_slice(&chat).unwrap(), refuses);
        let left = ["temperature", "top_p", "stop_sequences", "thinking"].map(|member| body.get(member));
        assert_eq!(left, [None; 4], "{case}");
        assert_eq!(body.get("output_config").and_then(|config| config.get("effort")), None, "{case}");
    }
}

#[test]
fn a_request_that_is_none_is_refused() {
    for body in [
        json!({}),
        json!({"model": "m"}),
        json!({"model": 1, "messages": []}),
        json!({"model": "m", "messages": {}}),
        json!({"model": "m", "messages": [{"role": "tool", "content": ""}]}),
        json!({"model": "m", "messages": [{"role": "user"}]}),
        json!({"model": "m", "messages": ["hello"]}),
    ] {
        let parsed = anthropic::parse(body.as_object().unwrap().clone());
        assert_eq!(parsed, Err(Error::BadRequest { kind: "invalid_request_error".into() }), "{body}");
    }
}

#[test]
fn s01_the_key_is_in_a_header_that_does_not_print() {
    let chat = Chat { model: "m".into(), ..Chat::default() };
    let mut endpoint = endpoint();
    endpoint.base = "http://127.0.0.1:8080/proxy/".parse().unwrap();
    endpoint.headers.insert("anthropic-beta", HeaderValue::from_static("one,two"));
    let requests = [
        (anthropic::request(&chat, &endpoint, Refuses::default()), "POST", "http://127.0.0.1:8080/proxy/v1/messages"),
        (anthropic::models_request(&endpoint), "GET", "http://127.0.0.1:8080/proxy/v1/models?limit=1000"),
        (
            anthropic::models_page(&endpoint, "a&b"),
            "GET",
            "http://127.0.0.1:8080/proxy/v1/models?limit=1000&after_id=a%26b",
        ),
    ];
    for (request, method, uri) in requests {
        assert_eq!((request.method().as_str(), request.uri().to_string().as_str()), (method, uri));
        assert_eq!(request.headers()["x-api-key"], "sk-ant-secret");
        assert_eq!(request.headers()["anthropic-version"], "2023-06-01");
        assert_eq!(request.headers()["anthropic-beta"], "one,two");
        assert!(!format!("{request:?}").contains("secret"));
    }
    endpoint.headers.insert("anthropic-version", HeaderValue::from_static("2026-10-21"));
    assert_eq!(anthropic::models_request(&endpoint).headers()["anthropic-version"], "2026-10-21");
}

#[test]
fn p16_every_failure_is_a_situation() {
    let limited = |retry_after: Option<u64>, quota| Error::RateLimited {
        retry_after: retry_after.map(std::time::Duration::from_secs),
        quota,
    };
    let bad = |kind: &str| Error::BadRequest { kind: kind.into() };
    let unavailable = |status| Error::Unavailable { status, retry_after: None };
    let table = [
        (400, "invalid_request_error", None, bad("invalid_request_error")),
        (400, "invalid_request_error", Some("tool_name_conflict"), bad("tool_name_conflict")),
        (400, "invalid_request_error", Some("organization_on_hold"), Error::Authentication),
        (400, "not_found_error", None, Error::ModelNotFound),
        (401, "authentication_error", None, Error::Authentication),
        (402, "billing_error", None, limited(None, true)),
        (403, "permission_error", None, Error::Authentication),
        (403, "billing_error", None, limited(None, true)),
        (404, "not_found_error", None, Error::ModelNotFound),
        (408, "timeout_error", None, Error::Timeout),
        (409, "conflict_error", None, bad("conflict_error")),
        (413, "request_too_large", None, bad("request_too_large")),
        (422, "invalid_request_error", None, bad("invalid_request_error")),
        (429, "rate_limit_error", None, limited(None, false)),
        (429, "rate_limit_error", Some("ramp_limit_exceeded"), limited(None, false)),
        (429, "rate_limit_error", Some("enforced_spend_limit_reached"), limited(None, true)),
        (500, "api_error", None, unavailable(500)),
        (503, "api_error", Some("cmek_key_unreachable"), unavailable(503)),
        (504, "timeout_error", None, Error::Timeout),
        (529, "overloaded_error", None, unavailable(529)),
    ];
    for (status, kind, code, expected) in table {
        let mut body = json!({"type": "error", "error": {"type": kind, "message": "key sk-ant-secret is bad"}, "request_id": "req_1"});
        if let Some(code) = code {
            body["error"]["details"] = json!({"error_code": code});
        }
        let error = answered(status, &[], body.to_string().as_bytes()).unwrap_err();
        assert_eq!(error, expected, "{status} {kind} {code:?}");
        assert!(!error.to_string().contains("secret"));
    }
    let poor = br#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#;
    assert_eq!(answered(400, &[], poor), Err(limited(None, true)));
    assert_eq!(answered(429, &[("retry-after", "12")], b""), Err(limited(Some(12), false)));
    let date = [("retry-after", "Wed, 21 Oct 2015 07:28:12 GMT")];
    assert_eq!(answered(429, &date, b""), Err(limited(Some(12), false)));
    assert_eq!(answered(502, &[], b"<html>bad gateway</html>"), Err(unavailable(502)));
}

#[test]
fn an_error_inside_a_stream_is_an_error() {
    for (kind, expected) in [
        ("overloaded_error", Error::Unavailable { status: 529, retry_after: None }),
        ("api_error", Error::Unavailable { status: 500, retry_after: None }),
        ("rate_limit_error", Error::RateLimited { retry_after: None, quota: false }),
        ("billing_error", Error::RateLimited { retry_after: None, quota: true }),
        ("timeout_error", Error::Timeout),
        ("invalid_request_error", Error::BadRequest { kind: "invalid_request_error".into() }),
        ("yet_unknown_error", Error::Unavailable { status: 500, retry_after: None }),
    ] {
        let data = json!({"type": "error", "error": {"type": kind, "message": "sk-ant-secret"}}).to_string();
        let event = Event { name: "error".into(), data: data.clone() };
        assert_eq!(anthropic::Decoder::default().event(&event), Err(expected.clone()), "{kind}");
        assert_eq!(answered(200, &[], data.as_bytes()), Err(expected), "{kind} under a good status");
    }
}

#[test]
fn answers_that_are_none_are_unreadable() {
    for body in [
        "",
        "null",
        "[]",
        "hello",
        "{}",
        "{\"content\":null,\"stop_reason\":\"end_turn\"}",
        "{\"content\":[]}",
        "{\"content\":[],\"stop_reason\":null}",
        "{\"content\":[]",
        "\u{0}",
    ] {
        assert!(matches!(answered(200, &[], body.as_bytes()), Err(Error::Unreadable(_))), "{body}");
    }
    // Blocks without what they must have are no blocks, and counts that are none count nothing.
    let odd = json!({"content": [1, null, {}, {"type": "text"}, {"type": "tool_use", "id": 1}, {"type": "image", "source": 1}],
        "stop_reason": "end_turn", "usage": {"input_tokens": -1, "output_tokens": "many", "cache_read_input_tokens": u64::MAX}});
    assert_eq!(answered(200, &[], odd.to_string().as_bytes()), Ok(String::new()));
}

#[test]
fn events_that_make_no_sense_are_unreadable() {
    let start = json!({"type": "message_start", "message": {"id": "m", "model": "m"}});
    for events in [
        vec![json!("hello")].into_iter().chain([json!({"type": "message_stop"})]).collect(),
        vec![json!({"type": "message_start"})],
        vec![json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})],
        vec![json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})],
        vec![start.clone(), json!({"type": "content_block_start", "index": 0})],
        vec![start.clone(), json!({"type": "content_block_start", "content_block": {"type": "text", "text": ""}})],
        vec![
            start.clone(),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}),
        ],
        vec![start.clone(), json!({"type": "content_block_stop", "index": 9})],
        vec![start, json!({"type": "message_stop"})],
    ] {
        let events: Vec<Value> = events;
        let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        assert!(matches!(played([text.as_bytes()]), Err(Error::Unreadable(_))), "{text}");
    }
    assert!(matches!(played([b"data: {\n\n".as_slice()]), Err(Error::Unreadable(_))));
    assert_eq!(
        played([b"event: ping\ndata: {\"type\":\"ping\"}\n\ndata: {\"type\":\"new\"}\n\n".as_slice()]),
        Ok((vec![], false))
    );
}

#[test]
fn p05_models_come_in_pages_with_what_they_can_do_and_without_retired_ones() {
    let head = Head { status: StatusCode::OK, headers: &HeaderMap::new(), at: moment() };
    let (_, body) = cases(".models.json").remove(0);
    let (models, next) = anthropic::models_response(head, &body).unwrap();
    assert_eq!(next.as_deref(), Some("claude-haiku-4-5-20251001"));
    assert_eq!(
        serde_json::to_value(models).unwrap(),
        json!([
            {
                "id": "claude-opus-5-5", "name": "Claude Opus 5.5", "context": 1000000, "output": 128000,
                "capabilities": {
                    "images": true, "reasoning": true, "structured_output": true,
                    "refuses": {
                        "reasoning": false, "reasoning_off": true, "reasoning_between_tools": true,
                        "reasoning_adaptive": false, "reasoning_effort": false, "reasoning_budget": true,
                    },
                },
            },
            {"id": "claude-haiku-4-5-20251001", "name": "Claude Haiku 4.5", "context": 200000, "output": 64000},
        ])
    );
    let last = br#"{"data":[{"id":"a"}],"has_more":false,"last_id":"a"}"#;
    assert_eq!(anthropic::models_response(head, last).unwrap().1, None);
    let endless = format!(r#"{{"data":[],"has_more":true,"last_id":"{}"}}"#, "a".repeat(100_000));
    for broken in ["", "{}", r#"{"data":[],"has_more":true}"#, &endless] {
        assert!(matches!(anthropic::models_response(head, broken.as_bytes()), Err(Error::Unreadable(_))));
    }
}
