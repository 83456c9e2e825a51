//! Failures: statuses, error types, delays, and errors inside responses.

use corbie::providers::{Error, SseEvent, anthropic};
use serde_json::json;

use crate::protocol_fixture::{ANTHROPIC, Headers};

fn parse_text(status: u16, headers: Headers<'_>, body: &[u8]) -> Result<String, Error> {
    ANTHROPIC.parse_response(status, headers, body).map(|completion| completion.text())
}

#[test]
fn p16_every_failure_is_a_situation() {
    let limited = |retry_after: Option<u64>, quota| Error::RateLimited {
        retry_after: retry_after.map(std::time::Duration::from_secs),
        quota,
    };
    let bad = |kind: &str| Error::BadRequest { kind: kind.into() };
    let unavailable = |status| Error::Unavailable { status, retry_after: None };
    let table = [
        (400, "invalid_request_error", None, bad("invalid_request_error")),
        (400, "invalid_request_error", Some("tool_name_conflict"), bad("tool_name_conflict")),
        (400, "invalid_request_error", Some("organization_on_hold"), Error::Authentication),
        (400, "not_found_error", None, Error::ModelNotFound),
        (401, "authentication_error", None, Error::Authentication),
        (402, "billing_error", None, limited(None, true)),
        (403, "permission_error", None, Error::Authentication),
        (403, "billing_error", None, limited(None, true)),
        (404, "not_found_error", None, Error::ModelNotFound),
        (408, "timeout_error", None, Error::Timeout),
        (409, "conflict_error", None, bad("conflict_error")),
        (413, "request_too_large", None, bad("request_too_large")),
        (422, "invalid_request_error", None, bad("invalid_request_error")),
        (429, "rate_limit_error", None, limited(None, false)),
        (429, "rate_limit_error", Some("ramp_limit_exceeded"), limited(None, false)),
        (429, "rate_limit_error", Some("enforced_spend_limit_reached"), limited(None, true)),
        (500, "api_error", None, unavailable(500)),
        (503, "api_error", Some("cmek_key_unreachable"), unavailable(503)),
        (504, "timeout_error", None, Error::Timeout),
        (529, "overloaded_error", None, unavailable(529)),
    ];
    for (status, kind, code, expected) in table {
        let mut body = json!({"type": "error", "error": {"type": kind, "message": "key sk-ant-secret is bad"}, "request_id": "req_1"});
        if let Some(code) = code {
            body["error"]["details"] = json!({"error_code": code});
        }
        let error = parse_text(status, &[], body.to_string().as_bytes()).unwrap_err();
        assert_eq!(error, expected, "{status} {kind} {code:?}");
        assert!(!error.to_string().contains("secret"));
    }
    let poor = br#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#;
    assert_eq!(parse_text(400, &[], poor), Err(limited(None, true)));
    assert_eq!(parse_text(429, &[("retry-after", "12")], b""), Err(limited(Some(12), false)));
    let date = [("retry-after", "Wed, 21 Oct 2015 07:28:12 GMT")];
    assert_eq!(parse_text(429, &date, b""), Err(limited(Some(12), false)));
    assert_eq!(parse_text(502, &[], b"<html>bad gateway</html>"), Err(unavailable(502)));
}

#[test]
fn an_error_inside_a_stream_is_an_error() {
    for (kind, expected) in [
        ("overloaded_error", Error::Unavailable { status: 529, retry_after: None }),
        ("api_error", Error::Unavailable { status: 500, retry_after: None }),
        ("rate_limit_error", Error::RateLimited { retry_after: None, quota: false }),
        ("billing_error", Error::RateLimited { retry_after: None, quota: true }),
        ("timeout_error", Error::Timeout),
        ("invalid_request_error", Error::BadRequest { kind: "invalid_request_error".into() }),
        ("yet_unknown_error", Error::Unavailable { status: 500, retry_after: None }),
    ] {
        let data = json!({"type": "error", "error": {"type": kind, "message": "sk-ant-secret"}}).to_string();
        let event = SseEvent { name: "error".into(), data: data.clone() };
        assert_eq!(anthropic::AnthropicDecoder::default().event(&event), Err(expected.clone()), "{kind}");
        assert_eq!(parse_text(200, &[], data.as_bytes()), Err(expected), "{kind} under a good status");
    }
}
