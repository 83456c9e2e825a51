//! URLs, headers, pagination of models, and unsupported parameters.

use corbie::providers::chat::{Chat, ChatRole, ContentPart, Message, Reasoning, ToolChoice};
use corbie::providers::{Error, UnsupportedParameters, google};
use http::HeaderValue;
use serde_json::json;

use crate::protocol_fixture::GOOGLE;

fn plain(model: &str, stream: bool) -> Chat {
    Chat { model: model.into(), messages: vec![Message::text(ChatRole::User, "Hello")], stream, ..Chat::default() }
}

fn address(base: &str, chat: &Chat) -> String {
    google::request(chat, &GOOGLE.endpoint_at(base), UnsupportedParameters::default()).unwrap().uri().to_string()
}

#[test]
fn the_model_and_the_stream_are_in_the_address() {
    const BASE: &str = "https://generativelanguage.googleapis.com";
    let check = |base: &str, model: &str, stream, expected: &str| {
        assert_eq!(address(base, &plain(model, stream)), format!("{BASE}{expected}"));
    };
    check(BASE, "gemini-3-pro", false, "/v1beta/models/gemini-3-pro:generateContent");
    check(BASE, "models/gemini-3-pro", true, "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse");
    check(BASE, "tunedModels/mine", false, "/v1beta/tunedModels/mine:generateContent");
    check(&format!("{BASE}/v1beta/"), "a", false, "/v1beta/models/a:generateContent");
    check(&format!("{BASE}/v1alpha"), "a", false, "/v1alpha/models/a:generateContent");
    check(&format!("{BASE}/proxy"), "a", false, "/proxy/v1beta/models/a:generateContent");
    check(BASE, "../../x?key=1#y z", false, "/v1beta/models/..%2F..%2Fx%3Fkey=1%23y%20z:generateContent");
}

#[test]
fn z11_the_key_is_in_a_header_that_is_not_shown_and_never_in_the_address() {
    let mut endpoint = GOOGLE.endpoint_at("https://generativelanguage.googleapis.com?key=AIza-secret");
    endpoint.headers.insert("x-team", HeaderValue::from_static("a"));
    endpoint.headers.insert("content-type", HeaderValue::from_static("application/json; charset=utf-8"));
    let requests = [
        google::request(&plain("gemini-3-pro", true), &endpoint, UnsupportedParameters::default()).unwrap(),
        google::models_request(&endpoint),
        google::models_page(&endpoint, "next"),
    ];
    for request in requests {
        assert_eq!(request.headers()["x-goog-api-key"], "AIza-secret");
        assert!(request.headers()["x-goog-api-key"].is_sensitive());
        assert_eq!(request.headers()["x-team"], "a");
        assert_eq!(request.headers()["content-type"], "application/json; charset=utf-8");
        assert!(!request.uri().to_string().contains("key="), "{}", request.uri());
        assert!(!format!("{request:?}").contains("AIza-secret"));
    }
}

#[test]
fn models_come_in_pages_without_their_prefix_and_only_those_that_answer() {
    let endpoint = GOOGLE.endpoint_at("https://generativelanguage.googleapis.com");
    let uri = |request: corbie::providers::HttpRequest| request.uri().path_and_query().unwrap().to_string();
    assert_eq!(uri(google::models_request(&endpoint)), "/v1beta/models?pageSize=1000");
    assert_eq!(uri(google::models_page(&endpoint, "a&b=")), "/v1beta/models?pageSize=1000&pageToken=a%26b%3D");

    let page = json!({
        "models": [
            {
                "name": "models/gemini-3-flash-preview", "version": "3-flash-preview", "displayName": "Gemini 3 Flash",
                "inputTokenLimit": 1048576, "outputTokenLimit": 65536, "thinking": true,
                "supportedGenerationMethods": ["generateContent", "countTokens"],
            },
            {"name": "models/gemini-embedding-001", "supportedGenerationMethods": ["embedContent"]},
            {"name": "tunedModels/mine"},
            {"displayName": "nameless"},
        ],
        "nextPageToken": "CAUQ",
    });
    let (models, next) = GOOGLE.parse_models(200, page.to_string().as_bytes()).unwrap();
    let expected = json!([
        {
            "id": "gemini-3-flash-preview", "name": "Gemini 3 Flash", "context": 1048576, "output": 65536,
            "capabilities": {"reasoning": true, "unsupported_parameters": {"reasoning": false}},
        },
        {"id": "tunedModels/mine"},
    ]);
    assert_eq!(json!(models), expected);
    assert_eq!(next.as_deref(), Some("CAUQ"));

    assert_eq!(GOOGLE.parse_models(200, b"{}"), Ok((vec![], None)));
    assert!(matches!(GOOGLE.parse_models(200, b"{\"models\": 1}"), Err(Error::InvalidResponse(_))));
    assert!(matches!(GOOGLE.parse_models(200, b"<html>"), Err(Error::InvalidResponse(_))));
    assert_eq!(GOOGLE.parse_models(403, b""), Err(Error::Authentication));
}

#[test]
fn what_a_model_refuses_is_left_out() {
    let chat: Chat = GOOGLE.json("limits.chat.json");
    let chat = Chat { reasoning: Some(Reasoning::On), ..chat };
    let all = UnsupportedParameters {
        temperature: true,
        top_p: true,
        stop: true,
        seed: true,
        reasoning: true,
        ..UnsupportedParameters::default()
    };
    assert_eq!(GOOGLE.request_body(&chat, all)["generationConfig"], json!({"maxOutputTokens": 20}));
    assert_eq!(
        GOOGLE.request_body(&chat, UnsupportedParameters::default())["generationConfig"].as_object().unwrap().len(),
        6
    );
}

#[test]
fn penalties_reach_only_models_that_take_them() {
    for (model, penalty, sent) in [
        ("gemini-2.0-flash", 0.5, true),
        ("models/gemini-1.5-pro", 0.5, true),
        ("gemma-4", 0.5, true),
        ("gemini-2.0-flash", 0.0, false),
        ("gemini-2.5-flash", 0.5, false),
        ("models/gemini-3-pro", 0.5, false),
    ] {
        let (frequency_penalty, presence_penalty) = (Some(penalty), Some(-penalty));
        let chat = Chat { frequency_penalty, presence_penalty, ..plain(model, false) };
        let expected = json!({"frequencyPenalty": penalty, "presencePenalty": -penalty});
        let body = GOOGLE.request_body(&chat, UnsupportedParameters::default());
        assert_eq!(body.get("generationConfig"), Some(&expected).filter(|_| sent), "{model} {penalty}");
    }
}

#[test]
fn a_choice_without_tools_is_not_sent() {
    let chat = Chat { tool_choice: Some(ToolChoice::Auto), ..plain("gemini-3-pro", false) };
    assert_eq!(GOOGLE.request_body(&chat, UnsupportedParameters::default()).get("toolConfig"), None);
}

#[test]
fn only_models_that_check_signatures_are_told_to_skip_them() {
    let call = ContentPart::ToolCall { id: "1".into(), name: "f".into(), arguments: json!({}), proof: None };
    for (model, told) in
        [("gemini-3-pro", true), ("models/gemini-4", true), ("gemini-2.5-pro", false), ("gemma-4", false)]
    {
        let mut chat = plain(model, false);
        chat.messages.push(Message { role: ChatRole::Assistant, parts: vec![call.clone()] });
        let body = GOOGLE.request_body(&chat, UnsupportedParameters::default());
        assert_eq!(body["contents"][1]["parts"][0].get("thoughtSignature").is_some(), told, "{model}");
    }
}
