//! Response cache: identical requests of the same caller, while entries are fresh.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fixture::{
    ApiServer, CHAT_PATH, StreamedResponse, chat_request, expect_error, provider_settings, server_command,
    settings_for_each_format, with_members,
};
use crate::http::{HttpClient, HttpResponse};
use crate::process::wait_for;
use crate::upstream::{FORMATS, FakeUpstream, ScriptedServer, write_json};

fn server_with_cache(upstream: &FakeUpstream, cache: Value) -> ApiServer {
    ApiServer::start(&with_members(settings_for_each_format(upstream), json!({ "router": { "cache": cache } })))
}

/// `exact` or `semantic` for a hit, `miss`, or `None` if the cache is off.
#[track_caller]
pub(crate) fn cache_status(reply: &HttpResponse) -> Option<&str> {
    assert_eq!(reply.status, 200, "{reply:?}");
    match (reply.header("x-corbie-cache"), reply.header("x-corbie-cache-by")) {
        (Some("hit"), by @ Some(_)) => by,
        (miss @ (None | Some("miss")), None) => miss,
        headers => panic!("{headers:?}"),
    }
}

/// A provider that counts its responses, with words of at least this length, complete or as two events.
fn counting_provider(length: usize) -> ScriptedServer {
    let count = AtomicUsize::new(0);
    ScriptedServer::start(move |request, connection| {
        use std::io::Write;
        let text = format!("answer {} {}", count.fetch_add(1, Ordering::Relaxed) + 1, "x".repeat(length));
        if !request.body.contains(r#""stream":true"#) {
            let message = json!({ "role": "assistant", "content": text });
            write_json(
                connection,
                &json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] }),
            );
            return;
        }
        let word = json!({ "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": null }] });
        let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
        let body = format!("data: {word}\n\ndata: {end}\n\ndata: [DONE]\n\n");
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {}\r\n", body.len());
        let _ = connection.write_all(format!("{head}\r\n{body}").as_bytes());
    })
}

/// A server with a peer as its only provider.
fn server_of_provider(house: &ScriptedServer, cache: Value) -> ApiServer {
    let provider = provider_settings("openai-compatible", house);
    ApiServer::start(&json!({ "providers": { "house": provider }, "router": { "cache": cache } }))
}

/// Number of completions served by a peer.
fn answers_given(house: &ScriptedServer) -> usize {
    house.requests().iter().filter(|request| request.head.starts_with("POST")).count()
}

fn answer_text(reply: &HttpResponse) -> String {
    reply.json()["choices"][0]["message"]["content"].as_str().unwrap().trim_end_matches('x').trim().to_owned()
}

#[test]
fn nothing_is_kept_unless_the_operator_asks_for_it() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    let asked = chat_request("openai/echo-small", "hello");
    for reply in [face.chat(&asked), face.chat(&asked)] {
        assert_eq!(cache_status(&reply), None);
    }
    assert_eq!(upstream.requests_for("echo-small").len(), 2);
}

#[test]
fn the_same_request_gets_the_same_bytes_again_in_every_wire_format() {
    let upstream = FakeUpstream::start();
    let face = server_with_cache(&upstream, json!({ "exact": true }));
    for format in FORMATS {
        for stream in [false, true] {
            upstream.clear_requests();
            let model = format!("{format}/echo-small");
            let more = json!({ "stream": stream, "stream_options": { "include_usage": true } });
            let asked = with_members(chat_request(&model, "hello to you"), if stream { more } else { json!({}) });
            let (first, again) = (face.chat(&asked), face.chat(&asked));
            assert_eq!((cache_status(&first), cache_status(&again)), (Some("miss"), Some("exact")), "{format}");
            assert_eq!(first.body, again.body, "{format}");
            assert_eq!(upstream.requests_for("echo-small").len(), 1, "{format}, stream {stream}");
            for name in ["content-type", "cache-control", "x-corbie-provider", "x-corbie-model"] {
                assert_eq!(first.header(name), again.header(name), "{format}, stream {stream}: {name}");
            }
            assert_eq!(again.header("x-corbie-reason"), Some("cache"), "{format}");
            assert_eq!(again.header("x-corbie-attempts"), Some("0"), "{format}");
            if stream {
                let streamed = StreamedResponse::parse(again);
                assert_eq!(
                    (streamed.text().as_str(), streamed.has_done_event),
                    ("echo: hello to you", true),
                    "{format}"
                );
            }
        }
    }
}

#[test]
fn other_bytes_are_another_request() {
    let upstream = FakeUpstream::start();
    let face = server_with_cache(&upstream, json!({ "exact": true }));
    let asked = chat_request("openai/echo-small", "hello");
    let others = [
        asked.clone(),
        chat_request("openai/echo-small", "hello "),
        chat_request("echo-small", "hello"),
        with_members(asked.clone(), json!({ "stream": true })),
        with_members(asked.clone(), json!({ "temperature": 1 })),
        with_members(asked.clone(), json!({ "user": "somebody" })),
    ];
    for other in &others {
        assert_eq!(cache_status(&face.chat(other)), Some("miss"), "{other}");
    }
    let spaced = asked.to_string().replacen(':', ": ", 1);
    assert_eq!(cache_status(&face.client.call("POST", CHAT_PATH, &[], &spaced)), Some("miss"));
    assert_eq!(upstream.requests_for("echo-small").len(), others.len() + 1);
}

#[test]
fn nobody_gets_what_another_caller_was_answered() {
    let upstream = FakeUpstream::start();
    let mut settings = with_members(
        settings_for_each_format(&upstream),
        json!({ "router": { "cache": { "exact": true, "semantic": true } } }),
    );
    // The first listener is open to all local callers; the second requires the token, because other machines can reach
    // it.
    settings["server"] =
        json!({ "listen": ["127.0.0.1:0", "0.0.0.0:0"], "token": "7d3194f79e645c42e4396dda38be04766810ec6a" });
    let mut server = server_command("serve", &settings).start();
    let anybody = server.client();
    let line = server.wait_for_log("http://0.0.0.0:");
    let port = line.split("http://0.0.0.0:").nth(1).and_then(|rest| rest.split('/').next()).unwrap();
    let holder = HttpClient::v4(port.parse().unwrap());
    let body = chat_request("openai/echo-small", "where is my parcel").to_string();
    let token = [("Authorization", "Bearer 7d3194f79e645c42e4396dda38be04766810ec6a")];
    let ask = |client: &HttpClient, headers: &[(&str, &str)]| client.call("POST", CHAT_PATH, headers, &body);
    assert_eq!(cache_status(&ask(&anybody, &[])), Some("miss"));
    assert_eq!(cache_status(&ask(&holder, &token)), Some("miss"), "neither by the bytes nor by what they mean");
    assert_eq!(cache_status(&ask(&anybody, &[])), Some("exact"));
    assert_eq!(cache_status(&ask(&holder, &token)), Some("exact"));
    assert_eq!(ask(&holder, &[]).status, 401, "what is kept is no way in");
    assert_eq!(upstream.requests_for("echo-small").len(), 2);
}

#[test]
fn an_answer_is_given_again_while_it_is_fresh() {
    let ttl = Duration::from_secs(2);
    let upstream = FakeUpstream::start();
    let face = server_with_cache(&upstream, json!({ "exact": true, "ttl": "2s" }));
    let asked = chat_request("openai/echo-small", "hello");
    let started = Instant::now();
    assert_eq!(cache_status(&face.chat(&asked)), Some("miss"));
    let mut again = 0;
    wait_for("the answer to be too old", || match cache_status(&face.chat(&asked)) {
        Some("miss") => Some(()),
        _ => {
            again += 1;
            None
        }
    });
    assert!(started.elapsed() >= ttl && again > 0, "{:?}, {again} times", started.elapsed());
    assert_eq!(upstream.requests_for("echo-small").len(), 2);
    assert_eq!(cache_status(&face.chat(&asked)), Some("exact"), "the new answer is kept in its place");
}

#[test]
fn a_caller_may_want_a_new_answer_or_none_to_be_kept() {
    let house = counting_provider(0);
    let face = server_of_provider(&house, json!({ "exact": true }));
    let body = chat_request("house/any", "hello").to_string();
    let ask = |control: Option<&str>| {
        let headers: Vec<(&str, &str)> = control.map(|control| ("Cache-Control", control)).into_iter().collect();
        let reply = face.client.call("POST", CHAT_PATH, &headers, &body);
        (answer_text(&reply), cache_status(&reply).map(str::to_owned))
    };
    let told = |number: usize, found: &str| (format!("answer {number}"), Some(found.to_owned()));
    assert_eq!(ask(Some("no-store")), told(1, "miss"));
    assert_eq!(ask(None), told(2, "miss"), "the first was not kept");
    assert_eq!(ask(None), told(2, "exact"));
    assert_eq!(ask(Some("no-cache")), told(3, "miss"));
    assert_eq!(ask(None), told(3, "exact"), "the new answer is in the place of the old one");
    assert_eq!(ask(Some("max-age=0, No-Store")), told(4, "miss"));
    assert_eq!(ask(Some("max-age=60")), told(3, "exact"), "the last one was not kept");
    assert_eq!(answers_given(&house), 4);
}

#[test]
fn failures_are_never_kept() {
    let upstream = FakeUpstream::start();
    let face = server_with_cache(&upstream, json!({ "exact": true }));
    for format in FORMATS {
        for stream in [false, true] {
            upstream.clear_requests();
            let asked =
                with_members(chat_request(&format!("{format}/flaky-400-1"), "hello"), json!({ "stream": stream }));
            let failed = face.chat(&asked);
            expect_error(&failed, 400);
            assert_eq!(failed.header("x-corbie-cache"), None);
            assert_eq!(cache_status(&face.chat(&asked)), Some("miss"), "{format}");
            assert_eq!(cache_status(&face.chat(&asked)), Some("exact"), "{format}");
        }
    }
    // Status 200 without an answer.
    for model in ["error-mid", "not-json", "empty", "html"] {
        let asked = chat_request(&format!("openai/{model}"), "hello");
        for reply in [face.chat(&asked), face.chat(&asked)] {
            assert!(reply.status >= 400 && reply.header("x-corbie-cache").is_none(), "{model}: {reply:?}");
        }
    }
}

#[test]
fn a_stream_that_breaks_or_is_left_is_never_kept() {
    let upstream = FakeUpstream::start();
    let face = server_with_cache(&upstream, json!({ "exact": true, "semantic": true }));
    let words = "the quick brown fox jumps over the lazy dog";
    for (format, cut) in FORMATS.iter().zip(["3", "5", "3"]) {
        for fault in [format!("cut-{cut}"), format!("end-{cut}"), "error-mid".into()] {
            let asked = chat_request(&format!("{format}/{fault}"), words);
            for streamed in [face.stream(&asked), face.stream(&asked)] {
                assert_eq!(
                    (cache_status(&streamed.head), streamed.has_done_event),
                    (Some("miss"), false),
                    "{format} {fault}"
                );
            }
        }
    }
    let asked = chat_request("openai/drip-20", words);
    let mut left = face.open(&asked).unwrap();
    assert!(left.read_chunk().unwrap().is_some());
    drop(left);
    let streamed = face.stream(&asked);
    assert_eq!((cache_status(&streamed.head), streamed.has_done_event), (Some("miss"), true));
    assert_eq!(cache_status(&face.stream(&asked).head), Some("exact"), "one that came to its end is");
}

/// The responses have 100 kB each, and the cache holds ten.
#[test]
fn answers_make_way_when_the_room_is_used_up() {
    const ANSWERS: usize = 200;
    let house = counting_provider(100_000);
    let face = server_of_provider(&house, json!({ "exact": true, "max_bytes": "1MiB" }));
    let ask = |number: usize| face.chat(&chat_request("house/any", &format!("question {number}")));
    (0..20).for_each(|number| assert_eq!(cache_status(&ask(number)), Some("miss")));
    #[cfg(target_os = "linux")]
    let before = face.server.resident_bytes();
    (20..ANSWERS).for_each(|number| assert_eq!(cache_status(&ask(number)), Some("miss")));
    #[cfg(target_os = "linux")]
    {
        let grown = face.server.resident_bytes().saturating_sub(before);
        assert!(grown < 9_000_000, "18 MB were answered, and memory has grown by {grown}");
    }
    assert_eq!(cache_status(&ask(ANSWERS - 1)), Some("exact"), "the newest is there");
    assert_eq!(cache_status(&ask(0)), Some("miss"), "the oldest is gone");
    let again = (1..ANSWERS).rev().filter(|number| cache_status(&ask(*number)) == Some("exact")).count();
    assert!((2..=10).contains(&again), "{again}");
}

#[test]
fn an_answer_of_more_than_a_mebibyte_is_not_kept() {
    for stream in [false, true] {
        for (length, kept) in [(1_000_000, true), (1_100_000, false)] {
            let house = counting_provider(length);
            let face = server_of_provider(&house, json!({ "exact": true, "max_bytes": "3MiB" }));
            let asked = with_members(chat_request("house/any", "hello"), json!({ "stream": stream }));
            let (first, again) = (face.chat(&asked), face.chat(&asked));
            assert_eq!(cache_status(&first), Some("miss"));
            assert_eq!(cache_status(&again), Some(if kept { "exact" } else { "miss" }), "{length}, stream {stream}");
            assert_eq!(answers_given(&house), if kept { 1 } else { 2 });
        }
    }
}

#[test]
fn an_answer_that_is_given_again_costs_nothing_and_is_a_decision_of_its_own() {
    let face = ApiServer::start(&json!({
        "providers": { "mock": { "models": { "mock": { "price": { "input": 1, "output": 1 } } } } },
        "router": { "budget": { "tokens_per_day": 15 }, "cache": { "exact": true } },
    }));
    // Three prompt tokens and eight completion tokens; then three and five.
    let asked = chat_request("mock", "Hello, world!");
    let first = face.chat(&asked);
    assert!(first.header("x-corbie-cost").is_some(), "{first:?}");
    for _ in 0..5 {
        let again = face.chat(&asked);
        assert_eq!((cache_status(&again), again.header("x-corbie-cost")), (Some("exact"), None));
    }
    assert_eq!(face.chat(&chat_request("mock", "Hello, world?")).status, 200, "there is still something left");
    assert_eq!(expect_error(&face.chat(&chat_request("mock", "Hello, you!")), 429)["code"], "over_budget");
    assert_eq!(cache_status(&face.chat(&asked)), Some("exact"), "what costs nothing is given to those over budget too");

    let decisions = face.decisions();
    let whys: Vec<&str> = decisions.iter().map(|decision| decision["reason"].as_str().unwrap()).collect();
    assert_eq!(whys.iter().filter(|why| **why == "cache").count(), 6, "{whys:?}");
    let again = decisions.iter().find(|decision| decision["reason"] == "cache").unwrap();
    assert_eq!(
        (&again["outcome"], &again["provider"], &again["requested_model"]),
        (&json!("answered"), &json!("mock"), &json!("mock"))
    );
    assert_eq!((again.get("usage"), again.get("cost"), &again["attempts"]), (None, None, &json!([])));
    let metrics = face.client.get("/metrics").body;
    assert!(metrics.contains(r#"corbie_route_decisions_total{reason="cache",outcome="answered"} 6"#), "{metrics}");
    assert!(metrics.contains(r#"corbie_route_tokens_total{provider="mock",direction="input"} 6"#), "{metrics}");
}
