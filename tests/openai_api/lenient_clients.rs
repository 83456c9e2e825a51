//! Deviations of compatible servers and lenient clients.

use std::io::Write;

use serde_json::{Value, json};

use crate::fixture::{
    ApiServer, StreamedResponse, chat_request, expect_error, provider_settings, server_command,
    settings_for_each_format, with_members,
};
use crate::upstream::{FORMATS, FakeUpstream, ScriptedServer};

#[test]
fn the_list_of_models_refuses_other_methods_in_openais_shape() {
    let face = ApiServer::from_command(server_command("serve --port 0", &json!({})));
    for (method, path) in [("POST", "/v1/models"), ("DELETE", "/v1/models"), ("DELETE", "/v1/models/auto")] {
        let reply = face.client.call(method, path, &[], "");
        assert_eq!(expect_error(&reply, 405)["type"], "invalid_request_error", "{method} {path}");
    }
}

/// A web page can send forms and plain text anywhere without asking.
#[test]
fn s10_a_body_that_is_not_json_by_its_type_is_415_in_openais_shape() {
    let face = ApiServer::from_command(server_command("serve --port 0", &json!({})));
    let body = json!({ "model": "auto", "input": "hello", "messages": [] }).to_string();
    for path in ["/v1/embeddings", "/v1/chat/completions"] {
        let reply = face.client.call("POST", path, &[("Content-Type", "text/plain")], &body);
        assert_eq!(expect_error(&reply, 415)["type"], "invalid_request_error", "{path}");
    }
}

#[test]
fn the_bare_prefix_is_404_in_openais_shape() {
    let face = ApiServer::from_command(server_command("serve --port 0", &json!({})));
    for path in ["/v1/", "/v1"] {
        expect_error(&face.client.get(path), 404);
    }
}

#[test]
fn a_text_that_cannot_be_embedded_is_the_callers_mistake() {
    let face = ApiServer::from_command(server_command("serve --port 0", &json!({})));
    for input in [json!(""), json!(["fine", ""])] {
        let reply = face.client.post("/v1/embeddings", &json!({ "model": "auto", "input": input }));
        assert_eq!(expect_error(&reply, 400)["param"], "input", "{input}");
    }
}

#[test]
fn embeddings_name_the_member_that_is_wrong() {
    let face = ApiServer::from_command(server_command("serve --port 0", &json!({})));
    for (name, value) in [("dimensions", json!("many")), ("encoding_format", json!(7))] {
        let reply = face.client.post("/v1/embeddings", &json!({ "model": "auto", "input": "hello", name: value }));
        assert_eq!(expect_error(&reply, 400)["param"], name);
    }
}

#[test]
fn no_wait_is_made_up_for_a_provider_that_names_none() {
    let upstream = FakeUpstream::start();
    let mut settings = settings_for_each_format(&upstream);
    settings["router"] = json!({ "timeout": "900ms" });
    let face = ApiServer::start(&settings);
    for format in FORMATS {
        // Google includes a delay with every exhausted quota.
        for model in ["quota", "status-429"].into_iter().skip(usize::from(format == "google")) {
            let reply = face.chat(&chat_request(&format!("{format}/{model}"), "hello"));
            expect_error(&reply, 429);
            assert_eq!(reply.header("retry-after"), None, "{format} {model}");
        }
    }
}

fn usage(completion: u64) -> Value {
    json!({ "prompt_tokens": 10, "completion_tokens": completion, "total_tokens": 10 + completion })
}

/// A server that reports usage with every chunk, with or without a final `[DONE]`.
fn provider_with_usage(done: bool) -> ScriptedServer {
    let chunk = |delta: Value, finish: Value, usage: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        json!({ "id": "1", "object": "chat.completion.chunk", "model": "any-2026", "choices": [choice], "usage": usage })
    };
    let mut chunks = vec![
        chunk(json!({ "role": "assistant", "content": "h" }), Value::Null, usage(2)),
        chunk(json!({ "content": "i" }), json!("stop"), usage(4)),
    ];
    if done {
        chunks.push(json!({ "id": "1", "object": "chat.completion.chunk", "choices": [], "usage": usage(4) }));
    }
    let mut body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    if done {
        body += "data: [DONE]\n\n";
    }
    ScriptedServer::start(move |_, connection| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream";
        let length = body.len();
        let _ = connection.write_all(format!("{head}\r\nContent-Length: {length}\r\n\r\n{body}").as_bytes());
    })
}

fn stream_from(house: &ScriptedServer, include_usage: bool) -> StreamedResponse {
    let face = ApiServer::start(&json!({ "providers": { "house": provider_settings("openai-compatible", house) } }));
    let options = json!({ "stream_options": { "include_usage": include_usage } });
    face.stream(&with_members(chat_request("house/any", "hello"), options))
}

#[test]
fn a_server_that_repeats_its_counts_sends_no_chunk_without_choices_to_callers_who_did_not_ask() {
    let streamed = stream_from(&provider_with_usage(true), false);
    assert!(streamed.chunks.iter().all(|chunk| !chunk["choices"].as_array().unwrap().is_empty()), "{streamed:?}");
}

#[test]
fn counts_that_were_not_asked_for_are_not_told() {
    let streamed = stream_from(&provider_with_usage(true), false);
    assert!(streamed.chunks.iter().all(|chunk| chunk["usage"].is_null()), "{streamed:?}");
}

#[test]
fn counts_that_a_server_repeats_are_told_once() {
    let streamed = stream_from(&provider_with_usage(true), true);
    let told: Vec<&Value> = streamed.chunks.iter().map(|chunk| &chunk["usage"]).filter(|u| !u.is_null()).collect();
    assert_eq!(told, [&usage(4)], "{streamed:?}");
}

#[test]
fn a_server_that_ends_without_done_has_its_counts_told_in_one_answer() {
    let streamed = stream_from(&provider_with_usage(false), true);
    assert!(streamed.has_done_event);
    assert!(streamed.chunks.iter().all(|chunk| chunk["id"] == "1"), "{streamed:?}");
    assert_eq!(streamed.chunks.last().unwrap()["usage"]["total_tokens"], 14, "{streamed:?}");
}
