//! Callers of the same protocol: unknown members survive at every level.

use corbie::providers::chat::{Chat, ChatRole, Message, Reasoning, ResponseFormat, Tool, ToolChoice};
use corbie::providers::{Error, UnsupportedParameters, google};
use serde_json::{Value, json};

use crate::protocol_fixture::GOOGLE;

fn caller() -> Value {
    GOOGLE.json("unknown_fields.caller.json")
}

fn parsed() -> Chat {
    let Value::Object(body) = caller() else { unreachable!("the file is an object") };
    let mut chat = google::parse(body).unwrap();
    chat.model = "gemini-3-pro".into();
    chat
}

#[test]
fn instructions_in_front_change_only_the_instructions() {
    let mut chat = parsed();
    chat.messages.insert(0, Message::text(ChatRole::System, "You are an expert."));
    let mut expected = caller();
    expected["system_instruction"]["parts"] = json!([{"text": "You are an expert."}, {"text": "Be brief."}]);
    assert_eq!(GOOGLE.request_body(&chat, UnsupportedParameters::default()), expected);

    chat.messages.retain(|message| message.role != ChatRole::System);
    expected.as_object_mut().unwrap().remove("system_instruction");
    assert_eq!(GOOGLE.request_body(&chat, UnsupportedParameters::default()), expected);
}

#[test]
fn a_changed_turn_leaves_the_others_as_they_came() {
    let mut chat = parsed();
    // Instructions are the first message.
    chat.messages[4] = Message::text(ChatRole::Assistant, "Two.");
    let mut expected = caller();
    expected["contents"][3] = json!({"role": "model", "parts": [{"text": "Two."}]});
    assert_eq!(GOOGLE.request_body(&chat, UnsupportedParameters::default()), expected);

    chat.messages.remove(4);
    expected["contents"].as_array_mut().unwrap().remove(3);
    assert_eq!(GOOGLE.request_body(&chat, UnsupportedParameters::default()), expected);
}

#[test]
fn changed_settings_leave_the_others_as_they_came() {
    let mut chat = parsed();
    chat.temperature = None;
    chat.top_p = Some(0.1);
    chat.reasoning = Some(Reasoning::On);
    chat.format = Some(ResponseFormat::Json);
    chat.tool_choice = Some(ToolChoice::Required);
    chat.tools = vec![Tool {
        name: "other".into(),
        description: None,
        schema: json!({"type": "object"}),
        strict: false,
        cache_control: None,
    }];
    let mut expected = caller();
    let settings = expected["generationConfig"].as_object_mut().unwrap();
    settings.remove("temperature");
    settings.remove("responseSchema");
    settings.remove("seed");
    settings["top_p"] = json!(0.1);
    settings["thinkingConfig"] = json!({"includeThoughts": true});
    expected["toolConfig"]["functionCallingConfig"] = json!({"mode": "ANY"});
    expected["tools"] = json!([
        {"codeExecution": {}},
        expected["tools"][1],
        {"functionDeclarations": [{"name": "other", "parametersJsonSchema": {"type": "object"}}]},
    ]);
    assert_eq!(
        GOOGLE.request_body(&chat, UnsupportedParameters { seed: true, ..UnsupportedParameters::default() }),
        expected
    );
}

#[test]
fn a_model_in_the_body_is_replaced() {
    let Value::Object(body) = json!({"model": "models/old", "contents": []}) else { unreachable!() };
    let mut chat = google::parse(body).unwrap();
    assert_eq!(chat.model, "old");
    chat.model = "new".into();
    assert_eq!(
        GOOGLE.request_body(&chat, UnsupportedParameters::default()),
        json!({"model": "models/new", "contents": []})
    );
}

#[test]
fn a_request_without_turns_is_none() {
    for body in [json!({}), json!({"contents": "Hello"}), json!({"contents": null})] {
        let Value::Object(body) = body else { unreachable!() };
        assert_eq!(google::parse(body), Err(Error::BadRequest { kind: "invalid_argument".into() }));
    }
}
