//! Complete and streamed responses in every wire format.

use serde_json::{Value, json};

use crate::fixture::{ApiServer, chat_request, with_members};
use crate::upstream::{FORMATS, FakeUpstream};

#[test]
fn a_whole_answer_of_every_wire_format_is_a_chat_completion() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    for format in FORMATS {
        let answer = face.expect_answer(&chat_request(&format!("{format}/echo-small"), "hello to you"));
        assert_eq!(answer["object"], "chat.completion", "{format}");
        assert_eq!(answer["model"], "echo-small", "{format}");
        assert!(answer["id"].as_str().is_some_and(|id| !id.is_empty()), "{answer}");
        assert!(answer["created"].as_u64().is_some_and(|time| time > 0), "{answer}");
        let choices = answer["choices"].as_array().unwrap();
        assert_eq!((choices.len(), &choices[0]["index"]), (1, &json!(0)), "{format}");
        assert_eq!(choices[0]["finish_reason"], "stop", "{format}");
        assert_eq!(choices[0]["message"]["role"], "assistant", "{format}");
        assert_eq!(choices[0]["message"]["content"], "echo: hello to you", "{format}");
        let usage = &answer["usage"];
        let counts = ["prompt_tokens", "completion_tokens", "total_tokens"].map(|name| usage[name].as_u64());
        assert_eq!(counts, [Some(3), Some(4), Some(7)], "{format}");
    }
}

#[test]
fn a_streamed_answer_of_every_wire_format_is_chunks_and_then_done() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    for format in FORMATS {
        let streamed = face.stream(&chat_request(&format!("{format}/echo-small"), "hello to you"));
        assert_eq!(streamed.text(), "echo: hello to you", "{format}");
        assert!(streamed.has_done_event, "{format}: {streamed:?}");
        assert_eq!(streamed.finish_reasons(), ["stop"], "{format}");
        assert_eq!(streamed.deltas().next().unwrap()["role"], "assistant", "{format}");
        assert!(streamed.deltas().filter(|delta| delta["content"] != "").count() > 2, "in pieces: {streamed:?}");
        let first = &streamed.chunks[0];
        for chunk in &streamed.chunks {
            assert_eq!(chunk["object"], "chat.completion.chunk", "{format}");
            assert_eq!(chunk["model"], "echo-small", "{format}");
            assert_eq!((&chunk["id"], &chunk["created"]), (&first["id"], &first["created"]), "{format}");
            assert_eq!(chunk["choices"].as_array().unwrap().len(), 1, "{format}: usage was not asked for");
            assert!(chunk["usage"].is_null(), "{format}: usage was not asked for: {chunk}");
        }
        assert_eq!(streamed.head.header("cache-control"), Some("no-cache"), "{format}");
    }
}

#[test]
fn the_usage_of_a_stream_is_told_once_at_the_end_to_those_who_ask() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    for format in FORMATS {
        let asked = chat_request(&format!("{format}/echo-small"), "hello to you");
        let streamed =
            face.stream(&with_members(asked.clone(), json!({ "stream_options": { "include_usage": true } })));
        assert!(streamed.has_done_event, "{format}");
        let (last, before) = streamed.chunks.split_last().unwrap();
        assert_eq!(last["choices"], json!([]), "{format}");
        assert_eq!(last["usage"]["total_tokens"], 7, "{format}: {last}");
        assert!(before.iter().all(|chunk| chunk.get("usage") == Some(&Value::Null)), "{format}: {streamed:?}");

        let refused = face.stream(&with_members(asked, json!({ "stream_options": { "include_usage": false } })));
        assert!(refused.has_done_event && refused.chunks.iter().all(|chunk| chunk["usage"].is_null()), "{refused:?}");
    }
}

#[test]
fn pictures_schemas_limits_and_stop_words_reach_every_wire_format() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    let picture = "data:image/png;base64,iVBORw0KGgo=";
    let schema = json!({
        "type": "object", "properties": { "place": { "type": "string" } }, "required": ["place"],
        "additionalProperties": false,
    });
    for format in FORMATS {
        let model = format!("{format}/echo-small");
        let content = json!([
            { "type": "text", "text": "what is this" },
            { "type": "image_url", "image_url": { "url": picture } },
        ]);
        let shown = json!({ "model": model, "messages": [{ "role": "user", "content": content }] });
        let said = face.expect_answer(&shown)["choices"][0]["message"]["content"].clone();
        assert!(said.as_str().is_some_and(|said| said.contains("[image]")), "{format}: {said}");

        let shape = json!({ "type": "json_schema", "json_schema": { "name": "place", "schema": schema } });
        let answer =
            face.expect_answer(&with_members(chat_request(&model, "where"), json!({ "response_format": shape })));
        assert_eq!(answer["choices"][0]["message"]["content"], r#"{"place":""}"#, "{format}");

        let answer =
            face.expect_answer(&with_members(chat_request(&model, "one two three"), json!({ "max_tokens": 2 })));
        assert_eq!(answer["choices"][0]["finish_reason"], "length", "{format}: {answer}");

        let answer = face.expect_answer(&with_members(chat_request(&model, "one two three"), json!({ "stop": "two" })));
        assert_eq!(answer["choices"][0]["message"]["content"], "echo: one ", "{format}");
        assert_eq!(answer["choices"][0]["finish_reason"], "stop", "{format}");
    }
}

#[test]
fn callers_who_send_a_key_out_of_habit_are_answered_and_their_key_goes_nowhere() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    let body = chat_request("openai/echo-small", "hello").to_string();
    let reply = face.client.call("POST", "/v1/chat/completions", &[("Authorization", "Bearer sk-habit")], &body);
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(!json!(upstream.requests()).to_string().contains("sk-habit"));
}
