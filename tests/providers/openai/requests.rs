//! Requests made from chats and from callers' own requests.

use corbie::providers::chat::{ChatRole, ContentPart, Message, Protocol, RawBody};
use corbie::providers::{Chat, Endpoint, Error, UnsupportedParameters, openai};
use http::HeaderValue;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::protocol_fixture::OPENAI;

fn caller() -> Map<String, Value> {
    OPENAI.json("caller.caller.json")
}

/// With a header set by the operator.
fn endpoint() -> Endpoint {
    let mut endpoint = OPENAI.endpoint();
    endpoint.headers.insert("x-team", HeaderValue::from_static("red"));
    endpoint
}

#[test]
fn only_what_was_changed_differs_from_a_callers_request() {
    let caller = caller();
    let mut chat = openai::parse(caller.clone()).unwrap();
    chat.model = "gpt-5.6-sol".into();
    chat.messages.insert(0, Message::text(ChatRole::System, "You are an expert of the weather."));
    chat.stream = false;
    let refuses = UnsupportedParameters {
        temperature: true,
        stop: true,
        old_max_tokens: true,
        ..UnsupportedParameters::default()
    };
    let sent = OPENAI.request_body(&chat, refuses);

    let mut expected = Value::Object(caller);
    expected["model"] = json!("gpt-5.6-sol");
    let messages = expected["messages"].as_array_mut().unwrap();
    messages.insert(0, json!({"role": "developer", "content": "You are an expert of the weather."}));
    let members = expected.as_object_mut().unwrap();
    for name in ["stream", "stream_options", "temperature", "stop", "max_tokens"] {
        members.shift_remove(name);
    }
    expected["max_completion_tokens"] = json!(500);
    assert_eq!(sent, expected);
}

#[test]
fn every_typed_member_can_be_changed_in_a_callers_request() {
    let mut caller = caller();
    caller["messages"][0]["role"] = json!("system");
    let raw = openai::parse(caller).unwrap().raw;
    let changed: Chat = OPENAI.json("turns.chat.json");
    let chat = Chat { raw, ..changed.clone() };
    let sent = OPENAI.request_body(&chat, UnsupportedParameters::default());

    let plain = OPENAI.request_body(&changed, UnsupportedParameters::default());
    for (name, value) in plain.as_object().unwrap() {
        assert_eq!(&sent[name], value, "{name}");
    }
    for gone in ["tools", "tool_choice", "response_format", "reasoning_effort", "stream", "stream_options"] {
        assert_eq!(sent.get(gone), None, "{gone}");
    }
    assert_eq!(sent["x_future"], json!({"deep": [1, {"er": null}]}));
}

#[test]
fn a_turn_in_the_middle_is_changed_alone() {
    let caller = caller();
    let mut chat = openai::parse(caller.clone()).unwrap();
    chat.messages[1] = Message::text(ChatRole::User, "Look.");
    let sent = OPENAI.request_body(&chat, UnsupportedParameters::default());
    let mut expected = caller["messages"].clone();
    expected[1] = json!({"role": "user", "content": "Look."});
    assert_eq!(sent["messages"], expected);
}

proptest! {
    #[test]
    fn whatever_turn_is_taken_out_or_put_in_the_others_are_sent(
        messages in prop::collection::vec(any_message(), 2..12), at in 0_usize..12, takes_out in any::<bool>(),
    ) {
        let body = json!({"model": "m", "messages": messages}).as_object().unwrap().clone();
        let mut chat = openai::parse(body).unwrap();
        let at = at % chat.messages.len();
        if !takes_out || chat.messages.len() == 1 {
            chat.messages.insert(at, Message::text(ChatRole::System, "new"));
        } else {
            chat.messages.remove(at);
        }
        let sent = OPENAI.request_body(&chat, UnsupportedParameters::default());
        let read = openai::parse(sent.as_object().unwrap().clone()).unwrap();
        // Separate results may have been merged, so the parts are compared, not the turns.
        let parts = |chat: &Chat| chat.messages.iter().flat_map(|turn| turn.parts.clone()).map(without_name).collect::<Vec<_>>();
        prop_assert_eq!(parts(&read), parts(&chat));
        // Unknown members survive in every original message.
        let came = sent["messages"].as_array().unwrap().iter().filter(|message| message["content"] != "new");
        prop_assert!(came.into_iter().all(|message| message["x_kept"] == true));
    }
}

fn any_message() -> impl Strategy<Value = Value> {
    let of = |message: Value| Just(message).boxed();
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    prop_oneof![
        of(json!({"role": "system", "content": "s", "x_kept": true})),
        of(json!({"role": "user", "content": "u", "x_kept": true})),
        of(json!({"role": "user", "content": "", "x_kept": true})),
        of(json!({"role": "assistant", "content": "a", "tool_calls": [call], "x_kept": true})),
        of(json!({"role": "tool", "tool_call_id": "c", "content": "t", "x_kept": true})),
    ]
}

/// The name of a result is derived from the preceding call, which may have been removed.
fn without_name(part: ContentPart) -> ContentPart {
    match part {
        ContentPart::ToolResult { id, content, is_error, .. } => {
            ContentPart::ToolResult { id, name: None, content, is_error }
        }
        part => part,
    }
}

#[test]
fn a_body_of_another_protocol_is_not_sent() {
    let body_of_another = json!({"messages": [{"role": "user", "content": "Hi"}], "system": "x"});
    let raw = RawBody { protocol: Protocol::Anthropic, body: body_of_another.as_object().unwrap().clone() };
    let chat = Chat {
        model: "gpt-4o".into(),
        messages: vec![Message::text(ChatRole::User, "Hi")],
        raw: Some(raw),
        ..Chat::default()
    };
    let sent = OPENAI.request_body(&chat, UnsupportedParameters::default());
    assert_eq!(sent, json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}]}));
}

#[test]
fn s01_the_key_is_in_a_header_that_does_not_print() {
    let chat = Chat::default();
    for request in
        [openai::request(&chat, &endpoint(), UnsupportedParameters::default()), openai::models_request(&endpoint())]
    {
        assert_eq!(request.headers()["authorization"], "Bearer sk-secret");
        assert_eq!(request.headers()["x-team"], "red");
        assert!(!format!("{request:?}").contains("sk-secret"));
    }
}

#[test]
fn addresses_are_below_the_base_and_keep_its_query() {
    let address = |base: &str| {
        let endpoint = Endpoint { base: base.parse().unwrap(), ..endpoint() };
        let chat = openai::request(&Chat::default(), &endpoint, UnsupportedParameters::default());
        (chat.method().to_string(), chat.uri().to_string(), openai::models_request(&endpoint).uri().to_string())
    };
    let (method, chat, models) = address("https://api.openai.com/v1");
    assert_eq!((&*method, &*chat), ("POST", "https://api.openai.com/v1/chat/completions"));
    assert_eq!(models, "https://api.openai.com/v1/models");
    assert_eq!(address("http://localhost:8080").1, "http://localhost:8080/chat/completions");
    assert_eq!(address("http://localhost:11434/v1/").2, "http://localhost:11434/v1/models");
    assert_eq!(address("https://a.example/o?api-version=1").1, "https://a.example/o/chat/completions?api-version=1");
}

#[test]
fn an_operators_header_replaces_ours() {
    let mut endpoint = endpoint();
    endpoint.headers.insert("authorization", HeaderValue::from_static("Custom x"));
    let request = openai::models_request(&endpoint);
    assert_eq!(request.headers().get_all("authorization").iter().collect::<Vec<_>>(), ["Custom x"]);
}

#[test]
fn a_request_with_a_member_of_a_wrong_type_is_refused_by_its_name() {
    let wrong = [
        ("messages", json!("Hi")),
        ("messages", json!([])),
        ("messages", json!([{"role": "pirate", "content": "Hi"}])),
        ("messages", json!(["Hi"])),
        ("model", json!(4)),
        ("tools", json!({})),
        ("tool_choice", json!("maybe")),
        ("response_format", json!("json")),
        ("max_tokens", json!("many")),
        ("max_completion_tokens", json!(1_u64 << 40)),
        ("temperature", json!("hot")),
        ("top_p", json!([])),
        ("seed", json!(0.5)),
        ("stop", json!([1])),
        ("reasoning_effort", json!(3)),
        ("stream", json!("yes")),
    ];
    for (name, value) in wrong {
        let mut body = caller();
        body.insert(name.into(), value.clone());
        assert_eq!(openai::parse(body), Err(Error::BadRequest { kind: format!("invalid_{name}") }), "{value}");
    }
    assert_eq!(openai::parse(Map::new()), Err(Error::BadRequest { kind: "invalid_messages".into() }));
}

#[test]
fn a_request_may_say_no_limit_and_words_of_tomorrow() {
    let mut body = caller();
    body.insert("max_tokens".into(), json!(-1));
    body.insert("reasoning_effort".into(), json!("cosmic"));
    body.insert("response_format".into(), json!({"type": "haiku"}));
    let chat = openai::parse(body.clone()).unwrap();
    assert_eq!((chat.max_tokens, chat.reasoning, &chat.format), (None, None, &None));
    let sent = OPENAI.request_body(&chat, UnsupportedParameters::default());
    for name in ["max_tokens", "reasoning_effort", "response_format"] {
        assert_eq!(sent[name], body[name]);
    }
}
