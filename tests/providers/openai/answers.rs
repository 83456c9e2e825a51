//! Complete responses, parsed and rendered.

use corbie::providers::chat::StopReason;
use corbie::providers::{Completion, Error, openai};
use serde_json::{Value, json};

use crate::protocol_fixture::OPENAI;

#[test]
fn an_answer_of_openai_is_rendered_as_it_came_under_the_callers_name() {
    let ours = |case: &str| !["ollama", "vllm", "bare"].contains(&case);
    for (case, text) in OPENAI.cases(".response.json").into_iter().filter(|(case, _)| ours(case)) {
        let completion = OPENAI.parse_response(200, &[], &text).unwrap();
        let mut expected: Value = serde_json::from_slice(&text).unwrap();
        expected["model"] = json!("corbie/auto");
        assert_eq!(openai::render(&completion, "corbie/auto", 5), expected, "{case}");
    }
}

#[test]
fn gaps_that_compatible_servers_leave_are_filled_when_rendered() {
    for case in ["ollama", "vllm", "bare"] {
        let text = OPENAI.text(&format!("{case}.response.json"));
        let completion = OPENAI.parse_response(200, &[], text.as_bytes()).unwrap();
        OPENAI.check(&format!("{case}.rendered.json"), openai::render(&completion, "local/model", 1_794_700_900));
    }
}

#[test]
fn an_answer_of_another_protocol_is_rendered_from_what_was_understood() {
    for (case, text) in OPENAI.cases(".foreign.json") {
        let completion: Completion = serde_json::from_slice(&text).unwrap();
        let rendered = openai::render(&completion, "anthropic/claude", 1_794_700_900);
        OPENAI.check(&format!("{case}.rendered.json"), &rendered);

        let again = OPENAI.parse_response(200, &[], rendered.to_string().as_bytes()).unwrap();
        assert_eq!((again.text(), again.stop, again.usage), (completion.text(), completion.stop, completion.usage));
    }
}

#[test]
fn every_other_reason_to_stop_is_kept_in_the_providers_word() {
    let stop = |reason: Value| {
        let body = json!({"choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": reason}]});
        OPENAI.parse_response(200, &[], body.to_string().as_bytes()).unwrap().stop
    };
    assert_eq!(stop(json!("stop")), StopReason::Finished);
    assert_eq!(stop(json!("function_call")), StopReason::Tools);
    assert_eq!(stop(json!("insufficient_system_resource")), StopReason::Other("insufficient_system_resource".into()));
}

#[test]
fn an_answer_that_is_none_is_said_to_be_unreadable() {
    let broken: [&[u8]; 12] = [
        b"",
        b"not json",
        b"<html>502</html>",
        b"null",
        b"[]",
        b"{}",
        b"{\"choices\":null}",
        b"{\"choices\":[]}",
        b"{\"choices\":[7]}",
        b"{\"choices\":[{\"index\":0}]}",
        b"{\"choices\":[{\"index\":0,\"message\":\"hello\"}]}",
        b"{\"choices\":[{\"index\":0,\"message\":{\"content\":\"hel",
    ];
    for body in broken {
        let error = OPENAI.parse_response(200, &[], body).unwrap_err();
        assert!(matches!(error, Error::InvalidResponse(_)), "{error:?}: {}", String::from_utf8_lossy(body));
    }
    let deep = format!("{{\"choices\":{}", "[".repeat(100_000));
    assert!(matches!(OPENAI.parse_response(200, &[], deep.as_bytes()), Err(Error::InvalidResponse(_))));
}

#[test]
fn members_of_wrong_types_are_as_good_as_missing() {
    let body = json!({"id": 7, "model": [], "usage": "much", "choices": [{"index": 0, "finish_reason": 3, "message": {
        "content": 12, "refusal": [], "reasoning": {}, "tool_calls": [3, {}, {"function": 1}, {"function": {"name": 2}}],
    }}]});
    let completion = OPENAI.parse_response(200, &[], body.to_string().as_bytes()).unwrap();
    assert_eq!(Completion { raw: None, ..completion }, Completion::default());
}
