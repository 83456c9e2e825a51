//! Every kind of failed response.

use std::time::Duration;

use corbie::providers::{Error, UnsupportedParameters};
use serde_json::{Value, json};

use crate::protocol_fixture::GOOGLE;

const SECRET: &str = "prompt of a person, key AIza-secret";

fn error(code: u16, status: &str, details: Value) -> Value {
    json!({"error": {"code": code, "message": SECRET, "status": status, "details": details}})
}

fn detail(kind: &str, mut members: Value) -> Value {
    members["@type"] = format!("type.googleapis.com/google.rpc.{kind}").into();
    members
}

fn bad_request(kind: &str) -> Error {
    Error::BadRequest { kind: kind.into() }
}

fn rate_limited(seconds: Option<f64>, quota: bool) -> Error {
    Error::RateLimited { retry_after: seconds.map(Duration::from_secs_f64), quota }
}

fn unavailable(status: u16) -> Error {
    Error::Unavailable { status, retry_after: None }
}

#[test]
fn p16_every_status_is_a_situation() {
    let info = |reason: &str| json!([detail("ErrorInfo", json!({"reason": reason, "domain": "googleapis.com"}))]);
    let quota = |id: &str| {
        let violations = json!({"violations": [{"quotaMetric": "m", "quotaId": id}]});
        json!([detail("QuotaFailure", violations), detail("RetryInfo", json!({"retryDelay": "20.5s"}))])
    };
    let field = |field: &str| json!([detail("BadRequest", json!({"fieldViolations": [{"field": field}]}))]);
    let none = || json!([]);
    let table = [
        (400, "INVALID_ARGUMENT", none(), bad_request("invalid_argument")),
        (400, "INVALID_ARGUMENT", info("API_KEY_INVALID"), Error::Authentication),
        (400, "INVALID_ARGUMENT", field("generation_config.temperature"), bad_request("invalid_argument")),
        (400, "INVALID_ARGUMENT", field("model"), Error::ModelNotFound),
        (400, "FAILED_PRECONDITION", none(), bad_request("failed_precondition")),
        (401, "UNAUTHENTICATED", none(), Error::Authentication),
        (403, "PERMISSION_DENIED", info("API_KEY_SERVICE_BLOCKED"), Error::Authentication),
        (404, "NOT_FOUND", none(), Error::ModelNotFound),
        (408, "CANCELLED", none(), Error::Timeout),
        (413, "INVALID_ARGUMENT", none(), bad_request("invalid_argument")),
        (429, "RESOURCE_EXHAUSTED", none(), rate_limited(None, false)),
        (
            429,
            "RESOURCE_EXHAUSTED",
            quota("GenerateRequestsPerMinutePerProjectPerModel"),
            rate_limited(Some(20.5), false),
        ),
        (
            429,
            "RESOURCE_EXHAUSTED",
            quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
            rate_limited(Some(20.5), true),
        ),
        (429, "RESOURCE_EXHAUSTED", info("QUOTA_EXHAUSTED"), rate_limited(None, true)),
        (429, "RESOURCE_EXHAUSTED", info("MODEL_CAPACITY_EXHAUSTED"), rate_limited(None, false)),
        (500, "INTERNAL", none(), unavailable(500)),
        (502, "UNKNOWN", none(), unavailable(502)),
        (503, "UNAVAILABLE", none(), unavailable(503)),
        (504, "DEADLINE_EXCEEDED", none(), Error::Timeout),
    ];
    for (status, word, details, expected) in table {
        let body = error(status, word, details);
        let at_once = GOOGLE.parse_response(status, &[], body.to_string().as_bytes()).unwrap_err();
        assert_eq!(at_once, expected, "{body}");
        assert!(!format!("{at_once} {at_once:?}").contains("secret"));
        // A failed stream request returns a list, and a stream may fail in the middle.
        assert_eq!(
            GOOGLE.parse_response(status, &[], json!([body]).to_string().as_bytes()),
            Err(expected.clone()),
            "{body}"
        );
        assert_eq!(GOOGLE.decode_stream([format!("data: {body}\n\n").as_bytes()]), Err(expected.clone()), "{body}");
        // Some gateways report errors as successes.
        assert_eq!(GOOGLE.parse_response(200, &[], body.to_string().as_bytes()), Err(expected), "{body}");
    }
}

#[test]
fn an_account_without_money_is_no_matter_of_waiting() {
    let message = "Your prepayment credits are depleted. Please go to AI Studio to manage your project and billing.";
    let body = json!({"error": {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED"}});
    assert_eq!(GOOGLE.parse_response(429, &[], body.to_string().as_bytes()), Err(rate_limited(None, true)));
}

#[test]
fn a_wait_may_stand_in_the_headers() {
    assert_eq!(GOOGLE.parse_response(429, &[("retry-after", "7")], b""), Err(rate_limited(Some(7.0), false)));
    assert_eq!(
        GOOGLE.parse_response(429, &[("retry-after", "Wed, 21 Oct 2015 07:28:07 GMT")], b""),
        Err(rate_limited(Some(7.0), false)),
        "counted from the moment the answer came"
    );
    let both = error(429, "RESOURCE_EXHAUSTED", json!([detail("RetryInfo", json!({"retryDelay": "3s"}))]));
    assert_eq!(
        GOOGLE.parse_response(429, &[("retry-after", "7")], both.to_string().as_bytes()),
        Err(rate_limited(Some(3.0), false))
    );
    let odd = error(503, "UNAVAILABLE", json!([detail("RetryInfo", json!({"retryDelay": "soon"}))]));
    assert_eq!(GOOGLE.parse_response(503, &[], odd.to_string().as_bytes()), Err(unavailable(503)));
}

#[test]
fn a_status_is_enough_where_the_body_says_nothing() {
    for body in [
        "",
        "<html>Bad gateway</html>",
        "{}",
        "[]",
        "[1]",
        "null",
        "{\"error\": \"x\"}",
        "{\"error\": {\"details\": 1}}",
    ] {
        assert_eq!(GOOGLE.parse_response(502, &[], body.as_bytes()), Err(unavailable(502)), "{body}");
        assert_eq!(GOOGLE.parse_response(403, &[], body.as_bytes()), Err(Error::Authentication), "{body}");
        assert_eq!(GOOGLE.parse_response(400, &[], body.as_bytes()), Err(bad_request("bad request")), "{body}");
    }
}

#[test]
fn an_error_in_a_stream_has_a_status_by_its_word_too() {
    let fail = |body: &str| GOOGLE.decode_stream([format!("data: {body}\n\n").as_bytes()]).unwrap_err();
    assert_eq!(fail("{\"error\": {\"status\": \"UNAVAILABLE\"}}"), unavailable(503));
    assert_eq!(fail("{\"error\": {\"code\": 14, \"status\": \"RESOURCE_EXHAUSTED\"}}"), rate_limited(None, false));
    assert_eq!(fail("{\"error\": {}}"), unavailable(500));
    assert!(matches!(fail("{\"error\": 1}"), Error::InvalidResponse(_)));
}

#[test]
fn answers_that_are_none_are_unreadable() {
    let bodies = [
        "",
        " ",
        "null",
        "1",
        "\"text\"",
        "[]",
        "[[]]",
        "{",
        "<html>",
        "{}",
        "{\"candidates\": []}",
        "{\"candidates\": 1}",
        "{\"candidates\": [1]}",
        "{\"candidates\": [{}]}",
        "{\"candidates\": [{\"content\": 1}]}",
        "{\"candidates\": [{\"content\": {\"parts\": [1, {\"text\": 2}, {\"functionCall\": {}}]}}]}",
        "{\"promptFeedback\": {}}",
        "\u{0}",
    ];
    for body in bodies {
        assert!(matches!(GOOGLE.parse_response(200, &[], body.as_bytes()), Err(Error::InvalidResponse(_))), "{body}");
    }
    assert!(matches!(GOOGLE.parse_response(200, &[], &[0xff, 0xfe]), Err(Error::InvalidResponse(_))));
    for data in ["{", "1", "[]", "<html>"] {
        assert!(
            matches!(GOOGLE.decode_stream([format!("data: {data}\n\n").as_bytes()]), Err(Error::InvalidResponse(_))),
            "{data}"
        );
    }
}

#[test]
fn odd_members_do_no_harm() {
    let body = json!({
        "candidates": [
            {"index": 1, "content": {"parts": [{"text": "another"}]}, "finishReason": "STOP"},
            {"content": {"parts": [{"text": "a"}, {"thought": 1, "text": "b"}, {"toolCall": {"id": "x"}}]},
             "finishReason": "a sentence with a prompt in it"},
        ],
        "usageMetadata": {"promptTokenCount": -1, "candidatesTokenCount": "2", "thoughtsTokenCount": u64::MAX},
        "responseId": 7,
    });
    let completion = GOOGLE.parse_response(200, &[], body.to_string().as_bytes()).unwrap();
    assert_eq!(completion.text(), "ab");
    assert_eq!(completion.stop, corbie::providers::chat::StopReason::Other("OTHER".into()));
    assert_eq!(completion.usage.completion, u64::MAX);
}

#[test]
fn an_end_as_openai_has_it_is_passed_over() {
    let (deltas, complete) = GOOGLE.decode_stream([b"data: [DONE]\n\n".as_slice()]).unwrap();
    assert_eq!((deltas, complete), (vec![], false));
}

/// All variants of a value with one member replaced by null or another type.
fn corrupted_variants(value: &Value) -> Vec<Value> {
    let mut all = vec![Value::Null, json!(-1), json!("x"), json!(true), json!([]), json!([{}]), json!({})];
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                for other in corrupted_variants(member) {
                    let mut members = members.clone();
                    members[name] = other;
                    all.push(members.into());
                }
            }
        }
        Value::Array(values) => {
            for (place, member) in values.iter().enumerate() {
                for other in corrupted_variants(member) {
                    let mut values = values.clone();
                    values[place] = other;
                    all.push(values.into());
                }
            }
        }
        _ => {}
    }
    all
}

#[test]
fn no_member_of_another_type_is_fatal() {
    for (_, body) in GOOGLE.cases(".response.json") {
        for body in corrupted_variants(&serde_json::from_slice(&body).unwrap()) {
            let body = body.to_string();
            let _ = GOOGLE.parse_response(200, &[], body.as_bytes());
            let _ = GOOGLE.parse_response(429, &[], body.as_bytes());
            let _ = GOOGLE.decode_stream([format!("data: {body}\n\n").as_bytes()]);
        }
    }
    for (_, body) in GOOGLE.cases(".caller.json") {
        for body in corrupted_variants(&serde_json::from_slice(&body).unwrap()) {
            let Value::Object(body) = body else { continue };
            // Unmodified requests are sent unchanged, however unusual.
            if let Ok(chat) = GOOGLE.parse_request(body.clone()) {
                assert_eq!(GOOGLE.request_body(&chat, UnsupportedParameters::default()), Value::Object(body));
            }
        }
    }
}
