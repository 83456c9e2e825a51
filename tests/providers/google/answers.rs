//! Complete and streamed responses, and the parts sent back in later turns.

use corbie::providers::chat::{Chat, ChatRole, ContentPart, Message};
use corbie::providers::{Delta, UnsupportedParameters};
use serde_json::Value;

use crate::protocol_fixture::GOOGLE;

#[test]
fn a_stream_without_a_reason_for_its_end_is_not_complete() {
    for (case, bytes) in GOOGLE.cases(".stream.txt") {
        let reason = ["\"finishReason\"", "\"blockReason\""];
        let text = std::str::from_utf8(&bytes).unwrap();
        let end = reason.iter().find_map(|reason| text.find(*reason)).unwrap();
        for cut in 0..end {
            assert!(!GOOGLE.decode_stream([&bytes[..cut]]).unwrap().1, "{case} cut at {cut}");
        }
    }
    // A finish reason followed by more text does not count.
    let event = |reason: &str| format!("data: {{\"candidates\":[{{\"content\":{{}}{reason}}}]}}\n\n");
    let stream = event(",\"finishReason\":\"STOP\"") + &event("");
    assert!(!GOOGLE.decode_stream([stream.as_bytes()]).unwrap().1);
}

#[test]
fn a_model_that_gives_a_reason_with_every_piece_stops_once_and_at_the_end() {
    let event = |text: &str, tokens: u64| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{text}\"}}]}},\"finishReason\":\"STOP\"}}],\
             \"usageMetadata\":{{\"promptTokenCount\":3,\"candidatesTokenCount\":{tokens}}}}}\n\n"
        )
    };
    let stream = event("Li", 1) + &event("ma", 2);
    let (deltas, is_complete) = GOOGLE.decode_stream([stream.as_bytes()]).unwrap();
    assert!(is_complete);
    let [Delta::Started { .. }, Delta::Text { .. }, Delta::Text { .. }, Delta::Stopped { .. }, Delta::Used { usage }] =
        &deltas[..]
    else {
        panic!("{deltas:?}");
    };
    assert_eq!(usage.completion, 2, "all tokens are counted with every piece");
}

#[test]
fn an_answer_goes_back_to_the_model_part_by_part_as_it_came() {
    for (case, body) in GOOGLE.cases(".response.json") {
        let completion = GOOGLE.parse_response(200, &[], &body).unwrap();
        let mut body: Value = serde_json::from_slice(&body).unwrap();
        let Some(came) = body.pointer_mut("/candidates/0/content/parts").map(Value::take) else { continue };
        let messages = vec![
            Message::text(ChatRole::User, "Go."),
            Message { role: ChatRole::Assistant, parts: completion.parts.clone() },
        ];
        let chat = Chat { model: "gemini-2.5-flash".into(), messages, ..Chat::default() };
        let mut went = GOOGLE.request_body(&chat, UnsupportedParameters::default())["contents"][1]["parts"].take();
        // If the response had no ids or arguments, corbie generated them.
        for (went, came) in went.as_array_mut().unwrap().iter_mut().zip(came.as_array().unwrap()) {
            if let Some(call) = went.get_mut("functionCall").and_then(Value::as_object_mut) {
                call.retain(|name, _| came["functionCall"].get(name).is_some());
            }
        }
        assert_eq!(went, came, "{case}");
    }
}

#[test]
fn calls_without_ids_get_the_same_ids_from_an_answer_and_from_its_stream() {
    let body = GOOGLE.text("calls_without_ids.response.json");
    let ids = |part: &ContentPart| match part {
        ContentPart::ToolCall { id, .. } => Some(id.clone()),
        _ => None,
    };
    let whole: Vec<_> =
        GOOGLE.parse_response(200, &[], body.as_bytes()).unwrap().parts.iter().filter_map(ids).collect();
    let stream = GOOGLE.text("calls_without_ids.stream.txt");
    let pieces = GOOGLE.decode_stream([stream.as_bytes()]).unwrap().0.into_iter().filter_map(|delta| match delta {
        Delta::ToolCall { id, .. } => Some(id),
        _ => None,
    });
    assert_eq!(whole, pieces.collect::<Vec<_>>());
    assert_ne!(whole[0], whole[1]);
}
