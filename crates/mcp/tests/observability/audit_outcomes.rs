//! Every call is audited, regardless of how it ended.

use std::time::Duration;

use corbie_mcp::transport::http::Options;
use corbie_mcp::{AuditOutcome, Server, TrustLevel};
use serde_json::json;

use crate::fixture::peer::{self, JSON, Stdio, call, modern, request_over_stdio};
use crate::fixture::{self, Gate, WipeCounter};

/// A server with a gated tool.
fn gated() -> (Server, Gate) {
    let gate = Gate::new();
    (fixture::builder(WipeCounter::default()).tool(gate.tool()).build().expect("valid"), gate)
}

/// Waits for the first audit entry and returns its outcome.
async fn logged(server: &Server) -> Option<AuditOutcome> {
    let one = async {
        while server.audit().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(3), one).await;
    server.audit().latest(1).first().map(|entry| entry.outcome)
}

#[tokio::test]
async fn m98_a_call_that_was_cancelled_is_logged() {
    let (server, gate) = gated();
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    peer.send(&call(1, "gate", json!({})).to_string()).await;
    gate.entered().await;
    peer.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await;
    assert_eq!(logged(&server).await, Some(AuditOutcome::Error));
}

#[tokio::test]
async fn m98_a_call_whose_modern_caller_hung_up_is_logged() {
    let (server, gate) = gated();
    let port = fixture::listen(&server, Options::default()).await;
    let body = modern(1, "tools/call", json!({ "name": "gate" }), json!({}));
    let headers = peer::modern_headers(&body);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let stream = peer::send_http(port, "POST", &headers, &body.to_string()).await;
    gate.entered().await;
    drop(stream);
    gate.abandoned().await;
    assert_eq!(logged(&server).await, Some(AuditOutcome::Error));
}

#[tokio::test]
async fn m98_a_call_whose_legacy_caller_hung_up_is_logged() {
    let (server, gate) = gated();
    let port = fixture::listen(&server, Options::default()).await;
    let stream = peer::send_http(port, "POST", &[JSON], &call(1, "gate", json!({})).to_string()).await;
    gate.entered().await;
    drop(stream);
    gate.open();
    assert_eq!(logged(&server).await, Some(AuditOutcome::Success));
}

#[tokio::test]
async fn m98_a_task_is_logged_when_it_ends() {
    let (server, gate) = gated();
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    request_over_stdio(&server, &modern(1, "tools/call", json!({ "name": "gate" }), capabilities)).await;
    gate.entered().await;
    assert!(server.audit().is_empty());
    gate.open();
    assert_eq!(logged(&server).await, Some(AuditOutcome::Success));
}
