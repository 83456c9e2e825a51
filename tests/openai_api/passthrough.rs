//! Passthrough of unknown members when both sides use the same protocol.

use std::io::Write;

use serde_json::{Value, json};

use crate::fixture::{ApiServer, CHAT_PATH, chat_request, provider_settings, with_members};
use crate::upstream::{ScriptedServer, listing, write_json};

/// An OpenAI-compatible server whose responses contain additional members.
fn provider_with_extra_fields() -> ScriptedServer {
    ScriptedServer::start(|request, connection| {
        let body = if request.head.starts_with("GET") { listing(&["talker"]) } else { answer() };
        write_json(connection, &body);
    })
}

fn answer() -> Value {
    json!({
        "id": "chatcmpl-7", "object": "chat.completion", "created": 1_700_000_001, "model": "talker",
        "choices": [
            {
                "index": 0, "finish_reason": "stop", "logprobs": { "content": [{ "token": "hi", "logprob": -0.5 }] },
                "message": {
                    "role": "assistant", "content": "hi", "refusal": null, "annotations": [{ "type": "x" }], "mood": 1,
                },
            },
            { "index": 1, "finish_reason": "stop", "message": { "role": "assistant", "content": "hello" } },
        ],
        "usage": {
            "prompt_tokens": 5, "completion_tokens": 6, "total_tokens": 11, "queue_time": 0.25,
            "prompt_tokens_details": { "cached_tokens": 4, "audio_tokens": 0 },
        },
        "service_tier": "flex",
        "system_fingerprint": "fp_7",
        "citations": ["https://example.org"],
    })
}

fn server_of_provider(house: &ScriptedServer) -> ApiServer {
    ApiServer::start(&json!({ "providers": { "house": provider_settings("openai-compatible", house) } }))
}

/// The bodies of the received chats.
fn received_chats(house: &ScriptedServer) -> Vec<Value> {
    let chats = house.requests().into_iter().filter(|request| request.head.starts_with("POST"));
    chats.map(|request| serde_json::from_str(&request.body).unwrap()).collect()
}

#[test]
fn members_of_a_request_that_corbie_does_not_know_reach_a_compatible_provider_unchanged() {
    let house = provider_with_extra_fields();
    let face = server_of_provider(&house);
    let messages = json!([
        { "role": "developer", "content": "Be brief.", "name": "host" },
        { "role": "user", "name": "ann", "content": [
            { "type": "text", "text": "hello", "cache_control": { "type": "ephemeral" } },
            { "type": "input_audio", "input_audio": { "data": "AAAA", "format": "wav" } },
        ] },
    ]);
    let asked = json!({
        "model": "house/talker", "messages": messages, "logit_bias": { "50256": -100 }, "user": "u-1",
        "metadata": { "ticket": "T-1" }, "n": 2, "logprobs": true, "top_logprobs": 3, "presence_penalty": 0.5,
        "store": false, "service_tier": "flex", "temperature": 0.0, "top_p": 1, "seed": -3, "max_tokens": 9,
        "tools": [{ "type": "function", "function": { "name": "f", "strict": true }, "x": 1 }, { "type": "web_search" }],
        "tool_choice": { "type": "web_search" },
        "an_unknown_member": { "deep": [1, null, 2.5, "three"], "big": 12345678901234567890_u64 },
    });
    face.expect_answer(&asked);
    assert_eq!(received_chats(&house), [with_members(asked, json!({ "model": "talker" }))]);
}

#[test]
fn a_streamed_request_says_the_same_and_asks_for_usage() {
    let house = provider_with_extra_fields();
    let face = server_of_provider(&house);
    let asked = with_members(
        chat_request("house/talker", "hello"),
        json!({ "stream": true, "logit_bias": { "7": 1 }, "odd": [1] }),
    );
    face.chat(&asked);
    let wanted = with_members(asked, json!({ "model": "talker", "stream_options": { "include_usage": true } }));
    assert_eq!(received_chats(&house)[0], wanted);
}

#[test]
fn members_of_a_whole_answer_that_corbie_does_not_know_reach_the_caller_unchanged() {
    let house = provider_with_extra_fields();
    let face = server_of_provider(&house);
    assert_eq!(face.expect_answer(&chat_request("house/talker", "hello")), answer());
}

#[test]
fn members_of_a_streamed_answer_that_corbie_does_not_know_reach_the_caller_unchanged() {
    let chunk = |index: u64, delta: Value, finish: Value| {
        let choice = json!({ "index": index, "delta": delta, "logprobs": { "content": [] }, "finish_reason": finish });
        json!({
            "id": "chatcmpl-7", "object": "chat.completion.chunk", "created": 1_700_000_001, "model": "talker",
            "choices": [choice], "usage": null, "obfuscation": "x7", "service_tier": "flex",
        })
    };
    let said = vec![
        chunk(0, json!({ "role": "assistant", "content": "h", "mood": 1 }), Value::Null),
        chunk(1, json!({ "role": "assistant", "content": "hello" }), Value::Null),
        chunk(0, json!({ "content": "i" }), json!("stop")),
        chunk(1, json!({}), json!("length")),
    ];
    let mut body: String = said.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    body += "data: [DONE]\n\n";
    let house = ScriptedServer::start(move |_, connection| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream";
        let length = body.len();
        let _ = connection.write_all(format!("{head}\r\nContent-Length: {length}\r\n\r\n{body}").as_bytes());
    });
    let streamed =
        server_of_provider(&house).stream(&with_members(chat_request("house/talker", "hello"), json!({ "n": 2 })));
    assert_eq!((streamed.chunks, streamed.has_done_event), (said, true));
}

#[test]
fn gaps_that_compatible_servers_leave_are_filled_so_that_sdks_can_read_the_answer() {
    let house = ScriptedServer::answering(|_| {
        let call = json!({ "function": { "name": "f", "arguments": { "a": 1 } } });
        json!({ "choices": [{ "message": { "content": null, "tool_calls": [call] } }] })
    });
    let answer = server_of_provider(&house).expect_answer(&chat_request("house/any", "hello"));
    assert_eq!(answer["object"], "chat.completion");
    assert!(answer["id"].is_string() && answer["created"].is_u64() && answer["usage"].is_object(), "{answer}");
    let choice = &answer["choices"][0];
    assert_eq!((&choice["index"], &choice["finish_reason"]), (&json!(0), &json!("tool_calls")));
    assert_eq!(choice["message"]["role"], "assistant");
    let call = &choice["message"]["tool_calls"][0];
    assert!(call["id"].is_string(), "{call}");
    assert_eq!((&call["type"], &call["function"]["arguments"]), (&json!("function"), &json!(r#"{"a":1}"#)));
}

/// Formatted as no serializer would: numbers, escapes and spaces must reach the provider unchanged.
const UNUSUAL_JSON: &str = "{ \"model\" : \"house/talker\",\n  \"seed\": 1e2, \"x\":1.50,\"messages\":[ {\"role\":\"user\",\
    \"content\":\"caf\\u00e9 \\/\"} ],\t\"big\": 123456789012345678901234567890 }\n";

#[test]
fn a_request_for_a_named_model_keeps_every_byte_but_the_name_of_the_provider() {
    let house = provider_with_extra_fields();
    let face = server_of_provider(&house);
    let reply = face.client.call("POST", CHAT_PATH, &[], UNUSUAL_JSON);
    assert_eq!(reply.status, 200, "{reply:?}");
    let seen = house.requests();
    assert_eq!(seen.last().unwrap().body, UNUSUAL_JSON.replace("house/talker", "talker"));
}

#[test]
fn an_answer_that_lacks_nothing_keeps_every_byte() {
    let body = "{ \"id\":\"a\", \"object\":\"chat.completion\",\"created\":1700000000 ,\"model\":\"t\",\"x\":1.50,\
        \"choices\":[ {\"index\":0,\"finish_reason\":\"stop\",\"message\":{\"role\":\"assistant\",\"content\":\"caf\\u00e9\"}}],\
        \"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5}}\n";
    let house = ScriptedServer::start(move |_, connection| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json";
        let _ = connection.write_all(format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    });
    let face = server_of_provider(&house);
    let reply = face.chat(&chat_request("house/talker", "hello"));
    assert_eq!((reply.status, reply.body), (200, body.to_owned()));
    assert_eq!(face.decisions()[0]["usage"]["prompt"], 3);
}
