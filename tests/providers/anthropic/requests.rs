//! Requests made from chats and from callers' own requests.

use corbie::providers::chat::{Chat, ChatRole, Effort, Message, Reasoning};
use corbie::providers::{Error, UnsupportedParameters, anthropic};
use http::HeaderValue;
use serde_json::{Map, Value, json};

use crate::protocol_fixture::ANTHROPIC;

fn caller(case: &str) -> Map<String, Value> {
    ANTHROPIC.json(&format!("{case}.caller.json"))
}

#[test]
fn only_what_was_changed_is_changed() {
    let mut chat = ANTHROPIC.parse_request(caller("caller")).unwrap();
    chat.model = "claude-opus-5-5".into();
    chat.stream = true;
    chat.messages.insert(0, Message::text(ChatRole::System, "You know colours."));
    let mut expected = Value::Object(caller("caller"));
    expected["model"] = "claude-opus-5-5".into();
    expected["stream"] = true.into();
    expected["system"].as_array_mut().unwrap().insert(0, json!({"type": "text", "text": "You know colours."}));
    assert_eq!(ANTHROPIC.request_body(&chat, UnsupportedParameters::default()), expected);

    let mut chat = ANTHROPIC.parse_request(caller("caller_plain")).unwrap();
    chat.messages.insert(0, Message::text(ChatRole::System, "You know greetings."));
    chat.reasoning = Some(Reasoning::Effort(Effort::Low));
    let mut expected = Value::Object(caller("caller_plain"));
    expected["system"] =
        json!([{"type": "text", "text": "You know greetings."}, {"type": "text", "text": "You are terse."}]);
    expected["thinking"] = json!({"type": "adaptive", "display": "summarized"});
    expected["output_config"] = json!({"effort": "low"});
    expected.as_object_mut().unwrap().remove("temperature");
    assert_eq!(ANTHROPIC.request_body(&chat, UnsupportedParameters::default()), expected);

    chat.messages.pop();
    chat.messages.push(Message::text(ChatRole::User, "Hello"));
    assert_eq!(
        ANTHROPIC.request_body(&chat, UnsupportedParameters::default())["messages"],
        json!([{"role": "user", "content": [{"type": "text", "text": "Hello"}]}])
    );
}

#[test]
fn that_tools_are_called_one_at_a_time_is_changed_in_the_callers_own_choice() {
    let mut chat = ANTHROPIC.parse_request(caller("caller")).unwrap();
    assert_eq!(chat.parallel_tool_calls, Some(false));
    chat.parallel_tool_calls = None;
    assert_eq!(ANTHROPIC.request_body(&chat, UnsupportedParameters::default())["tool_choice"], json!({"type": "auto"}));
}

#[test]
fn what_a_model_refuses_is_left_out() {
    let refuses = UnsupportedParameters {
        temperature: true,
        top_p: true,
        stop: true,
        reasoning: true,
        ..UnsupportedParameters::default()
    };
    let mut expected = caller("caller");
    for member in ["temperature", "top_k", "stop_sequences", "thinking"] {
        expected.remove(member).unwrap();
    }
    expected["output_config"].as_object_mut().unwrap().remove("effort").unwrap();
    assert_eq!(
        ANTHROPIC.request_body(&ANTHROPIC.parse_request(caller("caller")).unwrap(), refuses),
        Value::Object(expected)
    );

    for (case, chat) in ANTHROPIC.cases(".chat.json") {
        let body = ANTHROPIC.request_body(&serde_json::from_slice(&chat).unwrap(), refuses);
        let left = ["temperature", "top_p", "stop_sequences", "thinking"].map(|member| body.get(member));
        assert_eq!(left, [None; 4], "{case}");
        assert_eq!(body.get("output_config").and_then(|config| config.get("effort")), None, "{case}");
    }
}

#[test]
fn a_request_that_is_none_is_refused() {
    for body in [
        json!({}),
        json!({"model": "m"}),
        json!({"model": 1, "messages": []}),
        json!({"model": "m", "messages": {}}),
        json!({"model": "m", "messages": [{"role": "tool", "content": ""}]}),
        json!({"model": "m", "messages": [{"role": "user"}]}),
        json!({"model": "m", "messages": ["hello"]}),
    ] {
        let parsed = ANTHROPIC.parse_request(body.as_object().unwrap().clone());
        assert_eq!(parsed, Err(Error::BadRequest { kind: "invalid_request_error".into() }), "{body}");
    }
}

#[test]
fn s01_the_key_is_in_a_header_that_does_not_print() {
    let chat = Chat { model: "m".into(), ..Chat::default() };
    let mut endpoint = ANTHROPIC.endpoint();
    endpoint.base = "http://127.0.0.1:8080/proxy/".parse().unwrap();
    endpoint.headers.insert("anthropic-beta", HeaderValue::from_static("one,two"));
    let requests = [
        (
            anthropic::request(&chat, &endpoint, UnsupportedParameters::default()).unwrap(),
            "POST",
            "http://127.0.0.1:8080/proxy/v1/messages",
        ),
        (anthropic::models_request(&endpoint), "GET", "http://127.0.0.1:8080/proxy/v1/models?limit=1000"),
        (
            anthropic::models_page(&endpoint, "a&b"),
            "GET",
            "http://127.0.0.1:8080/proxy/v1/models?limit=1000&after_id=a%26b",
        ),
    ];
    for (request, method, uri) in requests {
        assert_eq!((request.method().as_str(), request.uri().to_string().as_str()), (method, uri));
        assert_eq!(request.headers()["x-api-key"], "sk-ant-secret");
        assert_eq!(request.headers()["anthropic-version"], "2023-06-01");
        assert_eq!(request.headers()["anthropic-beta"], "one,two");
        assert!(!format!("{request:?}").contains("secret"));
    }
    endpoint.headers.insert("anthropic-version", HeaderValue::from_static("2026-10-21"));
    assert_eq!(anthropic::models_request(&endpoint).headers()["anthropic-version"], "2026-10-21");
}
