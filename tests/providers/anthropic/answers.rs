//! Complete and streamed responses, and the parts sent back in later turns.

use corbie::providers::chat::{Chat, ChatRole, Message};
use corbie::providers::{Error, UnsupportedParameters};
use serde_json::{Value, json};

use crate::protocol_fixture::ANTHROPIC;

#[test]
fn a_stream_that_breaks_off_is_not_complete() {
    for (case, bytes) in ANTHROPIC.cases(".stream.txt") {
        // The last event ends with an empty line. Without it, the event is incomplete.
        let end = bytes.len() - if bytes.ends_with(b"\r\n") { 2 } else { 1 };
        for cut in 0..end {
            assert!(!ANTHROPIC.decode_stream([&bytes[..cut]]).unwrap().1, "{case} cut at {cut}");
        }
    }
}

#[test]
fn what_a_model_thought_goes_back_as_it_came() {
    for (case, body) in ANTHROPIC.cases(".response.json") {
        let completion = ANTHROPIC.parse_response(200, &[], &body).unwrap();
        let messages = vec![Message { role: ChatRole::Assistant, parts: completion.parts }];
        let again = ANTHROPIC.request_body(&Chat { messages, ..Chat::default() }, UnsupportedParameters::default());
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
        assert!(
            matches!(ANTHROPIC.parse_response(200, &[], body.as_bytes()), Err(Error::InvalidResponse(_))),
            "{body}"
        );
    }
    // Malformed blocks are ignored, and invalid counts count as zero.
    let odd = json!({"content": [1, null, {}, {"type": "text"}, {"type": "tool_use", "id": 1}, {"type": "image", "source": 1}],
        "stop_reason": "end_turn", "usage": {"input_tokens": -1, "output_tokens": "many", "cache_read_input_tokens": u64::MAX}});
    assert_eq!(ANTHROPIC.parse_response(200, &[], odd.to_string().as_bytes()).unwrap().text(), "");
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
        assert!(matches!(ANTHROPIC.decode_stream([text.as_bytes()]), Err(Error::InvalidResponse(_))), "{text}");
    }
    assert!(matches!(ANTHROPIC.decode_stream([b"data: {\n\n".as_slice()]), Err(Error::InvalidResponse(_))));
    assert_eq!(
        ANTHROPIC.decode_stream([b"event: ping\ndata: {\"type\":\"ping\"}\n\ndata: {\"type\":\"new\"}\n\n".as_slice()]),
        Ok((vec![], false))
    );
}
