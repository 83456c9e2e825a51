//! Golden tests that apply to every protocol.

use corbie::providers::chat::Protocol;
use corbie::providers::{Chat, UnsupportedParameters};
use serde_json::{Map, Value, json};

use crate::protocol_fixture::{ALL, ProtocolFixture};

/// Unsupported parameters of the model of a case. Most cases show the protocol itself, with a model that supports
/// everything.
fn refused_parameters(player: &ProtocolFixture, case: &str) -> UnsupportedParameters {
    match (player.protocol, case) {
        (Protocol::OpenAi, "reasoning_effort") => UnsupportedParameters {
            temperature: true,
            top_p: true,
            stop: true,
            seed: true,
            old_max_tokens: true,
            ..UnsupportedParameters::default()
        },
        _ => UnsupportedParameters::default(),
    }
}

#[test]
fn a_chat_becomes_its_request() {
    for player in ALL {
        for (case, chat) in player.cases(".chat.json") {
            let chat: Chat = serde_json::from_slice(&chat).unwrap();
            player
                .check(&format!("{case}.request.json"), player.request_body(&chat, refused_parameters(&player, &case)));
        }
    }
}

#[test]
fn a_response_becomes_its_completion_and_is_kept_as_it_came() {
    for player in ALL {
        for (case, body) in player.cases(".response.json") {
            let completion = player.parse_response(200, &[], &body).unwrap();
            let kept = Value::Object(completion.raw.clone().unwrap().body);
            assert_eq!(kept, serde_json::from_slice::<Value>(&body).unwrap(), "{case}");
            player.check(&format!("{case}.completion.json"), completion);
        }
    }
}

#[test]
fn a_stream_becomes_its_deltas_wherever_it_is_cut() {
    for player in ALL {
        for (case, bytes) in player.cases(".stream.txt") {
            let (deltas, complete) = player.decode_stream([bytes.as_slice()]).unwrap();
            assert!(complete, "{case}");
            player.check(&format!("{case}.deltas.json"), &deltas);
            for cut in 0..bytes.len() {
                let (first, second) = bytes.split_at(cut);
                assert_eq!(player.decode_stream([first, second]), Ok((deltas.clone(), true)), "{case} cut at {cut}");
            }
        }
    }
}

#[test]
fn a_callers_request_is_understood_and_goes_on_as_it_came() {
    for player in ALL {
        for (case, body) in player.cases(".caller.json") {
            let caller: Map<String, Value> = serde_json::from_slice(&body).unwrap();
            let chat = player.parse_request(caller.clone()).unwrap();
            player.check(&format!("{case}.typed.json"), &chat);

            let mut expected = Value::Object(caller);
            if player.protocol == Protocol::OpenAi && chat.stream {
                // Usage is always requested.
                expected["stream_options"]["include_usage"] = json!(true);
            }
            assert_eq!(player.request_body(&chat, UnsupportedParameters::default()), expected, "{case}");
        }
    }
}
