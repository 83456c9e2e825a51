//! Streams interrupted upstream: never reported as complete.

use serde_json::json;

use crate::fixture::{
    ApiServer, StreamedResponse, chat_request, expect_error, openai_error, settings_for_each_format, with_members,
};
use crate::upstream::{FORMATS, FakeUpstream};

const TEXT: &str = "the quick brown fox jumps over the lazy dog, and once more over the lazy dog";

/// Some text, an error as the last event, no finish reason, and no `[DONE]`.
#[track_caller]
fn assert_interrupted(streamed: &StreamedResponse, what: &str) {
    assert!(!streamed.has_done_event, "{what}: {streamed:?}");
    let (last, before) = streamed.chunks.split_last().unwrap();
    let error = openai_error(last);
    assert_eq!(error["type"], "server_error", "{what}");
    assert!(before.iter().all(|chunk| chunk.get("error").is_none()), "{what}: {streamed:?}");
    assert!(streamed.finish_reasons().is_empty(), "{what}: {streamed:?}");
    let (text, whole) = (streamed.text(), format!("echo: {TEXT}"));
    assert!(!text.is_empty() && text.len() < whole.len() && whole.starts_with(&text), "{what}: {text:?}");
}

#[test]
fn a_stream_that_is_cut_upstream_ends_with_an_error_and_without_done() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    // Anthropic's first two events and a ping carry no text.
    for (format, cut) in FORMATS.iter().zip(["3", "5", "3"]) {
        for fault in [format!("cut-{cut}"), format!("end-{cut}"), "error-mid".into()] {
            let asked = chat_request(&format!("{format}/{fault}"), TEXT);
            for options in [json!({}), json!({ "stream_options": { "include_usage": true } })] {
                let streamed = face.stream(&with_members(asked.clone(), options));
                assert_interrupted(&streamed, &format!("{format} {fault}"));
            }
        }
    }
}

#[test]
fn a_stream_that_falls_silent_ends_with_an_error_when_the_time_is_up() {
    let upstream = FakeUpstream::start();
    let mut settings = settings_for_each_format(&upstream);
    for format in FORMATS {
        settings["providers"][format]["timeout"] = "1s".into();
    }
    let face = ApiServer::start(&settings);
    for format in FORMATS {
        let streamed = face.stream(&chat_request(&format!("{format}/stall-mid"), TEXT));
        assert_interrupted(&streamed, &format!("{format} stall-mid"));
    }
}

#[test]
fn a_provider_that_drips_forever_is_cut_off_when_the_stream_has_taken_too_long() {
    let upstream = FakeUpstream::start();
    let mut settings = settings_for_each_format(&upstream);
    for format in FORMATS {
        settings["providers"][format]["models"] =
            json!({ "drip-300": { "price": { "input": 1, "output": 1 } }, "trickle-20": {} });
    }
    // No provider is silent longer than its own timeout of two minutes.
    settings["router"] = json!({ "stream_timeout": "1s" });
    let face = ApiServer::start(&settings);
    for format in FORMATS {
        for fault in ["drip-300", "trickle-20"] {
            let streamed = face.stream(&chat_request(&format!("{format}/{fault}"), TEXT));
            assert_interrupted(&streamed, &format!("{format} {fault}"));
            let error = &streamed.chunks.last().unwrap()["error"];
            assert_eq!(error["code"], "stream_timeout", "{format} {fault}");
            assert!(error["message"].as_str().unwrap().contains("`router.stream_timeout`"), "{error}");
            let decision = &face.decisions()[0];
            assert_eq!((&decision["outcome"], &decision["error"]), (&json!("failed"), &json!("stream_timeout")));
            let usage = &decision["usage"];
            assert!(usage["prompt"].as_u64() > Some(0) && usage["completion"].as_u64() > Some(0), "{decision}");
            assert_eq!(decision["cost"].as_f64().is_some_and(|cost| cost > 0.0), fault == "drip-300", "{decision}");
        }
    }
    let metrics = face.client.get("/metrics").body;
    assert!(metrics.contains("corbie_route_decisions_total{reason=\"requested\",outcome=\"failed\"} 6"), "{metrics}");
    // The limit is ours, so no provider is thought to be down.
    for format in FORMATS {
        assert_eq!(face.chat(&chat_request(&format!("{format}/echo-small"), "hello")).status, 200, "{format}");
    }
}

#[test]
fn a_stream_that_is_cut_off_is_paid_for() {
    let upstream = FakeUpstream::start();
    let mut settings = settings_for_each_format(&upstream);
    settings["router"] = json!({ "stream_timeout": "200ms", "budget": { "tokens_per_day": 10 } });
    let face = ApiServer::start(&settings);
    assert_interrupted(&face.stream(&chat_request("openai/trickle-20", TEXT)), "trickle-20");
    assert_eq!(expect_error(&face.chat(&chat_request("openai/echo-small", "hello")), 429)["code"], "over_budget");
}

#[test]
fn a_stream_within_its_limit_is_whole() {
    let upstream = FakeUpstream::start();
    let mut settings = settings_for_each_format(&upstream);
    settings["router"] = json!({ "stream_timeout": "20s" });
    let face = ApiServer::start(&settings);
    for format in FORMATS {
        let streamed = face.stream(&chat_request(&format!("{format}/drip-20"), TEXT));
        assert_eq!((streamed.text(), streamed.has_done_event), (format!("echo: {TEXT}"), true), "{format}");
    }
}

#[test]
fn a_stream_that_breaks_before_its_first_piece_is_begun_elsewhere() {
    let upstream = FakeUpstream::start();
    for format in FORMATS {
        let mut settings = settings_for_each_format(&upstream);
        settings["providers"]["spare"] = upstream.provider("openai-compatible");
        settings["defaults"] = json!({ "model": "spare/echo-small" });
        settings["router"] = json!({ "replace_pinned": true });
        let face = ApiServer::start(&settings);
        let streamed = face.stream(&chat_request(&format!("{format}/cut-0"), "hello"));
        assert_eq!((streamed.text().as_str(), streamed.has_done_event), ("echo: hello", true), "{format}");
        assert_eq!(streamed.head.header("x-corbie-provider"), Some("spare"), "{format}");
        assert_eq!(streamed.head.header("x-corbie-attempts"), Some("2"), "{format}");
    }
}

#[test]
fn a_stream_that_nobody_begins_is_a_status_and_no_stream() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    for format in FORMATS {
        let asked = with_members(chat_request(&format!("{format}/status-503"), "hello"), json!({ "stream": true }));
        assert_eq!(expect_error(&face.chat(&asked), 503)["type"], "server_error", "{format}");
    }
}

#[test]
fn bytes_that_come_three_at_a_time_make_the_same_answer() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    for format in FORMATS {
        let streamed = face.stream(&chat_request(&format!("{format}/shred"), "grüße, 世界 🦀"));
        assert_eq!((streamed.text().as_str(), streamed.has_done_event), ("echo: grüße, 世界 🦀", true), "{format}");
    }
}
