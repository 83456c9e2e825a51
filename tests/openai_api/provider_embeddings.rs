//! Embeddings of providers.

use serde_json::{Value, json};

use crate::embeddings::{BUILTIN_MODEL, decode_vector, embed};
use crate::fixture::{
    ApiServer, expect_error, provider_settings, server_command, settings_for_each_format, with_members,
};
use crate::upstream::{FakeUpstream, ScriptedServer};

/// The formats with embeddings.
const EMBEDDING_FORMATS: [&str; 2] = ["openai", "google"];

/// A server with this timeout, which includes retries; the first comes after a second.
fn server_with_timeout(upstream: &FakeUpstream, timeout: &str) -> ApiServer {
    let mut settings = settings_for_each_format(upstream);
    settings["router"] = json!({ "timeout": timeout });
    ApiServer::start(&settings)
}

#[test]
fn vectors_of_a_provider_come_in_both_forms_with_who_made_them() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    for format in EMBEDDING_FORMATS {
        let asked = json!({ "model": format!("{format}/vectors"), "input": ["a cat", "a dog", "a cat"] });
        let reply = embed(&face, &asked);
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.header("content-type"), Some("application/json"));
        assert_eq!(reply.header("x-corbie-provider"), Some(format));
        assert_eq!(reply.header("x-corbie-model"), Some("vectors"));
        let body = reply.json();
        assert_eq!((&body["object"], &body["model"]), (&json!("list"), &json!("vectors")), "{format}");
        assert_eq!(body["usage"], json!({ "prompt_tokens": 6, "total_tokens": 6 }), "{format}");
        let floats: Vec<Vec<f32>> =
            embedding_entries(&body).iter().map(|entry| decode_vector(&entry["embedding"])).collect();
        assert_eq!(floats.iter().map(Vec::len).collect::<Vec<_>>(), [8, 8, 8], "{format}");
        assert!(floats[0] == floats[2] && floats[0] != floats[1], "{format}: in the order of the texts");

        let encoded = embed(&face, &with_members(asked.clone(), json!({ "encoding_format": "base64" }))).json();
        assert!(encoded["data"][0]["embedding"].is_string(), "{format}");
        let decoded: Vec<Vec<f32>> =
            embedding_entries(&encoded).iter().map(|entry| decode_vector(&entry["embedding"])).collect();
        assert_eq!(decoded, floats, "{format}");
        let short = embed(&face, &with_members(asked, json!({ "dimensions": 3, "input": "a cat" }))).json();
        assert_eq!(decode_vector(&short["data"][0]["embedding"]), floats[0][..3], "{format}");
    }
}

#[track_caller]
fn embedding_entries(body: &Value) -> Vec<Value> {
    let entries = body["data"].as_array().unwrap_or_else(|| panic!("{body}")).clone();
    for (index, entry) in entries.iter().enumerate() {
        assert_eq!((&entry["object"], &entry["index"]), (&json!("embedding"), &json!(index)));
    }
    entries
}

#[test]
fn the_same_protocol_gets_the_body_as_it_came_and_the_caller_the_answer() {
    const ANSWER: &str = r#"{"object":"list", "model":"house-7","x":1.50,
      "data":[{"object":"embedding","index":0,"embedding":[0.10000000149011612]}],"usage":{"prompt_tokens":3}}"#;
    let house = ScriptedServer::start(|_, connection| {
        use std::io::Write;
        let length = ANSWER.len();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
        let _ = connection.write_all((head + ANSWER).as_bytes());
    });
    let face = ApiServer::start(&json!({ "providers": { "house": provider_settings("openai-compatible", &house) } }));
    for input in [json!([[1, 2], [3]]), json!([1, 2, 3]), json!("hello")] {
        let asked = json!({ "model": "house/house-7", "input": input, "user": "u", "odd": { "deep": [null, 2.5] } });
        assert_eq!(embed(&face, &asked).body, ANSWER);
        let heard = house.requests().pop().unwrap();
        assert!(heard.head.starts_with("POST /v1/embeddings "), "{}", heard.head);
        let heard: Value = serde_json::from_str(&heard.body).unwrap();
        assert_eq!(heard, with_members(asked, json!({ "model": "house-7" })));
    }
}

#[test]
fn google_is_asked_for_no_more_texts_at_once_than_it_takes() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    let texts: Vec<String> = (0..230).map(|number| format!("text {number}")).collect();
    let many = embed(&face, &json!({ "model": "google/vectors", "input": texts })).json();
    assert_eq!(embedding_entries(&many).len(), 230);
    assert_eq!(many["usage"]["prompt_tokens"], 460);
    let last = embed(&face, &json!({ "model": "google/vectors", "input": "text 229" })).json();
    assert_eq!(many["data"][229]["embedding"], last["data"][0]["embedding"]);
    let sent = upstream.requests_for("vectors");
    let counts: Vec<usize> = sent.iter().map(|sent| sent["body"]["requests"].as_array().unwrap().len()).collect();
    assert_eq!(counts, [100, 100, 30, 1]);
}

#[test]
fn a_model_is_found_by_its_family_or_by_a_list_and_never_replaced() {
    let upstream = FakeUpstream::start();
    let mut settings = settings_for_each_format(&upstream);
    settings["router"] = json!({ "replace_pinned": true });
    let face = ApiServer::from_command(
        server_command("serve --port 0", &settings).variable("DEFAULT_MODEL", "openai/echo-small"),
    );
    // Anthropic, the first by name that lists the last model, has no embeddings.
    for (model, provider) in
        [("text-embedding-3-small", "openai"), ("gemini-embedding-001", "google"), ("echo-large", "google")]
    {
        let reply = embed(&face, &json!({ "model": model, "input": "hello" }));
        assert_eq!((reply.status, reply.header("x-corbie-provider")), (200, Some(provider)), "{model}: {reply:?}");
        assert_eq!(reply.header("x-corbie-model"), Some(model));
    }
    upstream.clear_requests();
    let lost = embed(&face, &json!({ "model": "openai/status-503", "input": "hello" }));
    expect_error(&lost, 503);
    assert!(upstream.requests_for("echo-small").is_empty(), "vectors of another model are of no use");
}

#[test]
fn what_nobody_embeds_is_404_and_names_the_model_that_is_there() {
    let upstream = FakeUpstream::start();
    let mut settings = settings_for_each_format(&upstream);
    settings["providers"]["mock"] = json!({});
    let alone = ApiServer::from_command(server_command("serve --port 0", &json!({})));
    let face = ApiServer::start(&settings);
    for (face, model, word) in [
        (&face, "no-such-model", "no-such-model"),
        (&face, "claude-opus-4-5", "`anthropic` does not support embeddings"),
        (&face, "anthropic/any", "`anthropic` does not support embeddings"),
        (&face, "mock/mock", "`mock` does not support embeddings"),
        (&face, "openai/status-404", "status-404"),
        (&alone, "text-embedding-3-small", "OPENAI_API_KEY"),
    ] {
        let error = expect_error(&embed(face, &json!({ "model": model, "input": "hello" })), 404);
        assert_eq!((&error["code"], &error["param"]), (&json!("model_not_found"), &json!("model")), "{model}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(word), "{message}");
        assert!(message.contains(&format!("`{BUILTIN_MODEL}` is the built-in embedding model")), "{message}");
    }
}

#[test]
fn failures_are_those_of_chats() {
    let upstream = FakeUpstream::start();
    for format in EMBEDDING_FORMATS {
        let cases = [
            ("status-400", 400),
            ("status-429-after-2", 429),
            ("quota", 429),
            ("status-503", 503),
            ("not-json", 503),
            ("empty", 503),
            ("error-mid", 503),
            ("reset", 502),
            ("stall", 504),
        ];
        for (model, status) in cases {
            // A new server per case: the circuit breaker would open after several failures.
            let face = server_with_timeout(&upstream, "900ms");
            let reply = embed(&face, &json!({ "model": format!("{format}/{model}"), "input": "hello" }));
            expect_error(&reply, status);
            assert_eq!(reply.header("x-should-retry"), Some("false"), "{format}/{model}");
            if model == "status-429-after-2" {
                assert_eq!(reply.header("retry-after"), Some("2"), "{format}");
            }
        }
        let face = server_with_timeout(&upstream, "10s");
        let flaky = embed(&face, &json!({ "model": format!("{format}/flaky-408-1"), "input": "hello" }));
        assert_eq!(flaky.status, 200, "{format}: a failure that passes is tried again: {flaky:?}");
        let leak = embed(&face, &json!({ "model": format!("{format}/leak"), "input": "hello" }));
        expect_error(&leak, 400);
        assert!(!leak.body.contains("test-key") && !leak.body.contains("/srv/"), "{leak:?}");
    }
}

#[test]
fn input_that_cannot_be_embedded_is_400_before_anybody_is_asked() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    let cases = [
        ("openai/vectors", json!({}), "input"),
        ("openai/vectors", json!({ "input": [] }), "input"),
        ("openai/vectors", json!({ "input": vec!["a"; 2049] }), "input"),
        ("google/vectors", json!({ "input": [1, 2, 3] }), "input"),
        ("google/vectors", json!({ "input": "a", "encoding_format": "hex" }), "encoding_format"),
        ("google/vectors", json!({ "input": "a", "dimensions": "many" }), "dimensions"),
    ];
    for (model, body, param) in cases {
        let error = expect_error(&embed(&face, &with_members(json!({ "model": model }), body)), 400);
        assert_eq!((&error["param"], &error["type"]), (&json!(param), &json!("invalid_request_error")));
    }
    assert!(upstream.requests_for("vectors").is_empty());
}

#[test]
fn tokens_of_vectors_count_towards_the_budget_and_into_the_record() {
    let upstream = FakeUpstream::start();
    let mut settings = settings_for_each_format(&upstream);
    settings["router"] = json!({ "budget": { "tokens_per_day": 5 } });
    let face = ApiServer::start(&settings);
    let asked = json!({ "model": "openai/vectors", "input": "three small words" });
    for _ in 0..2 {
        assert_eq!(embed(&face, &asked).status, 200);
    }
    let record = &face.decisions()[0];
    assert_eq!((&record["provider"], &record["outcome"]), (&json!("openai"), &json!("answered")));
    assert_eq!((&record["usage"]["prompt"], &record["usage"]["completion"]), (&json!(3), &json!(0)));
    let reply = embed(&face, &asked);
    assert_eq!(expect_error(&reply, 429)["code"], "over_budget");
    assert!(reply.header("retry-after").is_some());
    let own = embed(&face, &json!({ "model": "auto", "input": "the model inside costs nothing" }));
    assert_eq!(own.status, 200);
}
