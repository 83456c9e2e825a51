//! Provider-specific data, such as signatures, survives a round trip through a client of another protocol.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::fixture::{ApiServer, chat_request, settings_for_each_format, with_members};
use crate::upstream::FakeUpstream;

/// The signature of a model of the mock upstream, which rejects every other one.
fn signature(model: &str) -> String {
    STANDARD.encode(format!("signature of {model}"))
}

fn tools() -> Value {
    json!([{ "type": "function", "function": { "name": "clock", "parameters": { "type": "object" } } }])
}

/// The message of a response, complete or assembled from a stream like in the SDKs: the last value of an unknown member
/// wins.
fn complete_message(face: &ApiServer, asked: &Value, streamed: bool) -> Value {
    if !streamed {
        return face.expect_answer(asked)["choices"][0]["message"].clone();
    }
    let mut message = json!({ "role": "assistant", "content": "" });
    for delta in face.stream(asked).deltas().filter_map(Value::as_object) {
        for (name, value) in delta {
            match (name.as_str(), value) {
                ("content", Value::String(more)) => {
                    message["content"] = (message["content"].as_str().unwrap().to_owned() + more).into();
                }
                ("tool_calls", Value::Array(pieces)) => {
                    pieces.iter().for_each(|piece| merge_tool_call(&mut message, piece))
                }
                (name, value) => message[name] = value.clone(),
            }
        }
    }
    message
}

fn merge_tool_call(message: &mut Value, piece: &Value) {
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

/// Plays a tool call with its result, then a text with the next question; returns the model's turns in the last
/// request.
fn replayed_turns(upstream: &FakeUpstream, format: &str, streamed: bool) -> (Value, Value) {
    let face = ApiServer::with_upstream(upstream);
    let asked = with_members(
        chat_request(&format!("{format}/echo-small"), "call clock {\"zone\":\"PET\"}"),
        json!({ "tools": tools(), "reasoning_effort": "low" }),
    );
    let mut turns = asked["messages"].as_array().unwrap().clone();
    let called = complete_message(&face, &asked, streamed);
    let result = json!({ "role": "tool", "tool_call_id": called["tool_calls"][0]["id"], "content": "noon" });
    turns.extend([called, result]);
    let told = complete_message(&face, &with_members(asked.clone(), json!({ "messages": turns })), streamed);
    turns.extend([told, json!({ "role": "user", "content": "and now?" })]);
    complete_message(&face, &with_members(asked, json!({ "messages": turns })), streamed);

    let sent = upstream.requests_for("echo-small").pop().unwrap()["body"].clone();
    match format {
        "anthropic" => (sent["messages"][1]["content"].clone(), sent["messages"][3]["content"].clone()),
        _ => (sent["contents"][1]["parts"].clone(), sent["contents"][3]["parts"].clone()),
    }
}

#[test]
fn anthropics_thinking_goes_back_with_its_signature_where_it_was() {
    let upstream = FakeUpstream::start();
    for streamed in [false, true] {
        let (called, told) = replayed_turns(&upstream, "anthropic", streamed);
        let thinking =
            |text: &str| json!({ "type": "thinking", "thinking": text, "signature": signature("echo-small") });
        assert_eq!(called[0], thinking("The user says: call clock {\"zone\":\"PET\"}"), "streamed: {streamed}");
        assert_eq!((&called[1]["type"], called.as_array().unwrap().len()), (&json!("tool_use"), 2));
        let text = json!({ "type": "text", "text": "echo: noon" });
        assert_eq!(told, json!([thinking("The user says: noon"), text]), "streamed: {streamed}");
    }
}

#[test]
fn googles_signatures_go_back_on_the_part_they_came_with() {
    let upstream = FakeUpstream::start();
    for streamed in [false, true] {
        let (called, told) = replayed_turns(&upstream, "google", streamed);
        let parts = called.as_array().unwrap();
        let signed = parts.iter().find(|part| part["functionCall"].is_object()).unwrap();
        assert_eq!(signed["thoughtSignature"], signature("echo-small"), "streamed: {streamed}: {called}");
        assert_eq!(parts.iter().filter(|part| part["thoughtSignature"].is_string()).count(), 1, "{called}");
        let told: Vec<&Value> = told.as_array().unwrap().iter().filter(|part| part["thought"] != true).collect();
        match streamed {
            false => assert_eq!(told, [&json!({ "text": "echo: noon", "thoughtSignature": signature("echo-small") })]),
            // In a stream the signature arrives with an empty text after all other parts.
            true => assert_eq!(
                told,
                [&json!({ "text": "echo: noon" }), &json!({ "text": "", "thoughtSignature": signature("echo-small") })]
            ),
        }
    }
}

#[test]
fn calls_are_signed_as_googles_own_server_for_this_protocol_signs_them() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    let asked = with_members(
        chat_request("google/echo-small", "call clock {}"),
        json!({ "tools": tools(), "reasoning_effort": "low" }),
    );
    for streamed in [false, true] {
        let called = complete_message(&face, &asked, streamed);
        let proof = &called["tool_calls"][0]["extra_content"];
        let google = json!({ "thought_signature": signature("echo-small") });
        let expected = json!({ "google": google, "signed_by": ["google/echo-small"] });
        assert_eq!(*proof, expected, "streamed: {streamed}");
    }
}

#[test]
fn an_answer_without_proofs_has_no_place_for_them() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    for format in ["anthropic", "google"] {
        for streamed in [false, true] {
            let said = complete_message(&face, &chat_request(&format!("{format}/echo-small"), "hello"), streamed);
            assert!(said.get("reasoning_details").is_none(), "{format}: {said}");
        }
    }
}

#[test]
fn marks_for_the_cache_reach_anthropic_on_their_blocks_and_google_not_at_all() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
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
        let asked = with_members(asked.clone(), json!({ "model": format!("{format}/echo-small") }));
        complete_message(&face, &asked, streamed);
        let sent = upstream.requests_for("echo-small").pop().unwrap()["body"].clone();
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
fn openai_and_compatible_servers_are_shown_nothing_that_others_signed() {
    let upstream = FakeUpstream::start();
    let mut settings = settings_for_each_format(&upstream);
    settings["providers"]["house"] = upstream.provider("openai-compatible");
    let face = ApiServer::start(&settings);
    for format in ["anthropic", "google"] {
        let asked = with_members(
            chat_request(&format!("{format}/echo-small"), "call clock {}"),
            json!({ "tools": tools(), "reasoning_effort": "low" }),
        );
        let called = complete_message(&face, &asked, false);
        let result = json!({ "role": "tool", "tool_call_id": called["tool_calls"][0]["id"], "content": "noon" });
        let turns = json!([asked["messages"][0], with_members(called.clone(), json!({ "odd": 7 })), result]);
        let sent_to = |provider: &str| {
            let asked = json!({ "model": format!("{provider}/other"), "messages": turns, "tools": tools() });
            assert_eq!(complete_message(&face, &asked, false)["content"], "echo: noon");
            upstream.requests_for("other").pop().unwrap()["body"]["messages"].clone()
        };
        assert!(turns.to_string().contains(&signature("echo-small")), "{format}");
        for provider in ["house", "openai"] {
            let sent = sent_to(provider);
            for foreign in ["reasoning_details", "reasoning_content", "extra_content", &signature("echo-small")] {
                assert!(!sent.to_string().contains(foreign), "{format} to {provider}: {sent}");
            }
            let (odd, id) = (&sent[1]["odd"], &sent[1]["tool_calls"][0]["id"]);
            assert_eq!((odd, id), (&json!(7), &called["tool_calls"][0]["id"]), "{format} to {provider}");
        }
    }
}

/// A provider of each wire format, and a compatible server that signs.
fn server_with_four_providers(upstream: &FakeUpstream) -> ApiServer {
    let mut settings = settings_for_each_format(upstream);
    settings["providers"]["house"] = upstream.provider("openai-compatible");
    ApiServer::start(&settings)
}

/// A conversation in which one model calls a tool, another reads the result, and the first continues. Returns the last
/// two requests: to the second model and to the first.
fn switch_models(
    face: &ApiServer,
    upstream: &FakeUpstream,
    provider: &str,
    models: [&str; 2],
    streamed: bool,
) -> [Value; 2] {
    let asked = |model: &str, turns: &[Value]| {
        let model = format!("{provider}/{model}");
        let asked = json!({ "model": model, "messages": turns, "tools": tools(), "reasoning_effort": "low" });
        complete_message(face, &asked, streamed)
    };
    let sent = |model: &str| upstream.requests_for(model).pop().unwrap()["body"].clone();
    let mut turns = vec![json!({ "role": "user", "content": "call clock {\"zone\":\"PET\"}" })];
    let called = asked(models[0], &turns);
    let result = json!({ "role": "tool", "tool_call_id": called["tool_calls"][0]["id"], "content": "noon" });
    assert!(called.to_string().contains(&signature(models[0])), "{called}");
    turns.extend([called, result]);
    let told = asked(models[1], &turns);
    assert_eq!(told["content"], "echo: noon");
    let to_second = sent(models[1]);
    turns.extend([told, json!({ "role": "user", "content": "and now?" })]);
    assert_eq!(asked(models[0], &turns)["content"], "echo: and now?");
    [to_second, sent(models[0])]
}

#[test]
fn a_conversation_that_moves_to_another_model_leaves_signatures_behind_and_finds_them_on_its_return() {
    let upstream = FakeUpstream::start();
    let face = server_with_four_providers(&upstream);
    for (provider, models) in [
        ("anthropic", ["echo-small", "echo-large"]),
        ("google", ["echo-small", "echo-large"]),
        ("house", ["signing-small", "signing-large"]),
    ] {
        for streamed in [false, true] {
            // The mock upstream rejects foreign signatures, so two responses are most of the proof.
            let [second, first] =
                switch_models(&face, &upstream, provider, models, streamed).map(|sent| sent.to_string());
            let [own, other] = models.map(signature);
            assert!(!second.contains(&own), "{provider}, streamed {streamed}: {second}");
            assert!(first.contains(&own) && !first.contains(&other), "{provider}, streamed {streamed}: {first}");
        }
    }
}

#[test]
fn calls_of_another_gemini_are_marked_as_unsigned() {
    let upstream = FakeUpstream::start();
    let face = server_with_four_providers(&upstream);
    for streamed in [false, true] {
        let models = ["gemini-3-small", "gemini-3-large"];
        let [second, first] = switch_models(&face, &upstream, "google", models, streamed);
        let signature_of_call = |sent: &Value| {
            let parts = sent["contents"][1]["parts"].as_array().unwrap().iter();
            parts.clone().find(|part| part["functionCall"].is_object()).unwrap()["thoughtSignature"].clone()
        };
        assert_eq!(signature_of_call(&second), "skip_thought_signature_validator", "{second}");
        assert_eq!(signature_of_call(&first), signature(models[0]), "{first}");
    }
}

#[test]
fn a_budget_for_thinking_is_left_out_where_another_claude_thought_before_the_last_call() {
    let upstream = FakeUpstream::start();
    let face = server_with_four_providers(&upstream);
    for streamed in [false, true] {
        // These two models accept only budgets, and with a budget a turn that calls tools must begin with its thinking.
        let [second, first] =
            switch_models(&face, &upstream, "anthropic", ["claude-sonnet-4-5", "claude-haiku-4-5"], streamed);
        assert!(second.get("thinking").is_none(), "{second}");
        assert_eq!(second["messages"][1]["content"][0]["type"], "tool_use", "{second}");
        assert_eq!(first["thinking"]["type"], "enabled", "{first}");
        assert_eq!(first["messages"][1]["content"][0]["type"], "thinking", "{first}");
    }
}

#[test]
fn a_signature_that_names_no_model_is_not_sent() {
    let upstream = FakeUpstream::start();
    let face = server_with_four_providers(&upstream);
    for provider in ["anthropic", "google"] {
        let asked = with_members(
            chat_request(&format!("{provider}/echo-small"), "call clock {}"),
            json!({ "tools": tools(), "reasoning_effort": "low" }),
        );
        let mut called = complete_message(&face, &asked, false);
        let calls = called["tool_calls"].as_array_mut().unwrap();
        let proofs = calls.iter_mut().map(|call| &mut call["extra_content"]);
        proofs.filter_map(Value::as_object_mut).for_each(|proof| drop(proof.remove("signed_by")));
        for detail in called["reasoning_details"].as_array_mut().into_iter().flatten() {
            detail["extra_content"].as_object_mut().unwrap().remove("signed_by").unwrap();
        }
        let result = json!({ "role": "tool", "tool_call_id": called["tool_calls"][0]["id"], "content": "noon" });
        let turns = json!([asked["messages"][0], called, result]);
        complete_message(&face, &with_members(asked, json!({ "messages": turns })), false);
        let sent = upstream.requests_for("echo-small").pop().unwrap()["body"].to_string();
        assert!(!sent.contains(&signature("echo-small")), "{provider}: {sent}");
    }
}
