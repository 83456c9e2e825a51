//! P-14…P-17: every provider failure in every wire format, and the resulting error, retries and failover.
//!
//! The backoff delays are real, 1, 2 and 4 seconds, so all cases run concurrently.

use std::collections::BTreeMap;
use std::net::TcpListener;

use corbie::app::App;
use corbie_mcp::{Era, ErrorCode, ErrorObject};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::fixture::{app, complete};
use crate::upstream::{FORMATS, FakeUpstream};

/// The expected error of a failure, and the retries and failover before it.
#[derive(Debug, Clone, Copy)]
struct ExpectedFailure {
    code: ErrorCode,
    error_type: &'static str,
    /// One word for all wire formats, or one for each.
    kind: [&'static str; 3],
    /// Four if it is retried.
    requests: usize,
    /// Another provider is tried.
    fails_over: bool,
}

const fn without_retry(code: ErrorCode, error_type: &'static str, kind: &'static str) -> ExpectedFailure {
    ExpectedFailure { code, error_type, kind: [kind; 3], requests: 1, fails_over: true }
}

const fn with_retries(code: ErrorCode, error_type: &'static str, kind: &'static str) -> ExpectedFailure {
    ExpectedFailure { requests: 4, ..without_retry(code, error_type, kind) }
}

const fn client_error(kind: [&'static str; 3]) -> ExpectedFailure {
    ExpectedFailure { kind, fails_over: false, ..without_retry(ErrorCode::InvalidParams, "InvalidParams", "") }
}

const AUTHENTICATION: ExpectedFailure =
    without_retry(ErrorCode::Authentication, "AuthenticationError", "authentication");
const NO_MODEL: ExpectedFailure = without_retry(ErrorCode::ModelNotFound, "ModelNotFound", "model_not_found");
const LIMITED: ExpectedFailure = with_retries(ErrorCode::RateLimited, "RateLimited", "rate_limited");
const QUOTA_EXHAUSTED: ExpectedFailure = without_retry(ErrorCode::RateLimited, "RateLimited", "quota_exhausted");
const UNAVAILABLE: ExpectedFailure =
    without_retry(ErrorCode::ProviderUnavailable, "ProviderUnavailable", "unavailable");
const UNREADABLE: ExpectedFailure =
    without_retry(ErrorCode::ProviderUnavailable, "ProviderUnavailable", "invalid_response");
const NETWORK: ExpectedFailure = with_retries(ErrorCode::Network, "NetworkError", "network");
const TIMEOUT: ExpectedFailure = with_retries(ErrorCode::Timeout, "TimeoutError", "timeout");

/// By the fault name of the mock upstream.
const FAULTS: [(&str, ExpectedFailure); 32] = [
    ("status-401", AUTHENTICATION),
    ("status-403", AUTHENTICATION),
    ("status-404", NO_MODEL),
    ("status-408", TIMEOUT),
    ("status-504", TIMEOUT),
    ("status-429", LIMITED),
    ("status-429-after-2", LIMITED),
    ("status-429-ms-1500", LIMITED),
    ("status-429-date", LIMITED),
    ("status-429-retryinfo", LIMITED),
    // The requested delay exceeds the timeout, so the router does not wait.
    ("status-429-after-90", ExpectedFailure { requests: 1, ..LIMITED }),
    ("quota", QUOTA_EXHAUSTED),
    ("status-500", UNAVAILABLE),
    ("status-502", UNAVAILABLE),
    ("status-503", UNAVAILABLE),
    ("status-529", UNAVAILABLE),
    ("html-502", UNAVAILABLE),
    ("status-400", client_error(["invalid_request_error", "invalid_request_error", "invalid_argument"])),
    ("status-413", client_error(["invalid_request_error", "request_too_large", "invalid_argument"])),
    ("status-422", client_error(["invalid_request_error", "invalid_request_error", "invalid_argument"])),
    ("reset", NETWORK),
    ("cut-0", NETWORK),
    ("cut-1", NETWORK),
    ("cut-3", NETWORK),
    ("lying-length", NETWORK),
    ("stall", TIMEOUT),
    ("stall-mid", TIMEOUT),
    ("endless", TIMEOUT),
    ("not-json", UNREADABLE),
    ("html", UNREADABLE),
    ("empty", UNREADABLE),
    ("error-mid", UNAVAILABLE),
];

/// By the kind of address.
const ADDRESS_FAULTS: [(&str, ExpectedFailure); 3] =
    [("unknown-name", NETWORK), ("refused", NETWORK), ("no-tls", NETWORK)];

/// Observed outcome of one case.
#[derive(Debug)]
struct CaseResult {
    error: Option<ErrorObject>,
    modern_error: Option<ErrorObject>,
    /// From the decision record.
    attempts: Vec<Value>,
    provider: Value,
    seconds: f64,
}

/// Faults that end only by timeout.
fn is_silent(fault: &str) -> bool {
    matches!(fault, "stall" | "stall-mid" | "endless")
}

/// Each case has its own provider, `FORMAT-FAULT`, so that no circuit breaker affects another case.
fn settings(upstreams: &BTreeMap<&str, FakeUpstream>) -> Value {
    let mut providers = json!({ "backup": { "type": "mock" } });
    let refusing = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for format in FORMATS {
        for (fault, _) in FAULTS {
            let timeout = if is_silent(fault) { "300ms" } else { "20s" };
            providers[format!("{format}-{fault}")] =
                upstreams[format].provider_with(format, json!({ "timeout": timeout }));
        }
        for (place, base) in [
            ("unknown-name", "http://nobody.invalid/v1".to_owned()),
            ("refused", format!("http://127.0.0.1:{refusing}/v1")),
            ("no-tls", format!("https://127.0.0.1:{}/v1", upstreams[format].port)),
        ] {
            providers[format!("{format}-{place}")] = json!({ "type": format, "base_url": base, "api_key": "k" });
        }
    }
    json!({ "providers": providers, "defaults": { "model": "backup/mock" }, "router": { "timeout": "60s" } })
}

async fn run_case(app: &App, format: &str, fault: &str) -> CaseResult {
    let model = format!("{format}-{fault}/{fault}");
    let result = complete(app, json!({ "prompt": "Hello, world!", "model": model })).await;
    let record = app
        .router
        .decision_log()
        .newest(1000)
        .into_iter()
        .find(|record| record.requested_model.as_ref() == Some(&model));
    let record = json!(record.expect("a record of every prompt"));
    CaseResult {
        error: result.as_ref().err().map(|error| error.to_object(Era::Legacy)),
        modern_error: result.as_ref().err().map(|error| error.to_object(Era::Modern)),
        attempts: record["attempts"].as_array().unwrap().clone(),
        provider: record["provider"].clone(),
        seconds: record["latency_ms"].as_f64().unwrap() / 1e3,
    }
}

fn cases() -> impl Iterator<Item = (usize, &'static str, &'static str, ExpectedFailure)> {
    let all = || FAULTS.into_iter().chain(ADDRESS_FAULTS);
    FORMATS
        .into_iter()
        .enumerate()
        .flat_map(move |(place, format)| all().map(move |(f, told)| (place, format, f, told)))
}

/// Each upstream keeps a hundred requests, enough for the faults of one format.
fn upstreams() -> BTreeMap<&'static str, FakeUpstream> {
    FORMATS.into_iter().map(|format| (format, FakeUpstream::start())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn p14_p15_p16_x22_e17_every_failure_has_its_code_its_word_and_its_number_of_tries() {
    let upstreams = upstreams();
    let app = app(settings(&upstreams));
    let seen = join_all(cases().map(|(_, format, fault, _)| run_case(&app, format, fault))).await;
    for ((place, format, fault, told), seen) in cases().zip(seen) {
        let case = format!("{format} {fault}: {seen:#?}");
        let (error, modern) = (seen.error.as_ref().expect(&case), seen.modern_error.as_ref().expect(&case));
        let data = error.data.as_ref().expect(&case);
        assert_eq!(error.code, told.code.legacy_number(), "{case}");
        assert_eq!(modern.code, told.code.number(Era::Modern), "{case}");
        assert_eq!((&data["error_type"], &data["kind"]), (&json!(told.error_type), &json!(told.kind[place])), "{case}");
        assert_eq!(data["details"]["provider"], format!("{format}-{fault}"), "{case}");
        assert!(says_what_to_do(&error.message), "{case}");
        assert_eq!(seen.attempts.len(), 1, "{case}");
        assert_eq!(seen.attempts[0]["requests"], told.requests, "{case}");
        let waited = if told.requests == 4 { min_wait_seconds(format, fault)..59.0 } else { 0.0..7.0 };
        assert!(waited.contains(&seen.seconds), "{case}");
        if FAULTS.iter().any(|(known, _)| *known == fault) {
            assert_eq!(upstreams[format].requests_for(fault).len(), told.requests, "{case}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p17_somebody_else_is_asked_after_the_retries_unless_the_request_is_at_fault() {
    let upstreams = upstreams();
    let mut settings = settings(&upstreams);
    settings["router"]["replace_pinned"] = true.into();
    let app = app(settings);
    let seen = join_all(cases().map(|(_, format, fault, _)| run_case(&app, format, fault))).await;
    for ((_, format, fault, told), seen) in cases().zip(seen) {
        let case = format!("{format} {fault}: {seen:#?}");
        assert_eq!(seen.error.is_none(), told.fails_over, "{case}");
        assert_eq!(seen.attempts.len(), if told.fails_over { 2 } else { 1 }, "{case}");
        // A provider that used up its whole timeout is not retried while another provider is available.
        let requests = if is_silent(fault) { 1 } else { told.requests };
        assert_eq!(seen.attempts[0]["requests"], requests, "{case}");
        assert_eq!(seen.provider, if told.fails_over { json!("backup") } else { Value::Null }, "{case}");
    }
}

/// Not only a status rejects a key: Google reports a wrong one as a bad argument.
#[tokio::test(flavor = "multi_thread")]
async fn p15_p16_a_key_that_is_refused_is_told_and_the_next_one_is_tried() {
    let upstream = FakeUpstream::start();
    for format in FORMATS {
        for refused in ["bad-key", "invalid-key"] {
            let alone = upstream.provider_with(format, json!({ "api_key": refused }));
            let both = upstream.provider_with(format, json!({ "api_key": refused, "api_keys": ["good-key"] }));
            let app = app(json!({ "providers": { "alone": alone, "both": both } }));
            let error = complete(&app, json!({ "prompt": "Hello", "model": "alone/echo-small" })).await.unwrap_err();
            let error = error.to_object(Era::Legacy);
            assert_eq!(error.code, -32001, "{format} {refused}: {error:?}");
            assert!(!error.message.contains(refused), "{error:?}");
            let answered = complete(&app, json!({ "prompt": "Hello", "model": "both/echo-small" })).await.unwrap();
            let attempts = &answered["_meta"]["corbie/decision"]["attempts"];
            assert_eq!(
                (&attempts[0]["result"], &attempts[1]["key"]),
                (&json!("authentication"), &json!(2)),
                "{attempts}"
            );
        }
    }
}

/// 1, 2 and 4 seconds, or longer if the provider requests it.
fn min_wait_seconds(format: &str, fault: &str) -> f64 {
    match (format, fault) {
        (_, "status-429-after-2") | ("google", "status-429-retryinfo") => 8.0,
        (_, "status-429-ms-1500") => 7.5,
        _ => 7.0,
    }
}

/// E-17: the message contains an actionable step.
fn says_what_to_do(message: &str) -> bool {
    ["retry ", "check ", "use another", "list available", "add credit"].iter().any(|advice| message.contains(advice))
}
