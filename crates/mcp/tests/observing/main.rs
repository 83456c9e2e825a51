//! What can be known afterwards: metrics, the audit log, warnings, and a stdout that holds the protocol alone.

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

/// Two good calls and one with a mistake, to `echo`; one that fails, one that panics, one that is refused.
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
