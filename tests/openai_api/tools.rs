//! Tool calls and results.

use serde_json::{Value, json};

use crate::fixture::{ApiServer, chat_request, with_members};
use crate::upstream::{FORMATS, FakeUpstream};

const CALL: &str = r#"call weather {"place":"Lima"} call clock {"zone":"PET"}"#;

fn tools() -> Value {
    let tool = |name: &str, member: &str| {
        let schema = json!({ "type": "object", "properties": { member: { "type": "string" } }, "required": [member] });
        json!({ "type": "function", "function": { "name": name, "description": "Tells it", "parameters": schema } })
    };
    json!([tool("weather", "place"), tool("clock", "zone")])
}

/// The calls as names and arguments.
fn named_calls(calls: &Value) -> Vec<(String, Value)> {
    let calls = calls.as_array().unwrap_or_else(|| panic!("no calls: {calls}"));
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned();
    calls
        .iter()
        .map(|call| {
            assert_eq!(call["type"], "function", "{call}");
            assert_ne!(text(&call["id"]), "", "{call}");
            let arguments = text(&call["function"]["arguments"]);
            (text(&call["function"]["name"]), serde_json::from_str(&arguments).unwrap())
        })
        .collect()
}

fn expected_calls() -> Vec<(String, Value)> {
    vec![("weather".into(), json!({ "place": "Lima" })), ("clock".into(), json!({ "zone": "PET" }))]
}

/// The calls of a stream, assembled like in the SDKs.
fn assemble_calls<'a>(deltas: impl Iterator<Item = &'a Value>) -> Value {
    let mut calls: Vec<Value> = Vec::new();
    for piece in deltas.filter_map(|delta| delta["tool_calls"].as_array()).flatten() {
        let index = usize::try_from(piece["index"].as_u64().unwrap()).unwrap();
        assert!(index <= calls.len(), "calls begin in order: {piece}");
        if index == calls.len() {
            calls.push(piece.clone());
            continue;
        }
        assert!(piece.get("id").is_none(), "an id is told once: {piece}");
        let more = piece["function"]["arguments"].as_str().unwrap_or_default();
        let so_far = calls[index]["function"]["arguments"].as_str().unwrap_or_default().to_owned();
        calls[index]["function"]["arguments"] = (so_far + more).into();
    }
    calls.into()
}

#[test]
fn calls_of_tools_and_their_results_go_round_in_every_wire_format() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    for format in FORMATS {
        let model = format!("{format}/echo-small");
        let asked = with_members(chat_request(&model, CALL), json!({ "tools": tools(), "tool_choice": "auto" }));
        let choice = face.expect_answer(&asked)["choices"][0].clone();
        assert_eq!(choice["finish_reason"], "tool_calls", "{format}");
        assert_eq!(choice["message"]["content"], Value::Null, "{format}");
        let calls = &choice["message"]["tool_calls"];
        assert_eq!(named_calls(calls), expected_calls(), "{format}");
        assert_ne!(calls[0]["id"], calls[1]["id"], "{format}");

        let result =
            |index: usize, text: &str| json!({ "role": "tool", "tool_call_id": calls[index]["id"], "content": text });
        let mut messages = asked["messages"].as_array().unwrap().clone();
        messages.extend([choice["message"].clone(), result(0, "rain"), result(1, "noon")]);
        let answer = face.expect_answer(&with_members(asked, json!({ "messages": messages })));
        assert_eq!(answer["choices"][0]["message"]["content"], "echo: rain\nnoon", "{format}");
        assert_eq!(answer["choices"][0]["finish_reason"], "stop", "{format}");
    }
}

#[test]
fn calls_of_tools_come_in_pieces_in_every_wire_format() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    for format in FORMATS {
        let asked = with_members(chat_request(&format!("{format}/echo-small"), CALL), json!({ "tools": tools() }));
        let streamed = face.stream(&asked);
        assert_eq!(named_calls(&assemble_calls(streamed.deltas())), expected_calls(), "{format}");
        assert_eq!((streamed.finish_reasons(), streamed.has_done_event), (vec!["tool_calls"], true), "{format}");
    }
}
