//! A response of another protocol, rendered for an OpenAI caller, returned in the next turn and sent again: data
//! required by its provider is in its original position.

use corbie::providers::openai::{self, Encoder};
use corbie::providers::{Delta, UnsupportedParameters};
use serde_json::{Map, Value, json};

use crate::protocol_fixture::{ANTHROPIC, GOOGLE, ProtocolFixture};

/// The model's turn as sent back to its provider.
fn returned_turn(player: &ProtocolFixture, message: &Value) -> Value {
    let body = json!({"model": "any", "messages": [{"role": "user", "content": "Go."}, message]});
    let Value::Object(body) = body else { unreachable!("it is written as an object") };
    let chat = openai::parse(body).unwrap();
    let sent = player.request_body(&chat, UnsupportedParameters::default());
    sent.pointer("/messages/1/content").or(sent.pointer("/contents/1/parts")).unwrap_or(&json!([])).clone()
}

/// All signatures in order, with the kind of their block.
fn signatures(blocks: &Value) -> Vec<(String, String)> {
    let kind = |block: &Map<String, Value>| {
        let named = block.get("type").and_then(Value::as_str);
        let part = || ["functionCall", "thought", "text"].into_iter().find(|name| block.contains_key(*name));
        named.or_else(part).unwrap_or_default().to_owned()
    };
    let proof = |block: &Value| {
        let proof = ["signature", "data", "thoughtSignature", "caller"].iter().find_map(|name| block.get(name))?;
        Some((kind(block.as_object()?), proof.to_string()))
    };
    blocks.as_array().unwrap().iter().filter_map(proof).collect()
}

#[test]
fn proofs_of_whole_answers_go_back_on_the_blocks_they_came_with() {
    let mut proven = 0;
    for player in [ANTHROPIC, GOOGLE] {
        for (case, body) in player.cases(".response.json") {
            let came: Value = serde_json::from_slice(&body).unwrap();
            let came = came.get("content").or(came.pointer("/candidates/0/content/parts"));
            // Pictures and server-side tools have no representation in OpenAI's responses, nor have their signatures.
            let Some(came) = came.filter(|_| !["picture_answer", "server_tool"].contains(&&*case)) else { continue };
            let completion = player.parse_response(200, &[], &body).unwrap();
            let rendered = openai::render(&completion, "any", 5);
            let went = returned_turn(&player, &rendered["choices"][0]["message"]);
            assert_eq!(signatures(&went), signatures(came), "{case}: {went}");
            proven += signatures(came).len();
        }
    }
    assert!(proven > 4, "{proven}");
}

#[test]
fn thinking_after_a_text_stays_after_it() {
    let thinking = |text: &str| json!({"type": "thinking", "thinking": text, "signature": format!("of {text}")});
    let content = json!([
        thinking("first"),
        {"type": "redacted_thinking", "data": "hidden"},
        {"type": "text", "text": "I look."},
        thinking("then"),
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "it"}},
    ]);
    let answer = json!({"id": "msg_1", "model": "claude", "content": content, "stop_reason": "tool_use"});
    let completion = ANTHROPIC.parse_response(200, &[], answer.to_string().as_bytes()).unwrap();
    let message = openai::render(&completion, "any", 5)["choices"][0]["message"].clone();
    assert_eq!(returned_turn(&ANTHROPIC, &message), content);
    // No other provider receives it.
    assert!(!returned_turn(&GOOGLE, &message).to_string().contains("hidden"));
}

/// The message that an SDK assembles from a stream: lists of unknown members are taken as a whole.
fn assemble_message(deltas: &[Delta]) -> Value {
    let mut encoder = Encoder::new("any", 5, false);
    let mut out = Vec::new();
    deltas.iter().for_each(|delta| encoder.delta(delta, &mut out));
    let mut message = json!({"role": "assistant", "content": "", "tool_calls": []});
    for data in String::from_utf8(out).unwrap().split("\n\n").filter_map(|event| event.strip_prefix("data: ")) {
        let chunk: Value = serde_json::from_str(data).unwrap();
        for (name, value) in chunk["choices"][0]["delta"].as_object().unwrap() {
            match (name.as_str(), value) {
                ("content", value) => {
                    let so_far = message["content"].as_str().unwrap().to_owned();
                    message["content"] = (so_far + value.as_str().unwrap()).into();
                }
                ("tool_calls", pieces) => {
                    for piece in pieces.as_array().unwrap() {
                        assert!(piece["function"]["arguments"].is_string(), "SDKs want it in every piece: {piece}");
                        let calls = message["tool_calls"].as_array_mut().unwrap();
                        let index = usize::try_from(piece["index"].as_u64().unwrap()).unwrap();
                        match piece.get("extra_content") {
                            Some(proof) => calls[index]["extra_content"] = proof.clone(),
                            None if index == calls.len() => calls.push(piece.clone()),
                            None => {}
                        }
                    }
                }
                (name, value) => message[name] = value.clone(),
            }
        }
    }
    message
}

#[test]
fn proofs_of_streams_go_back_on_the_blocks_they_came_with() {
    let mut proven = 0;
    for player in [ANTHROPIC, GOOGLE] {
        for (case, bytes) in player.cases(".stream.txt") {
            let (deltas, _) = player.decode_stream([&*bytes]).unwrap();
            let came = deltas.iter().filter(|delta| matches!(delta, Delta::Proof { .. })).count();
            let went = returned_turn(&player, &assemble_message(&deltas));
            assert_eq!(signatures(&went).len(), came, "{case}: {went}");
            proven += came;
        }
    }
    assert!(proven > 4, "{proven}");
}

#[test]
fn marks_for_the_cache_reach_anthropic_and_nobody_else() {
    let caller: Map<String, Value> = crate::protocol_fixture::OPENAI.json("cache_marks.caller.json");
    let chat = openai::parse(caller).unwrap();
    let sent = ANTHROPIC.request_body(&chat, UnsupportedParameters::default());
    ANTHROPIC.check("cache_marks.crossed.json", &sent);
    assert!(!GOOGLE.request_body(&chat, UnsupportedParameters::default()).to_string().contains("cache_control"));
}
