//! Observability: metrics, audit log, warnings, and a stdout with protocol messages only.

mod audit;
mod audit_outcomes;
#[path = "../fixture/mod.rs"]
mod fixture;
mod inspect_server;
mod log_messages;
mod metrics;
mod stdout;

use corbie_mcp::{Server, TrustLevel};
use fixture::peer::{TestTransport, call, request_over_stdio};
use serde_json::json;

/// Two valid calls and an invalid one to `echo`, then a failing, a panicking and a rejected call.
async fn used() -> Server {
    let server = fixture::server();
    for arguments in [json!({ "text": "a" }), json!({ "text": "b" }), json!({})] {
        request_over_stdio(&server, &call(1, "echo", arguments)).await;
    }
    for tool in ["fail", "panic"] {
        request_over_stdio(&server, &call(1, tool, json!({}))).await;
    }
    TestTransport::Stdio.request(&server, TrustLevel::Untrusted, &call(1, "wipe", json!({}))).await;
    server
}
