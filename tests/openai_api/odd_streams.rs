//! Unusual streams: heartbeats, several choices, audio, events after the end, and responses that are not streams.

use std::io::Write;
use std::net::Shutdown;
use std::time::Duration;

use serde_json::{Value, json};

use crate::fixture::{Face, Streamed, error, peer, question, with};
use crate::upstream::Peer;

/// A server that writes these parts in turn, with delays, and closes.
fn house(kind: &'static str, written: Vec<(String, Duration)>) -> Peer {
    Peer::start(move |_, connection| {
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

fn at_once(texts: &[&str]) -> Peer {
    house("text/event-stream", texts.iter().map(|text| ((*text).to_owned(), Duration::ZERO)).collect())
}

fn face(house: &Peer, timeout: &str) -> Face {
    let mut provider = peer("openai-compatible", house);
    provider["timeout"] = timeout.into();
    Face::start(&json!({ "providers": { "house": provider } }))
}

fn chunk(index: u64, delta: &Value, finish: &Value) -> String {
    let choice = json!({ "index": index, "delta": delta, "finish_reason": finish });
    format!("data: {}\n\n", json!({ "id": "1", "object": "chat.completion.chunk", "choices": [choice] }))
}

fn said(text: &str) -> String {
    chunk(0, &json!({ "content": text }), &Value::Null)
}

fn stopped() -> String {
    chunk(0, &json!({}), &json!("stop"))
}

fn streamed(house: &Peer) -> Streamed {
    face(house, "5s").stream(&question("house/any", "hello"))
}

#[test]
fn empty_events_are_signs_of_life_and_not_handed_on() {
    let (first, second, end) = (said("a"), said("b"), stopped());
    let streamed = streamed(&at_once(&[&first, "data:\n\n", "data: \n\n", &second, &end, "data: [DONE]\n\n"]));
    assert_eq!((streamed.text().as_str(), streamed.done), ("ab", true));
}

#[test]
fn one_of_several_answers_that_breaks_off_breaks_the_stream() {
    let begun = chunk(1, &json!({ "content": "half of a sent" }), &Value::Null);
    let other = chunk(1, &json!({}), &json!("stop"));
    let asked = with(question("house/any", "hello"), json!({ "n": 2 }));
    let of = |texts: &[&str]| face(&at_once(texts), "5s").stream(&asked);
    let (first, end) = (said("a"), stopped());
    assert!(!of(&[&first, &begun, &end]).done);
    assert!(of(&[&first, &begun, &end, &other]).done);
}

#[test]
fn counts_are_told_once_to_those_who_asked_however_they_are_written() {
    let (first, end) = (said("a"), stopped());
    let counts = "data: {\"id\":\"1\",\"choices\":[],\"usage\" :\t{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n";
    let texts = [first.as_str(), &end, counts, "data: [DONE]\n\n"];
    assert!(streamed(&at_once(&texts)).chunks.iter().all(|chunk| chunk["choices"] != json!([])));
    let face = face(&at_once(&texts), "5s");
    let asked = with(question("house/any", "hello"), json!({ "stream_options": { "include_usage": true } }));
    let chunks = face.stream(&asked).chunks;
    assert_eq!(chunks.iter().filter(|chunk| chunk["usage"].is_object()).count(), 1, "{chunks:?}");
    assert_eq!(face.decisions()[0]["usage"]["prompt"], 3);
}

#[test]
fn what_comes_after_the_end_is_no_part_of_the_answer() {
    let texts = [said("a"), stopped(), "data: [DONE]\n\n".into(), said("after")];
    let all = texts.concat().replace("\n\n", "\r\n\r\n");
    let streamed = streamed(&at_once(&[&all]));
    assert_eq!((streamed.text().as_str(), streamed.done), ("a", true));
}

#[test]
fn a_failure_under_a_status_of_success_is_a_failure() {
    let body = json!({ "error": { "code": "rate_limit_exceeded", "message": "slow down" } }).to_string();
    let house = house("application/json", vec![(body, Duration::ZERO)]);
    let mut provider = peer("openai-compatible", &house);
    provider["timeout"] = "1s".into();
    let face = Face::start(&json!({ "providers": { "house": provider }, "router": { "timeout": "900ms" } }));
    let reply = face.chat(&with(question("house/any", "hello"), json!({ "stream": true })));
    error(&reply, 429);
}

#[test]
fn a_sound_is_an_answer_too_and_is_waited_for_no_longer() {
    let sound = chunk(0, &json!({ "audio": { "data": "AAAA" } }), &Value::Null);
    let mut written: Vec<_> = (0..6).map(|_| (sound.clone(), Duration::from_millis(300))).collect();
    written.push((stopped() + "data: [DONE]\n\n", Duration::ZERO));
    let house = house("text/event-stream", written);
    let streamed = face(&house, "1s").stream(&question("house/any", "hello"));
    assert_eq!((streamed.chunks.len(), streamed.done), (7, true));
    let asked = house.seen().iter().filter(|request| request.head.starts_with("POST")).count();
    assert_eq!(asked, 1);
}

#[test]
fn whoever_leaves_before_the_counts_come_pays_all_the_same() {
    let (first, end) = (said("a"), stopped());
    let house = house(
        "text/event-stream",
        vec![(first.repeat(40) + &end, Duration::from_millis(500)), ("data: [DONE]\n\n".into(), Duration::ZERO)],
    );
    let face = Face::start(&json!({
        "providers": { "house": peer("openai-compatible", &house) },
        "router": { "budget": { "tokens_per_day": 40 } },
    }));
    let mut stream = face.open(&question("house/any", "hello")).unwrap();
    assert_eq!(stream.head.status, 200);
    stream.read_chunk().unwrap();
    drop(stream);
    let deadline = std::time::Instant::now() + Duration::from_secs(5);
    while face.decisions().is_empty() && std::time::Instant::now() < deadline {
        std::thread::park_timeout(Duration::from_millis(20));
    }
    error(&face.chat(&question("house/any", "hello")), 429);
}
