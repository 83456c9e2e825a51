//! Translation to other protocols: every part of a request arrives, or the request is rejected before it is sent.

use serde_json::{Value, json};

use crate::fixture::{Face, error, question, three, with};
use crate::process::request;
use crate::upstream::Upstream;

const OTHERS: [&str; 2] = ["anthropic", "google"];

fn sound() -> Value {
    json!({ "type": "input_audio", "input_audio": { "data": "UklGRg==", "format": "wav" } })
}

fn file(data: &str) -> Value {
    json!({ "type": "file", "file": { "filename": "a.pdf", "file_data": data } })
}

/// A request with this part after its text.
fn showing(model: &str, part: &Value) -> Value {
    let content = json!([{ "type": "text", "text": "What is it?" }, part]);
    json!({ "model": model, "messages": [{ "role": "user", "content": content }] })
}

/// The request is rejected, complete and streamed, with this parameter, and no provider is called.
#[track_caller]
fn refused(upstream: &Upstream, face: &Face, asked: &Value, parameter: &str, named: &str) {
    for stream in [false, true] {
        let reply = face.chat(&with(asked.clone(), json!({ "stream": stream })));
        let error = error(&reply, 400);
        assert_eq!((&error["param"], &error["type"]), (&json!(parameter), &json!("invalid_request_error")), "{error}");
        assert!(error["message"].as_str().unwrap().contains(named), "{named} in {error}");
    }
    assert!(upstream.asked("echo-small").is_empty(), "nothing is sent");
}

#[test]
fn sounds_for_anthropic_are_refused_by_name() {
    let upstream = Upstream::start();
    let face = Face::of_upstream(&upstream);
    refused(&upstream, &face, &showing("anthropic/echo-small", &sound()), "messages", "`input_audio`");
}

#[test]
fn files_that_are_only_named_or_have_no_bytes_are_refused() {
    let upstream = Upstream::start();
    let face = Face::of_upstream(&upstream);
    for format in OTHERS {
        let model = format!("{format}/echo-small");
        let named = json!({ "type": "file", "file": { "file_id": "file-1" } });
        refused(&upstream, &face, &showing(&model, &named), "messages", "`file_id`");
        refused(&upstream, &face, &showing(&model, &file("bare")), "messages", "`file_data`");
    }
    let word = file("data:application/msword;base64,AAAA");
    refused(&upstream, &face, &showing("anthropic/echo-small", &word), "messages", "`application/msword`");
}

#[test]
fn a_part_of_an_unknown_type_is_refused_also_where_there_is_nothing_else() {
    let upstream = Upstream::start();
    let face = Face::of_upstream(&upstream);
    let bogus = json!({ "type": "bogus" });
    for format in OTHERS {
        let model = format!("{format}/echo-small");
        refused(&upstream, &face, &showing(&model, &bogus), "messages", "`bogus`");
        let alone = with(question(&model, ""), json!({ "messages": [{ "role": "user", "content": [bogus] }] }));
        refused(&upstream, &face, &alone, "messages", "`bogus`");
    }
}

#[test]
fn more_than_one_answer_is_refused() {
    let upstream = Upstream::start();
    let face = Face::of_upstream(&upstream);
    for format in OTHERS {
        let asked = question(&format!("{format}/echo-small"), "hello");
        refused(&upstream, &face, &with(asked.clone(), json!({ "n": 2 })), "n", "one answer");
        refused(&upstream, &face, &with(asked.clone(), json!({ "n": "two" })), "n", "`n`");
    }
    for format in OTHERS {
        face.answer(&with(question(&format!("{format}/echo-small"), "hello"), json!({ "n": 1 })));
    }
}

#[test]
fn files_and_sounds_arrive_where_there_is_a_place_for_them() {
    let upstream = Upstream::start();
    let face = Face::of_upstream(&upstream);
    let sent = |asked: &Value| {
        face.answer(asked);
        upstream.asked("echo-small").pop().unwrap()["body"].clone()
    };
    let pdf = file("data:application/pdf;base64,JVBERi0xLjQ=");
    let document = json!({
        "type": "document", "title": "a.pdf",
        "source": { "type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQ=" },
    });
    assert_eq!(sent(&showing("anthropic/echo-small", &pdf))["messages"][0]["content"][1], document);
    for (part, media_type, data) in [(pdf, "application/pdf", "JVBERi0xLjQ="), (sound(), "audio/wav", "UklGRg==")] {
        let inline = json!({ "inlineData": { "mimeType": media_type, "data": data } });
        assert_eq!(sent(&showing("google/echo-small", &part))["contents"][0]["parts"][1], inline);
    }
}

#[test]
fn what_one_provider_cannot_be_told_is_asked_of_the_next_that_has_the_model() {
    let upstream = Upstream::start();
    let mut settings = three(&upstream);
    settings["providers"].as_object_mut().unwrap().shift_remove("google");
    settings["router"] = json!({ "failover": true });
    let face = Face::start(&settings);
    let reply = face.chat(&showing("echo-small", &sound()));
    assert_eq!(reply.status, 200, "{reply:?}");
    let told = (reply.header("x-corbie-provider"), reply.header("x-corbie-attempts"));
    assert_eq!(told, (Some("openai"), Some("2")));
    // An untranslatable request does not count as a provider failure.
    assert_eq!(face.chat(&question("anthropic/echo-small", "hello")).status, 200);
}

#[test]
fn the_tool_of_mcp_refuses_the_same() {
    let upstream = Upstream::start();
    let face = Face::of_upstream(&upstream);
    let arguments = showing("anthropic/echo-small", &sound());
    let called = request(1, "tools/call", json!({ "name": "chat_completion", "arguments": arguments }));
    let result = face.client.post("/mcp", &called).json()["result"].clone();
    assert_eq!(result["isError"], true, "{result}");
    assert!(result.to_string().contains("`input_audio`"), "{result}");
    assert!(upstream.asked("echo-small").is_empty(), "nothing is sent");
}
