//! Tokens are counted once, and cached tokens are reported.

use std::io::Write;

use serde_json::{Value, json};

use crate::fixture::{ApiServer, chat_request, provider_settings, with_members};
use crate::upstream::{FORMATS, ScriptedServer, write_json};

/// A provider that answers `hi` and reports 10 prompt tokens, 7 of them cached, and 4 completion tokens, 1 of them
/// reasoning.
fn provider_with_usage(format: &'static str) -> ScriptedServer {
    ScriptedServer::start(move |request, connection| {
        let streams = request.body.contains(r#""stream":true"#) || request.head.contains("streamGenerateContent");
        match streams {
            false => write_json(connection, &full_response(format)),
            true => {
                let event = |data: &Value| match data["type"].as_str() {
                    Some(name) => format!("event: {name}\ndata: {data}\n\n"),
                    None => format!("data: {data}\n\n"),
                };
                let mut body: String = stream_chunks(format).iter().map(event).collect();
                if format == "openai" {
                    body += "data: [DONE]\n\n";
                }
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream";
                let length = body.len();
                let _ = connection.write_all(format!("{head}\r\nContent-Length: {length}\r\n\r\n{body}").as_bytes());
            }
        }
    })
}

fn openai_usage(completion: u64) -> Value {
    json!({
        "prompt_tokens": 10, "completion_tokens": completion, "total_tokens": 10 + completion,
        "prompt_tokens_details": { "cached_tokens": 7 }, "completion_tokens_details": { "reasoning_tokens": 1 },
    })
}

fn google_response(text: &str, candidates: u64, finish: Option<&str>) -> Value {
    let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": [{ "text": text }] } });
    if let Some(finish) = finish {
        candidate["finishReason"] = finish.into();
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": 10, "cachedContentTokenCount": 7, "candidatesTokenCount": candidates,
            "thoughtsTokenCount": 1, "totalTokenCount": 11 + candidates,
        },
    })
}

fn full_response(format: &str) -> Value {
    match format {
        "anthropic" => json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "any", "stop_reason": "end_turn",
            "content": [{ "type": "text", "text": "hi" }],
            // Anthropic reports cached tokens separately.
            "usage": {
                "input_tokens": 2, "cache_creation_input_tokens": 1, "cache_read_input_tokens": 7, "output_tokens": 4,
            },
        }),
        "google" => google_response("hi", 3, Some("STOP")),
        _ => json!({
            "id": "1", "choices": [{ "index": 0, "message": { "role": "assistant", "content": "hi" }, "finish_reason": "stop" }],
            "usage": openai_usage(4),
        }),
    }
}

/// Anthropic and Google report cumulative counts several times.
fn stream_chunks(format: &str) -> Vec<Value> {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        json!({ "id": "1", "object": "chat.completion.chunk", "choices": [choice], "usage": null })
    };
    match format {
        "anthropic" => {
            let usage = |output: u64| {
                json!({
                    "input_tokens": 2, "cache_creation_input_tokens": 1, "cache_read_input_tokens": 7,
                    "output_tokens": output,
                })
            };
            let message = json!({
                "id": "msg_1", "type": "message", "role": "assistant", "model": "any", "content": [], "usage": usage(1),
            });
            vec![
                json!({ "type": "message_start", "message": message }),
                json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
                json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "hi" } }),
                json!({ "type": "content_block_stop", "index": 0 }),
                json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": usage(4) }),
                json!({ "type": "message_stop" }),
            ]
        }
        "google" => vec![google_response("h", 1, None), google_response("i", 3, Some("STOP"))],
        _ => vec![
            chunk(json!({ "role": "assistant", "content": "h" }), Value::Null),
            chunk(json!({ "content": "i" }), json!("stop")),
            json!({ "id": "1", "object": "chat.completion.chunk", "choices": [], "usage": openai_usage(4) }),
        ],
    }
}

/// Prompt, cached, completion and total tokens.
fn token_counts(usage: &Value) -> [Option<u64>; 4] {
    let cached = usage["prompt_tokens_details"]["cached_tokens"].as_u64();
    [usage["prompt_tokens"].as_u64(), cached, usage["completion_tokens"].as_u64(), usage["total_tokens"].as_u64()]
}

#[test]
fn tokens_are_counted_once_with_the_cached_among_them_in_every_wire_format() {
    let houses = FORMATS.map(|format| (format, provider_with_usage(format)));
    let providers: serde_json::Map<_, _> =
        houses.iter().map(|(format, house)| ((*format).to_owned(), provider_settings(format, house))).collect();
    let face = ApiServer::start(&json!({ "providers": providers }));
    let wanted = [Some(10), Some(7), Some(4), Some(14)];
    for format in FORMATS {
        let asked = chat_request(&format!("{format}/any"), "hello");
        let whole = face.expect_answer(&asked);
        assert_eq!(token_counts(&whole["usage"]), wanted, "{format}: {whole}");
        let streamed = face.stream(&with_members(asked, json!({ "stream_options": { "include_usage": true } })));
        assert_eq!((streamed.text().as_str(), streamed.has_done_event), ("hi", true), "{format}");
        let told: Vec<&Value> = streamed.chunks.iter().map(|chunk| &chunk["usage"]).filter(|u| !u.is_null()).collect();
        assert_eq!(told.len(), 1, "{format}: {streamed:?}");
        assert_eq!(token_counts(told[0]), wanted, "{format}");
    }
    // The records have the same counts in every mode.
    let decisions = face.decisions();
    assert_eq!(decisions.len(), 6);
    for decision in &decisions {
        let counts = ["prompt", "cached", "completion"].map(|name| decision["usage"][name].as_u64());
        assert_eq!(counts, [Some(10), Some(7), Some(4)], "{decision}");
    }
}
