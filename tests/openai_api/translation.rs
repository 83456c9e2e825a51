//! Translation to other protocols: every part of a request arrives, or the request is rejected before it is sent.

use serde_json::{Value, json};

use crate::fixture::{ApiServer, chat_request, expect_error, settings_for_each_format, with_members};
use crate::process::request;
use crate::upstream::FakeUpstream;

const TRANSLATED_FORMATS: [&str; 2] = ["anthropic", "google"];

fn audio_part() -> Value {
    json!({ "type": "input_audio", "input_audio": { "data": "UklGRg==", "format": "wav" } })
}

fn file_part(data: &str) -> Value {
    json!({ "type": "file", "file": { "filename": "a.pdf", "file_data": data } })
}

/// A request with this part after its text.
fn request_with_part(model: &str, part: &Value) -> Value {
    let content = json!([{ "type": "text", "text": "What is it?" }, part]);
    json!({ "model": model, "messages": [{ "role": "user", "content": content }] })
}

/// The request is rejected, complete and streamed, with this parameter, and no provider is called.
#[track_caller]
fn assert_unsupported(upstream: &FakeUpstream, face: &ApiServer, asked: &Value, parameter: &str, named: &str) {
    for stream in [false, true] {
        let reply = face.chat(&with_members(asked.clone(), json!({ "stream": stream })));
        let error = expect_error(&reply, 400);
        assert_eq!((&error["param"], &error["type"]), (&json!(parameter), &json!("invalid_request_error")), "{error}");
        assert!(error["message"].as_str().unwrap().contains(named), "{named} in {error}");
    }
    assert!(upstream.requests_for("echo-small").is_empty(), "nothing is sent");
}

#[test]
fn sounds_for_anthropic_are_refused_by_name() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    assert_unsupported(
        &upstream,
        &face,
        &request_with_part("anthropic/echo-small", &audio_part()),
        "messages",
        "`input_audio`",
    );
}

#[test]
fn files_that_are_only_named_or_have_no_bytes_are_refused() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    for format in TRANSLATED_FORMATS {
        let model = format!("{format}/echo-small");
        let named = json!({ "type": "file", "file": { "file_id": "file-1" } });
        assert_unsupported(&upstream, &face, &request_with_part(&model, &named), "messages", "`file_id`");
        assert_unsupported(&upstream, &face, &request_with_part(&model, &file_part("bare")), "messages", "`file_data`");
    }
    let word = file_part("data:application/msword;base64,AAAA");
    assert_unsupported(
        &upstream,
        &face,
        &request_with_part("anthropic/echo-small", &word),
        "messages",
        "`application/msword`",
    );
}

#[test]
fn a_part_of_an_unknown_type_is_refused_also_where_there_is_nothing_else() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    let bogus = json!({ "type": "bogus" });
    for format in TRANSLATED_FORMATS {
        let model = format!("{format}/echo-small");
        assert_unsupported(&upstream, &face, &request_with_part(&model, &bogus), "messages", "`bogus`");
        let alone =
            with_members(chat_request(&model, ""), json!({ "messages": [{ "role": "user", "content": [bogus] }] }));
        assert_unsupported(&upstream, &face, &alone, "messages", "`bogus`");
    }
}

#[test]
fn more_than_one_answer_is_refused() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    for format in TRANSLATED_FORMATS {
        let asked = chat_request(&format!("{format}/echo-small"), "hello");
        assert_unsupported(
            &upstream,
            &face,
            &with_members(asked.clone(), json!({ "n": 2 })),
            "n",
            "`n` greater than 1",
        );
        assert_unsupported(&upstream, &face, &with_members(asked.clone(), json!({ "n": "two" })), "n", "`n`");
    }
    for format in TRANSLATED_FORMATS {
        face.expect_answer(&with_members(chat_request(&format!("{format}/echo-small"), "hello"), json!({ "n": 1 })));
    }
}

#[test]
fn files_and_sounds_arrive_where_there_is_a_place_for_them() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    let sent = |asked: &Value| {
        face.expect_answer(asked);
        upstream.requests_for("echo-small").pop().unwrap()["body"].clone()
    };
    let pdf = file_part("data:application/pdf;base64,JVBERi0xLjQ=");
    let document = json!({
        "type": "document", "title": "a.pdf",
        "source": { "type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQ=" },
    });
    assert_eq!(sent(&request_with_part("anthropic/echo-small", &pdf))["messages"][0]["content"][1], document);
    for (part, media_type, data) in [(pdf, "application/pdf", "JVBERi0xLjQ="), (audio_part(), "audio/wav", "UklGRg==")]
    {
        let inline = json!({ "inlineData": { "mimeType": media_type, "data": data } });
        assert_eq!(sent(&request_with_part("google/echo-small", &part))["contents"][0]["parts"][1], inline);
    }
}

#[test]
fn what_one_provider_cannot_be_told_is_asked_of_the_next_that_has_the_model() {
    let upstream = FakeUpstream::start();
    let mut settings = settings_for_each_format(&upstream);
    settings["providers"].as_object_mut().unwrap().shift_remove("google");
    settings["router"] = json!({ "failover": true });
    let face = ApiServer::start(&settings);
    let reply = face.chat(&request_with_part("echo-small", &audio_part()));
    assert_eq!(reply.status, 200, "{reply:?}");
    let told = (reply.header("x-corbie-provider"), reply.header("x-corbie-attempts"));
    assert_eq!(told, (Some("openai"), Some("2")));
    // An untranslatable request does not count as a provider failure.
    assert_eq!(face.chat(&chat_request("anthropic/echo-small", "hello")).status, 200);
}

#[test]
fn the_tool_of_mcp_refuses_the_same() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    let arguments = request_with_part("anthropic/echo-small", &audio_part());
    let called = request(1, "tools/call", json!({ "name": "chat_completion", "arguments": arguments }));
    let result = face.client.post("/mcp", &called).json()["result"].clone();
    assert_eq!(result["isError"], true, "{result}");
    assert!(result.to_string().contains("`input_audio`"), "{result}");
    assert!(upstream.requests_for("echo-small").is_empty(), "nothing is sent");
}
