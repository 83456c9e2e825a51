//! What one provider wants back or kept goes through a caller who speaks another protocol.

use serde_json::{Value, json};

use crate::fixture::{Face, question, three, with};
use crate::upstream::Upstream;

/// The fake upstream's.
const SIGNATURE: &str = "ZWNobyBzaWduYXR1cmU=";

fn tools() -> Value {
    json!([{ "type": "function", "function": { "name": "clock", "parameters": { "type": "object" } } }])
}

/// An answer as its message, whole or put together from its pieces as SDKs do it: members that they do not know are
/// taken as they came last.
fn message(face: &Face, asked: &Value, streamed: bool) -> Value {
    if !streamed {
        return face.answer(asked)["choices"][0]["message"].clone();
    }
    let mut message = json!({ "role": "assistant", "content": "" });
    for delta in face.stream(asked).deltas().filter_map(Value::as_object) {
        for (name, value) in delta {
            match (name.as_str(), value) {
                ("content", Value::String(more)) => {
                    message["content"] = (message["content"].as_str().unwrap().to_owned() + more).into();
                }
                ("tool_calls", Value::Array(pieces)) => pieces.iter().for_each(|piece| call(&mut message, piece)),
                (name, value) => message[name] = value.clone(),
            }
        }
    }
    message
}

fn call(message: &mut Value, piece: &Value) {
    if !message["tool_calls"].is_array() {
        message["tool_calls"] = json!([]);
    }
    let calls = message["tool_calls"].as_array_mut().unwrap();
    let index = usize::try_from(piece["index"].as_u64().unwrap()).unwrap();
    if index == calls.len() {
        calls.push(piece.clone());
        return;
    }
    for (name, value) in piece.as_object().unwrap() {
        match name.as_str() {
            "function" => {
                let so_far = calls[index]["function"]["arguments"].as_str().unwrap().to_owned();
                calls[index]["function"]["arguments"] = (so_far + value["arguments"].as_str().unwrap()).into();
            }
            name => calls[index][name] = value.clone(),
        }
    }
}

/// Plays a call and its result, and a text and the next question; gives the turns of the model in the last request.
fn played(upstream: &Upstream, format: &str, streamed: bool) -> (Value, Value) {
    let face = Face::of_upstream(upstream);
    let asked = with(
        question(&format!("{format}/echo-small"), "call clock {\"zone\":\"PET\"}"),
        json!({ "tools": tools(), "reasoning_effort": "low" }),
    );
    let mut turns = asked["messages"].as_array().unwrap().clone();
    let called = message(&face, &asked, streamed);
    let result = json!({ "role": "tool", "tool_call_id": called["tool_calls"][0]["id"], "content": "noon" });
    turns.extend([called, result]);
    let told = message(&face, &with(asked.clone(), json!({ "messages": turns })), streamed);
    turns.extend([told, json!({ "role": "user", "content": "and now?" })]);
    message(&face, &with(asked, json!({ "messages": turns })), streamed);

    let sent = upstream.asked("echo-small").pop().unwrap()["body"].clone();
    match format {
        "anthropic" => (sent["messages"][1]["content"].clone(), sent["messages"][3]["content"].clone()),
        _ => (sent["contents"][1]["parts"].clone(), sent["contents"][3]["parts"].clone()),
    }
}

#[test]
fn anthropics_thinking_goes_back_with_its_signature_where_it_was() {
    let upstream = Upstream::start();
    for streamed in [false, true] {
        let (called, told) = played(&upstream, "anthropic", streamed);
        let thinking = |text: &str| json!({ "type": "thinking", "thinking": text, "signature": SIGNATURE });
        assert_eq!(called[0], thinking("The user says: call clock {\"zone\":\"PET\"}"), "streamed: {streamed}");
        assert_eq!((&called[1]["type"], called.as_array().unwrap().len()), (&json!("tool_use"), 2));
        let text = json!({ "type": "text", "text": "echo: noon" });
        assert_eq!(told, json!([thinking("The user says: noon"), text]), "streamed: {streamed}");
    }
}

#[test]
fn googles_signatures_go_back_on_the_part_they_came_with() {
    let upstream = Upstream::start();
    for streamed in [false, true] {
        let (called, told) = played(&upstream, "google", streamed);
        let parts = called.as_array().unwrap();
        let signed = parts.iter().find(|part| part["functionCall"].is_object()).unwrap();
        assert_eq!(signed["thoughtSignature"], SIGNATURE, "streamed: {streamed}: {called}");
        assert_eq!(parts.iter().filter(|part| part["thoughtSignature"].is_string()).count(), 1, "{called}");
        let told: Vec<&Value> = told.as_array().unwrap().iter().filter(|part| part["thought"] != true).collect();
        match streamed {
            false => assert_eq!(told, [&json!({ "text": "echo: noon", "thoughtSignature": SIGNATURE })]),
            // In a stream it came with an empty text of its own, after all others.
            true => assert_eq!(
                told,
                [&json!({ "text": "echo: noon" }), &json!({ "text": "", "thoughtSignature": SIGNATURE })]
            ),
        }
    }
}

#[test]
fn calls_are_signed_as_googles_own_server_for_this_protocol_signs_them() {
    let upstream = Upstream::start();
    let face = Face::of_upstream(&upstream);
    let asked =
        with(question("google/echo-small", "call clock {}"), json!({ "tools": tools(), "reasoning_effort": "low" }));
    for streamed in [false, true] {
        let called = message(&face, &asked, streamed);
        let proof = &called["tool_calls"][0]["extra_content"];
        assert_eq!(*proof, json!({ "google": { "thought_signature": SIGNATURE } }), "streamed: {streamed}");
    }
}

#[test]
fn an_answer_without_proofs_has_no_place_for_them() {
    let upstream = Upstream::start();
    let face = Face::of_upstream(&upstream);
    for format in ["anthropic", "google"] {
        for streamed in [false, true] {
            let said = message(&face, &question(&format!("{format}/echo-small"), "hello"), streamed);
            assert!(said.get("reasoning_details").is_none(), "{format}: {said}");
        }
    }
}

#[test]
fn marks_for_the_cache_reach_anthropic_on_their_blocks_and_google_not_at_all() {
    let upstream = Upstream::start();
    let face = Face::of_upstream(&upstream);
    let (mark, hour) = (json!({ "type": "ephemeral" }), json!({ "type": "ephemeral", "ttl": "1h" }));
    let asked = json!({
        "messages": [
            { "role": "system", "content": [
                { "type": "text", "text": "A book.", "cache_control": hour }, { "type": "text", "text": "Be brief." },
            ] },
            { "role": "user", "content": "Look." },
            { "role": "assistant", "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "clock", "arguments": "{}" } },
            ] },
            { "role": "tool", "tool_call_id": "c1", "content": [
                { "type": "text", "text": "noon", "cache_control": mark }, { "type": "text", "text": "sharp" },
            ] },
            { "role": "user", "content": [{ "type": "text", "text": "And?", "cache_control": mark }] },
        ],
        "tools": [{ "type": "function", "function": { "name": "clock" }, "cache_control": mark }],
    });
    for (format, streamed) in [("anthropic", false), ("anthropic", true), ("google", false), ("openai", false)] {
        let asked = with(asked.clone(), json!({ "model": format!("{format}/echo-small") }));
        message(&face, &asked, streamed);
        let sent = upstream.asked("echo-small").pop().unwrap()["body"].clone();
        match format {
            "anthropic" => {
                let text = |text: &str| json!({ "type": "text", "text": text });
                let marked = |text: &str, mark: &Value| json!({ "type": "text", "text": text, "cache_control": mark });
                assert_eq!(sent["system"], json!([marked("A book.", &hour), text("Be brief.")]));
                let result = json!({
                    "type": "tool_result", "tool_use_id": "c1", "content": [text("noon"), text("sharp")],
                    "cache_control": mark,
                });
                assert_eq!(sent["messages"][2]["content"], json!([result, marked("And?", &mark)]));
                assert_eq!(sent["tools"][0]["cache_control"], mark);
                assert_eq!(sent.to_string().matches("cache_control").count(), 4);
            }
            "google" => assert!(!sent.to_string().contains("cache_control"), "{sent}"),
            _ => assert_eq!(sent["messages"], asked["messages"], "as it came"),
        }
    }
}

#[test]
fn openai_itself_is_shown_nothing_that_others_signed_and_compatible_servers_everything() {
    let upstream = Upstream::start();
    let mut settings = three(&upstream);
    settings["providers"]["house"] = upstream.provider("openai-compatible");
    let face = Face::start(&settings);
    for format in ["anthropic", "google"] {
        let asked = with(
            question(&format!("{format}/echo-small"), "call clock {}"),
            json!({ "tools": tools(), "reasoning_effort": "low" }),
        );
        let called = message(&face, &asked, false);
        let result = json!({ "role": "tool", "tool_call_id": called["tool_calls"][0]["id"], "content": "noon" });
        let turns = json!([asked["messages"][0], with(called.clone(), json!({ "odd": 7 })), result]);
        let sent_to = |provider: &str| {
            let asked = json!({ "model": format!("{provider}/other"), "messages": turns, "tools": tools() });
            assert_eq!(message(&face, &asked, false)["content"], "echo: noon");
            upstream.asked("other").pop().unwrap()["body"]["messages"].clone()
        };
        assert_eq!(sent_to("house"), turns, "{format}");
        assert!(turns.to_string().contains(SIGNATURE), "{format}");
        let sent = sent_to("openai");
        for foreign in ["reasoning_details", "reasoning_content", "extra_content", SIGNATURE] {
            assert!(!sent.to_string().contains(foreign), "{format}: {sent}");
        }
        assert_eq!((&sent[1]["odd"], &sent[1]["tool_calls"][0]["id"]), (&json!(7), &called["tool_calls"][0]["id"]));
    }
}
