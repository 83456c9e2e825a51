//! Audit log entries and audit sinks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use corbie_mcp::transport::http::Options;
use corbie_mcp::transport::{Auth, Token};
use corbie_mcp::{AuditEntry, AuditEvent, AuditOutcome, AuditSink, Limits, Transport, TrustLevel};
use serde_json::json;

use crate::fixture::peer::{self, TestTransport, call, request_over_stdio, text_of};
use crate::fixture::{self, WipeCounter};

#[tokio::test]
async fn m98_a_call_is_logged_with_everything_but_what_was_said() {
    let server = fixture::server();
    for (tool, text) in [("echo", "my secret"), ("echo", "my secret"), ("echo", "another"), ("fail", "")] {
        request_over_stdio(&server, &call(1, tool, json!({ "text": text }))).await;
    }
    TestTransport::Stdio.request(&server, TrustLevel::Verified, &call(1, "wipe", json!({}))).await;
    let log = server.audit().latest(10);
    let told: Vec<_> = log.iter().rev().map(|entry| (&*entry.tool, entry.outcome, entry.trust)).collect();
    let trusted = TrustLevel::Trusted;
    let echo = ("echo", AuditOutcome::Success, trusted);
    let refused = ("wipe", AuditOutcome::Blocked, TrustLevel::Verified);
    assert_eq!(told, [echo, echo, echo, ("fail", AuditOutcome::Error, trusted), refused]);

    let hashes: Vec<_> = log.iter().rev().map(|entry| &entry.arguments_hash).collect();
    assert_eq!(hashes[0], hashes[1], "the same arguments have the same hash");
    assert_ne!(hashes[1], hashes[2]);
    let written = serde_json::to_value(&log).expect("JSON");
    assert!(!written.to_string().contains("secret"), "{written}");
    let oldest = written.as_array().and_then(|all| all.last()).expect("entries");
    assert!(oldest["time"].as_str().is_some_and(|time| time.ends_with('Z')) && oldest["duration_us"].is_u64());
    assert_eq!(oldest["outcome"], "success");
}

#[tokio::test]
async fn m98_the_log_tells_how_the_caller_came() {
    let server = fixture::server();
    for (way, via) in
        TestTransport::ALL.into_iter().zip([Transport::Stdio, Transport::Http, Transport::WebSocket, Transport::Rest])
    {
        way.request(&server, TrustLevel::Trusted, &call(1, "old", json!({}))).await;
        assert_eq!(server.audit().latest(1)[0].via, via);
    }
}

#[tokio::test]
async fn m98_the_log_keeps_the_last_ten_thousand_unless_said_otherwise() {
    assert_eq!(Limits::default().max_audit, 10_000);
    let limits = Limits { max_audit: 2, ..Limits::default() };
    let server = fixture::builder(WipeCounter::default()).limits(limits).build().expect("valid");
    for tool in ["remember", "old", "picture"] {
        request_over_stdio(&server, &call(1, tool, json!({}))).await;
    }
    let kept: Vec<_> = server.audit().latest(10).into_iter().map(|entry| entry.tool.to_string()).collect();
    assert_eq!(kept, ["picture", "old"]);
}

/// A sink that records everything and can be set to fail.
#[derive(Debug, Default)]
struct RecordingSink {
    calls: Mutex<Vec<AuditEntry>>,
    events: Mutex<Vec<AuditEvent>>,
    failing: AtomicBool,
}

impl AuditSink for RecordingSink {
    fn record_call(&self, entry: &AuditEntry) {
        self.calls.lock().expect("unpoisoned").push(entry.clone());
    }

    fn record_event(&self, event: &AuditEvent) {
        self.events.lock().expect("unpoisoned").push(event.clone());
    }

    fn lost(&self) -> u64 {
        u64::from(self.failing.load(Ordering::Relaxed))
    }

    fn error(&self) -> Option<String> {
        self.failing.load(Ordering::Relaxed).then(|| "the disk is full".into())
    }

    fn is_required(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn m98_a_sink_is_handed_every_call_and_event() {
    let kept = Arc::new(RecordingSink::default());
    let server = fixture::builder(WipeCounter::default()).audit_sink(kept.clone()).build().expect("valid");
    request_over_stdio(&server, &call(1, "echo", json!({ "text": "a" }))).await;
    let auth = Auth::tokens([Token::new("agent", "s3cret", None)]);
    let routes = axum::Router::new().route("/more/{name}", axum::routing::get(async || "more"));
    let port = fixture::listen(&server, Options { auth, routes, ..Options::default() }).await;
    let told = ("authorization", "Bearer s3cret");
    peer::http(port, "GET", "/more/one", &[told], "").await;
    peer::http(port, "GET", "/more/one", &[("authorization", "Bearer guess")], "").await;
    peer::http(port, "GET", "/more/one", &[told, ("origin", "https://evil.example")], "").await;
    server.audit().record_event(AuditEvent::new("reload").by("operator"));

    let calls = std::mem::take(&mut *kept.calls.lock().expect("unpoisoned"));
    let calls: Vec<_> = calls.iter().map(|call| (&*call.tool, &*call.caller, call.outcome)).collect();
    let success = AuditOutcome::Success;
    assert_eq!(calls, [("echo", "stdio", success), ("/more/{name}", "token:agent", success)]);
    let events = std::mem::take(&mut *kept.events.lock().expect("unpoisoned"));
    let events: Vec<_> = events.iter().map(|event| (event.event, event.by.as_deref())).collect();
    let from = Some("127.0.0.1");
    assert_eq!(events, [("authentication_failed", from), ("origin_refused", from), ("reload", Some("operator"))]);
    assert_eq!(server.audit().latest_events(1)[0].event, "reload");

    let text = peer::http(port, "GET", "/metrics", &[told], "").await.body;
    for line in [
        r#"corbie_rejected_total{reason="authentication"} 1"#,
        r#"corbie_rejected_total{reason="origin"} 1"#,
        r#"corbie_request_seconds_count{method="/more/{name}",via="http"} 1"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn m98_nothing_is_changed_while_a_required_log_cannot_be_kept() {
    let (kept, wiped) = (Arc::new(RecordingSink::default()), WipeCounter::default());
    let server = fixture::builder(wiped.clone()).audit_sink(kept.clone()).build().expect("valid");
    kept.failing.store(true, Ordering::Relaxed);
    let refused = request_over_stdio(&server, &call(1, "wipe", json!({}))).await;
    assert_eq!(refused["error"]["data"]["error_type"], "AuditUnavailable", "{refused}");
    let read = request_over_stdio(&server, &call(1, "echo", json!({ "text": "a" }))).await;
    assert_eq!(text_of(&read), "a");
    kept.failing.store(false, Ordering::Relaxed);
    request_over_stdio(&server, &call(1, "wipe", json!({}))).await;
    assert_eq!(wiped.count(), 1);
}
