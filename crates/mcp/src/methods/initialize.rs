//! `initialize`: the legacy handshake; its result is the union of three specifications.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::client::ClientCapabilities;
use crate::dispatch::MethodCall;
use crate::error::Error;
use crate::reply::MethodReply;
use crate::server::Server;
use crate::version::{self, Version};

#[derive(Deserialize)]
struct Params {
    #[serde(rename = "protocolVersion")]
    protocol_version: Option<String>,
    #[serde(default)]
    capabilities: Option<ClientCapabilities>,
}

pub(crate) fn initialize(call: &MethodCall) -> Result<MethodReply, Error> {
    let params: Params = call.params.parse()?;
    let version = version::negotiate(params.protocol_version.as_deref(), call.transport.initialize_origin);
    call.transport.session.initialize(version, params.capabilities.unwrap_or_default());
    let server = &call.server;
    let mut members = json!({
        "protocolVersion": version,
        "capabilities": capabilities(server, version),
        "serverInfo": { "name": server.name(), "version": server.version() },
        "name": server.name(),
        "version": server.version(),
        "tools_count": server.registry().iter().filter(|tool| server.lists(tool.name())).count(),
        "resources_count": server.resources_count(),
        "prompts_count": server.prompts().len(),
    });
    if let Some(instructions) = &server.inner().instructions {
        members["instructions"] = instructions.as_str().into();
    }
    Ok(MethodReply::new(members))
}

/// Capabilities advertised to legacy clients (M-42…M-50).
fn capabilities(server: &Server, version: Version) -> Map<String, Value> {
    let flags = !server.inner().suppress_legacy_changes;
    let mut all = Map::new();
    all.insert("tools".into(), json!({ "listChanged": true, "supportsProgress": false }));
    all.insert("resources".into(), json!({ "subscribe": flags, "listChanged": flags }));
    all.insert("prompts".into(), json!({ "listChanged": flags }));
    all.insert("logging".into(), json!({}));
    if version >= Version::V2025_03_26 || !server.inner().completers.is_empty() {
        all.insert("completions".into(), json!({}));
    }
    server.merge_declared_capabilities(&mut all);
    all
}
