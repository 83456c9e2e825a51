//! `server/discover`: server capabilities for modern clients.

use serde_json::{Value, json};

use crate::client::TASKS_EXTENSION;
use crate::dispatch::MethodCall;
use crate::error::Error;
use crate::reply::{CacheHint, MethodReply};
use crate::version::Version;

pub(crate) fn discover(call: &MethodCall) -> Result<MethodReply, Error> {
    let server = &call.server;
    let mut capabilities = json!({
        "tools": { "listChanged": true },
        "resources": { "subscribe": true, "listChanged": true },
        "prompts": { "listChanged": true },
        "completions": {},
        "logging": {},
        "extensions": { TASKS_EXTENSION: {} },
    });
    if let Value::Object(all) = &mut capabilities {
        server.merge_declared_capabilities(all);
    }
    let mut members = json!({ "supportedVersions": Version::ALL, "capabilities": capabilities });
    if let Some(instructions) = &server.inner().instructions {
        members["instructions"] = instructions.as_str().into();
    }
    Ok(MethodReply::new(members).with_cache(CacheHint { ttl_ms: 3_600_000, scope: "public" }))
}
