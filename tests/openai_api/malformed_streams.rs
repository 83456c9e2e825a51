//! Unusual streams: heartbeats, several choices, audio, events after the end, and responses that are not streams.

use std::io::Write;
use std::net::Shutdown;
use std::time::Duration;

use serde_json::{Value, json};

use crate::fixture::{ApiServer, StreamedResponse, chat_request, expect_error, provider_settings, with_members};
use crate::upstream::ScriptedServer;

/// A server that writes these parts in turn, with delays, and closes.
fn streaming_provider(kind: &'static str, written: Vec<(String, Duration)>) -> ScriptedServer {
    ScriptedServer::start(move |_, connection| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n");
        let _ = connection.write_all(head.as_bytes());
        for (text, pause) in &written {
            let _ = connection.write_all(text.as_bytes());
            let _ = connection.flush();
            std::thread::park_timeout(*pause);
        }
        let _ = connection.shutdown(Shutdown::Both);
    })
}

fn provider_writing(texts: &[&str]) -> ScriptedServer {
    streaming_provider("text/event-stream", texts.iter().map(|text| ((*text).to_owned(), Duration::ZERO)).collect())
}

fn server_with_timeout(house: &ScriptedServer, timeout: &str) -> ApiServer {
    let mut provider = provider_settings("openai-compatible", house);
    provider["timeout"] = timeout.into();
    ApiServer::start(&json!({ "providers": { "house": provider } }))
}

fn chunk(index: u64, delta: &Value, finish: &Value) -> String {
    let choice = json!({ "index": index, "delta": delta, "finish_reason": finish });
    format!("data: {}\n\n", json!({ "id": "1", "object": "chat.completion.chunk", "choices": [choice] }))
}

fn content_chunk(text: &str) -> String {
    chunk(0, &json!({ "content": text }), &Value::Null)
}

fn stop_chunk() -> String {
    chunk(0, &json!({}), &json!("stop"))
}

fn stream_from(house: &ScriptedServer) -> StreamedResponse {
    server_with_timeout(house, "5s").stream(&chat_request("house/any", "hello"))
}

#[test]
fn empty_events_are_signs_of_life_and_not_handed_on() {
    let (first, second, end) = (content_chunk("a"), content_chunk("b"), stop_chunk());
    let streamed =
        stream_from(&provider_writing(&[&first, "data:\n\n", "data: \n\n", &second, &end, "data: [DONE]\n\n"]));
    assert_eq!((streamed.text().as_str(), streamed.has_done_event), ("ab", true));
}

#[test]
fn one_of_several_answers_that_breaks_off_breaks_the_stream() {
    let begun = chunk(1, &json!({ "content": "half of a sent" }), &Value::Null);
    let other = chunk(1, &json!({}), &json!("stop"));
    let asked = with_members(chat_request("house/any", "hello"), json!({ "n": 2 }));
    let of = |texts: &[&str]| server_with_timeout(&provider_writing(texts), "5s").stream(&asked);
    let (first, end) = (content_chunk("a"), stop_chunk());
    assert!(!of(&[&first, &begun, &end]).has_done_event);
    assert!(of(&[&first, &begun, &end, &other]).has_done_event);
}

#[test]
fn counts_are_told_once_to_those_who_asked_however_they_are_written() {
    let (first, end) = (content_chunk("a"), stop_chunk());
    let counts = "data: {\"id\":\"1\",\"choices\":[],\"usage\" :\t{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n";
    let texts = [first.as_str(), &end, counts, "data: [DONE]\n\n"];
    assert!(stream_from(&provider_writing(&texts)).chunks.iter().all(|chunk| chunk["choices"] != json!([])));
    let face = server_with_timeout(&provider_writing(&texts), "5s");
    let asked =
        with_members(chat_request("house/any", "hello"), json!({ "stream_options": { "include_usage": true } }));
    let chunks = face.stream(&asked).chunks;
    assert_eq!(chunks.iter().filter(|chunk| chunk["usage"].is_object()).count(), 1, "{chunks:?}");
    assert_eq!(face.decisions()[0]["usage"]["prompt"], 3);
}

#[test]
fn what_comes_after_the_end_is_no_part_of_the_answer() {
    let texts = [content_chunk("a"), stop_chunk(), "data: [DONE]\n\n".into(), content_chunk("after")];
    let all = texts.concat().replace("\n\n", "\r\n\r\n");
    let streamed = stream_from(&provider_writing(&[&all]));
    assert_eq!((streamed.text().as_str(), streamed.has_done_event), ("a", true));
}

#[test]
fn a_failure_under_a_status_of_success_is_a_failure() {
    let body = json!({ "error": { "code": "rate_limit_exceeded", "message": "slow down" } }).to_string();
    let house = streaming_provider("application/json", vec![(body, Duration::ZERO)]);
    let mut provider = provider_settings("openai-compatible", &house);
    provider["timeout"] = "1s".into();
    let face = ApiServer::start(&json!({ "providers": { "house": provider }, "router": { "timeout": "900ms" } }));
    let reply = face.chat(&with_members(chat_request("house/any", "hello"), json!({ "stream": true })));
    expect_error(&reply, 429);
}

#[test]
fn a_sound_is_an_answer_too_and_is_waited_for_no_longer() {
    let sound = chunk(0, &json!({ "audio": { "data": "AAAA" } }), &Value::Null);
    let mut written: Vec<_> = (0..6).map(|_| (sound.clone(), Duration::from_millis(300))).collect();
    written.push((stop_chunk() + "data: [DONE]\n\n", Duration::ZERO));
    let house = streaming_provider("text/event-stream", written);
    let streamed = server_with_timeout(&house, "1s").stream(&chat_request("house/any", "hello"));
    assert_eq!((streamed.chunks.len(), streamed.has_done_event), (7, true));
    let asked = house.requests().iter().filter(|request| request.head.starts_with("POST")).count();
    assert_eq!(asked, 1);
}

#[test]
fn whoever_leaves_before_the_counts_come_pays_all_the_same() {
    let (first, end) = (content_chunk("a"), stop_chunk());
    let house = streaming_provider(
        "text/event-stream",
        vec![(first.repeat(40) + &end, Duration::from_millis(500)), ("data: [DONE]\n\n".into(), Duration::ZERO)],
    );
    let face = ApiServer::start(&json!({
        "providers": { "house": provider_settings("openai-compatible", &house) },
        "router": { "budget": { "tokens_per_day": 40 } },
    }));
    let mut stream = face.open(&chat_request("house/any", "hello")).unwrap();
    assert_eq!(stream.head.status, 200);
    stream.read_chunk().unwrap();
    drop(stream);
    let deadline = std::time::Instant::now() + Duration::from_secs(5);
    while face.decisions().is_empty() && std::time::Instant::now() < deadline {
        std::thread::park_timeout(Duration::from_millis(20));
    }
    expect_error(&face.chat(&chat_request("house/any", "hello")), 429);
}
