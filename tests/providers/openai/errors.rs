//! Failures: statuses, error types, delays, and errors inside responses.

use std::time::Duration;

use corbie::providers::Error;
use serde_json::{Value, json};

use crate::protocol_fixture::OPENAI;

#[test]
fn p16_every_status_is_a_situation() {
    let bad = |kind: &str| Error::BadRequest { kind: kind.into() };
    let limited = |retry_after, quota| Error::RateLimited { retry_after, quota };
    let away = |status| Error::Unavailable { status, retry_after: None };
    let error = |kind: &str, code: Value, param: Value| {
        json!({"error": {"message": "sk-leak is wrong", "type": kind, "param": param, "code": code}}).to_string()
    };
    let invalid = "invalid_request_error";
    let cases = [
        (400, error(invalid, json!(null), json!("messages")), bad(invalid)),
        (400, error(invalid, json!("context_length_exceeded"), json!("messages")), bad("context_length_exceeded")),
        (400, error(invalid, json!("Sk-Leak"), json!(null)), bad(invalid)),
        (400, error(invalid, json!(null), json!("model")), Error::ModelNotFound),
        (400, error(invalid, json!("model_not_found"), json!(null)), Error::ModelNotFound),
        (400, error(invalid, json!("billing_hard_limit_reached"), json!(null)), limited(None, true)),
        (400, "no".into(), bad("bad request")),
        (
            400,
            "{\"object\":\"error\",\"message\":\"sk-leak\",\"type\":\"BadRequestError\",\"code\":400}".into(),
            bad("bad request"),
        ),
        (401, error(invalid, json!("invalid_api_key"), json!(null)), Error::Authentication),
        (402, "{}".into(), limited(None, true)),
        (403, error(invalid, json!("unsupported_country_region_territory"), json!(null)), Error::Authentication),
        (403, error(invalid, json!("model_not_found"), json!(null)), Error::ModelNotFound),
        (404, error(invalid, json!("model_not_found"), json!("model")), Error::ModelNotFound),
        (404, "{\"error\":\"model 'sk-leak' not found\"}".into(), Error::ModelNotFound),
        (408, String::new(), Error::Timeout),
        (409, error("conflict", json!(null), json!(null)), bad("conflict")),
        (413, "<html>".into(), bad("bad request")),
        (422, "{\"detail\":[{\"msg\":\"sk-leak\"}]}".into(), bad("bad request")),
        (429, error("requests", json!("rate_limit_exceeded"), json!(null)), limited(None, false)),
        (429, error("insufficient_quota", json!("insufficient_quota"), json!(null)), limited(None, true)),
        (429, "[{\"error\":{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\"}}]".into(), limited(None, false)),
        (500, error("server_error", json!(null), json!(null)), away(500)),
        (502, "<html>bad gateway</html>".into(), away(502)),
        (503, error("server_error", json!("model_not_found"), json!(null)), away(503)),
        (504, String::new(), Error::Timeout),
        (529, "{}".into(), away(529)),
        (302, String::new(), Error::InvalidResponse("unexpected redirect; check `base_url`")),
    ];
    for (status, body, expected) in cases {
        let found = OPENAI.parse_response(status, &[], body.as_bytes()).unwrap_err();
        assert_eq!(found, expected, "{status} {body}");
        assert!(!found.to_string().contains("leak"), "{found}");
        assert_eq!(OPENAI.parse_models(status, body.as_bytes()).unwrap_err(), expected, "{status} {body}");
    }
}

#[test]
fn p14_a_wait_that_is_asked_for_is_known() {
    let wait = |seconds| Some(Duration::from_secs_f64(seconds));
    let waits = |status, headers: &[(&'static str, &'static str)]| {
        OPENAI.parse_response(status, headers, b"{}").unwrap_err().retry_after()
    };
    assert_eq!(waits(429, &[("retry-after", "20")]), wait(20.0));
    assert_eq!(waits(429, &[("retry-after-ms", "125"), ("retry-after", "1")]), wait(0.125));
    assert_eq!(waits(503, &[("retry-after", "1.5")]), wait(1.5));
    assert_eq!(waits(429, &[("retry-after", "Wed, 21 Oct 2015 07:29:30 GMT")]), wait(90.0));
    assert_eq!(waits(429, &[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]), wait(0.0));
    assert_eq!(waits(429, &[("retry-after", "later")]), None);
}

#[test]
fn a_failure_under_a_status_of_success_is_a_failure() {
    let cases = [
        (json!({"error": {"message": "sk-leak", "code": 429}}), Error::RateLimited { retry_after: None, quota: false }),
        (json!({"error": "sk-leak"}), Error::Unavailable { status: 500, retry_after: None }),
        (json!({"error": {"code": "503"}, "choices": []}), Error::Unavailable { status: 503, retry_after: None }),
        (json!({"object": "error", "type": "BadRequestError"}), Error::BadRequest { kind: "bad request".into() }),
        (
            json!({"choices": [{"index": 0, "message": {"content": ""}, "error": {"code": 502}, "finish_reason": "error"}]}),
            Error::Unavailable { status: 502, retry_after: None },
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(OPENAI.parse_response(200, &[], body.to_string().as_bytes()), Err(expected), "{body}");
    }
}
