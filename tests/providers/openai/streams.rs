//! Streamed responses.

use corbie::providers::openai::OpenAiDecoder;
use corbie::providers::{Delta, Error, SseEvent};
use serde_json::{Value, json};

use crate::protocol_fixture::OPENAI;

#[test]
fn a_stream_that_breaks_off_gives_what_came_and_is_not_complete() {
    for (case, text) in OPENAI.cases(".stream.txt") {
        let (all, _) = OPENAI.decode_stream([text.as_slice()]).unwrap();
        for end in 0..text.len() {
            let (deltas, complete) = OPENAI.decode_stream([&text[..end]]).unwrap();
            assert!(all.starts_with(&deltas), "{case} ended at {end}");
            let has_stopped = deltas.iter().any(|delta| matches!(delta, Delta::Stopped { .. }));
            assert_eq!(complete, has_stopped, "{case} ended at {end}");
        }
    }
}

#[test]
fn an_error_in_a_stream_ends_it() {
    let limited = Error::RateLimited { retry_after: None, quota: false };
    let away = |status| Error::Unavailable { status, retry_after: None };
    let bad = |kind: &str| Error::BadRequest { kind: kind.into() };
    let cases = [
        ("", r#"{"error":{"message":"sk-leak","type":"server_error","param":null,"code":null}}"#, away(500)),
        ("", r#"{"error":{"message":"sk-leak","type":"requests","code":"rate_limit_exceeded"}}"#, limited.clone()),
        (
            "",
            r#"{"error":{"message":"sk-leak","code":502},"choices":[{"delta":{},"finish_reason":"error"}]}"#,
            away(502),
        ),
        ("", r#"{"object":"error","message":"sk-leak","type":"BadRequestError","code":400}"#, bad("bad request")),
        ("", r#"{"choices":[{"index":0,"delta":{},"error":{"code":429}}]}"#, limited),
        ("error", r#"{"error":{"type":"invalid_request_error"}}"#, bad("invalid_request_error")),
        ("error", r#"{"message":"sk-leak","code":"model_not_found"}"#, Error::ModelNotFound),
        ("error", "sk-leak", away(500)),
        ("", "sk-leak", Error::InvalidResponse("stream event is not a JSON object")),
        ("", "[1]", Error::InvalidResponse("stream event is not a JSON object")),
        ("", "[DONE]", Error::InvalidResponse("stream has no response")),
    ];
    for (name, data, expected) in cases {
        let event = SseEvent { name: name.into(), data: data.into() };
        let mut decoder = OpenAiDecoder::default();
        assert_eq!(decoder.event(&event), Err(expected), "{data}");
        assert!(!decoder.is_complete());
    }
}

#[test]
fn chunks_of_other_choices_and_of_wrong_types_add_nothing() {
    let mut decoder = OpenAiDecoder::default();
    let mut deltas = |data: Value| decoder.event(&SseEvent { data: data.to_string(), ..SseEvent::default() }).unwrap();
    assert_eq!(deltas(json!({"id": "x", "model": "m", "choices": []})).len(), 1);
    let nothing = [
        json!({"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "stop"}]}),
        json!({"choices": [{"index": 0, "delta": {"content": 7, "tool_calls": "x", "reasoning": []}}]}),
        json!({"choices": [{"index": 0, "delta": null, "finish_reason": null}], "usage": null, "error": null}),
        json!({"choices": {"index": 0}, "usage": []}),
    ];
    for chunk in nothing {
        assert_eq!(deltas(chunk.clone()), [], "{chunk}");
    }
}
