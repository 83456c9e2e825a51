//! Semantic cache: responses for questions with the same meaning, after the same conversation.
//!
//! Similarities by the built-in model: 0.99 and 0.98 for the two paraphrases, 0.87 for the different question.

use serde_json::{Value, json};

use crate::cache::cache_status;
use crate::fixture::{ApiServer, CHAT_PATH, chat_request, settings_for_each_format, with_members};
use crate::upstream::{FORMATS, FakeUpstream};

const QUESTION: &str = "How do I reset my password?";
const SIMILAR_QUESTIONS: [&str; 2] = ["how do i reset my password", "How can I reset my password?"];
const DIFFERENT_QUESTION: &str = "How do I change my password?";

fn server_with_cache(upstream: &FakeUpstream, cache: Value) -> ApiServer {
    ApiServer::start(&with_members(settings_for_each_format(upstream), json!({ "router": { "cache": cache } })))
}

/// The cache results for these requests in order.
fn cache_statuses(face: &ApiServer, asked: &[&Value]) -> Vec<String> {
    asked.iter().map(|asked| cache_status(&face.chat(asked)).unwrap().to_owned()).collect()
}

/// Number of texts embedded so far.
fn embedded_text_count(face: &ApiServer) -> u64 {
    let metrics = face.client.get("/metrics").body;
    let line = metrics.lines().find_map(|line| line.strip_prefix("corbie_inference_texts_total "));
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{metrics}"))
}

#[test]
fn a_question_that_means_the_same_gets_the_same_answer_in_every_wire_format() {
    let upstream = FakeUpstream::start();
    let face = server_with_cache(&upstream, json!({ "exact": true, "semantic": true }));
    for format in FORMATS {
        for stream in [false, true] {
            upstream.clear_requests();
            let ask = |text: &str| {
                face.chat(&with_members(
                    chat_request(&format!("{format}/echo-small"), text),
                    json!({ "stream": stream }),
                ))
            };
            let first = ask(QUESTION);
            assert_eq!(cache_status(&first), Some("miss"), "{format}");
            assert_eq!(cache_status(&ask(QUESTION)), Some("exact"), "{format}");
            for text in SIMILAR_QUESTIONS {
                let again = ask(text);
                assert_eq!(cache_status(&again), Some("semantic"), "{format}: {text}");
                assert_eq!((&again.body, again.header("x-corbie-reason")), (&first.body, Some("cache")), "{format}");
            }
            assert_eq!(cache_status(&ask(DIFFERENT_QUESTION)), Some("miss"), "{format}");
            assert_eq!(upstream.requests_for("echo-small").len(), 2, "{format}, stream {stream}");
        }
    }
}

#[test]
fn how_alike_questions_must_be_is_the_operators_to_say() {
    let upstream = FakeUpstream::start();
    let [asked, alike, unlike] =
        [QUESTION, SIMILAR_QUESTIONS[0], DIFFERENT_QUESTION].map(|text| chat_request("openai/echo-small", text));
    let loose = server_with_cache(&upstream, json!({ "semantic": true, "threshold": 0.8 }));
    assert_eq!(cache_statuses(&loose, &[&asked, &unlike]), ["miss", "semantic"]);
    let strict = server_with_cache(&upstream, json!({ "semantic": true, "threshold": 1.0 }));
    assert_eq!(cache_statuses(&strict, &[&asked, &alike, &unlike]), ["miss", "miss", "miss"]);
}

#[test]
fn the_same_bytes_mean_the_same_where_only_meanings_count() {
    let upstream = FakeUpstream::start();
    let face = server_with_cache(&upstream, json!({ "exact": false, "semantic": true }));
    let asked = chat_request("openai/echo-small", QUESTION);
    assert_eq!(cache_statuses(&face, &[&asked, &asked]), ["miss", "semantic"]);
    let exact = self::server_with_cache(&upstream, json!({ "exact": true, "semantic": false }));
    assert_eq!(
        cache_statuses(&exact, &[&asked, &chat_request("openai/echo-small", SIMILAR_QUESTIONS[0])]),
        ["miss", "miss"]
    );
    assert_eq!(embedded_text_count(&exact), 0, "nothing is embedded");
}

/// With this threshold all questions match, except for the parts that must be equal.
#[test]
fn another_number_or_anything_else_that_is_said_is_another_question() {
    let upstream = FakeUpstream::start();
    let face = server_with_cache(&upstream, json!({ "exact": true, "semantic": true, "threshold": 0.5 }));
    let asked = chat_request("openai/echo-small", "What is 12 times 17?");
    assert_eq!(
        cache_statuses(&face, &[&asked, &chat_request("openai/echo-small", "what's 12 times 17")]),
        ["miss", "semantic"]
    );
    assert_eq!(cache_status(&face.chat(&chat_request("openai/echo-small", "What is 12 times 18?"))), Some("miss"));

    let text = "what is 12 times 17";
    let messages = |first: Value| json!({ "messages": [first, { "role": "user", "content": text }] });
    let tool = json!({ "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } });
    let plain = chat_request("openai/echo-small", text);
    for other in [
        chat_request("openai/echo-large", text),
        chat_request("anthropic/echo-small", text),
        with_members(plain.clone(), json!({ "temperature": 1 })),
        with_members(plain.clone(), json!({ "stream": true })),
        with_members(plain.clone(), json!({ "tools": [tool] })),
        with_members(plain.clone(), messages(json!({ "role": "system", "content": "Be brief." }))),
        with_members(plain.clone(), messages(json!({ "role": "system", "content": "Be long." }))),
        with_members(plain.clone(), messages(json!({ "role": "user", "content": "Hello" }))),
        with_members(plain.clone(), json!({ "messages": [{ "role": "user", "content": text, "name": "ada" }] })),
    ] {
        assert_eq!(cache_status(&face.chat(&other)), Some("miss"), "{other}");
    }
    assert_eq!(cache_status(&face.chat(&plain)), Some("semantic"));
    let again = with_members(plain, json!({ "tools": [tool], "messages": [{ "role": "user", "content": QUESTION }] }));
    assert_eq!(cache_statuses(&face, &[&again, &again]), ["miss", "exact"], "with tools the bytes count");
    let reworded = with_members(again, json!({ "messages": [{ "role": "user", "content": SIMILAR_QUESTIONS[0] }] }));
    assert_eq!(cache_status(&face.chat(&reworded)), Some("miss"), "and nothing else");
}

/// The built-in model gives these a similarity of 0.97 or more.
#[test]
fn the_same_words_in_another_order_or_with_a_no_are_another_question() {
    let upstream = FakeUpstream::start();
    let face = server_with_cache(&upstream, json!({ "semantic": true }));
    for (asked, other) in [
        ("Which flights go from Paris to Rome?", "Which flights go from Rome to Paris?"),
        ("Convert miles to kilometres", "Convert kilometres to miles"),
        ("Did Alice owe Bob money?", "Did Bob owe Alice money?"),
        ("Is this allowed in Spain?", "Is this not allowed in Spain?"),
        ("Is it safe to take this with alcohol?", "Is it unsafe to take this with alcohol?"),
    ] {
        let [asked, other] = [asked, other].map(|text| chat_request("openai/echo-small", text));
        assert_eq!(
            cache_statuses(&face, &[&asked, &other, &asked, &other]),
            ["miss", "miss", "semantic", "semantic"],
            "{asked}"
        );
    }
}

#[test]
fn a_caller_may_refuse_an_answer_to_another_question() {
    let upstream = FakeUpstream::start();
    let face = server_with_cache(&upstream, json!({ "semantic": true }));
    let [asked, alike] = [QUESTION, SIMILAR_QUESTIONS[0]].map(|text| chat_request("openai/echo-small", text));
    assert_eq!(cache_status(&face.chat(&asked)), Some("miss"));
    for control in ["no-cache", "no-store"] {
        let reply = face.client.call("POST", CHAT_PATH, &[("Cache-Control", control)], &alike.to_string());
        assert_eq!(cache_status(&reply), Some("miss"), "{control}");
        assert_eq!(reply.json()["choices"][0]["message"]["content"], format!("echo: {}", SIMILAR_QUESTIONS[0]));
    }
    assert_eq!(upstream.requests_for("echo-small").len(), 3);
    assert_eq!(embedded_text_count(&face), 2, "nothing is compared for one that is neither looked for nor kept");
}

/// An evicted entry does not hide a valid one.
#[test]
fn an_answer_that_made_way_hides_no_other() {
    let upstream = FakeUpstream::start();
    // The cache holds one entry.
    let face = server_with_cache(&upstream, json!({ "semantic": true, "max_bytes": "1KiB" }));
    let [first, second, third] =
        [QUESTION, DIFFERENT_QUESTION, SIMILAR_QUESTIONS[0]].map(|text| chat_request("openai/echo-small", text));
    assert_eq!(cache_statuses(&face, &[&first, &second]), ["miss", "miss"]);
    assert_eq!(
        cache_statuses(&face, &[&third, &third]),
        ["miss", "semantic"],
        "the first has made way, and the third is kept"
    );
    assert_eq!(cache_statuses(&face, &[&first]), ["semantic"], "the first finds the third");
}

#[test]
fn a_question_is_embedded_once_for_the_cache_and_the_classifier() {
    let upstream = FakeUpstream::start();
    for semantic in [false, true] {
        let settings = json!({
            "router": { "cache": { "semantic": semantic } }, "defaults": { "model": "openai/echo-small" },
        });
        let face = ApiServer::start(&with_members(settings_for_each_format(&upstream), settings));
        assert_eq!(face.chat(&chat_request("auto", "Which wine goes with fish?")).status, 200);
        let before = embedded_text_count(&face);
        let reply = face.chat(&chat_request("auto", "Tell me about the rivers near the town where I grew up"));
        assert_eq!(cache_status(&reply), semantic.then_some("miss"));
        let method = face.decisions()[0]["classified"]["method"].clone();
        assert!(method == "model" || method == "embedding", "the classifier takes a vector: {method}");
        assert_eq!(embedded_text_count(&face) - before, 1, "semantic {semantic}");
        // A cache hit is not classified.
        let alike = face.chat(&chat_request("auto", "tell me about the rivers near the town where I grew up"));
        assert_eq!(cache_status(&alike), semantic.then_some("semantic"));
    }
}
