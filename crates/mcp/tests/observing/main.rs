//! Observability: metrics, audit log, warnings, and a stdout with protocol messages only.

mod audit;
mod endings;
#[path = "../fixture/mod.rs"]
mod fixture;
mod inspection;
mod metrics;
mod stdout;
mod warnings;

use corbie_mcp::{Server, TrustLevel};
use fixture::peer::{Way, ask, call};
use serde_json::json;

/// Two valid calls and an invalid one to `echo`, then a failing, a panicking and a rejected call.
async fn used() -> Server {
    let server = fixture::server();
    for arguments in [json!({ "text": "a" }), json!({ "text": "b" }), json!({})] {
        ask(&server, &call(1, "echo", arguments)).await;
    }
    for tool in ["fail", "panic"] {
        ask(&server, &call(1, tool, json!({}))).await;
    }
    Way::Stdio.ask(&server, TrustLevel::Untrusted, &call(1, "wipe", json!({}))).await;
    server
}
