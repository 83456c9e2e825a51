//! `inspect_server`: server status and the caller's permissions (M-69, M-88, M-98).

use std::time::Instant;

use serde_json::{Map, Value, json};

use super::tool_stats;
use crate::context::Context;
use crate::error::RegistrationError;
use crate::metrics::SAMPLE_COUNT;
use crate::outcome::{CallResult, ToolError};
use crate::permissions::AllowList;
use crate::server::Server;
use crate::tool::{Arguments, Tool};
use crate::trust::TrustLevel;
use crate::version::Version;

/// Maximum number of audit log entries in the result.
const MAX_ENTRIES: usize = 100;

pub(super) fn tool() -> Result<Tool, RegistrationError> {
    Tool::builder("inspect_server")
        .title("Inspect the server")
        .description(
            "Get server information and metrics: name, version, protocol versions, uptime, the caller's trust level \
             and permissions, limits, queue lengths, and calls, errors and latency of each tool. With history, also \
             the request rate and latency of the last ten minutes in intervals of five seconds. With audit, the latest \
             entries of the audit log (trusted callers only).",
        )
        .module(module_path!())
        .input_schema(json!({
            "type": "object",
            "properties": {
                "audit": {
                    "type": "integer", "minimum": 0, "maximum": MAX_ENTRIES,
                    "description": "Number of latest audit log entries to return; trusted callers only",
                },
                "history": {
                    "type": "integer", "minimum": 0, "maximum": SAMPLE_COUNT,
                    "description": "Number of five-second samples to return, oldest first; the last one is incomplete",
                },
            },
        }))
        .output_schema(json!({
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "version": { "type": "string" },
                "protocol_version": { "type": "string" },
                "trust": { "type": "string" },
                "uptime_seconds": { "type": "number" },
                "history": {
                    "type": "object",
                    "properties": {
                        "seconds": { "type": "integer" },
                        "samples": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "properties": {
                                    "at": { "type": "string", "description": "Start of the interval" },
                                    "requests": { "type": "integer" },
                                    "errors": { "type": "integer", "description": "Failed requests" },
                                    "calls": { "type": "integer", "description": "Tool calls" },
                                    "call_errors": { "type": "integer", "description": "Failed tool calls" },
                                    "p50_ms": { "type": ["number", "null"] },
                                    "p95_ms": { "type": ["number", "null"] },
                                },
                                "required": ["at", "requests", "errors", "calls", "call_errors", "p50_ms", "p95_ms"],
                            },
                        },
                    },
                    "required": ["seconds", "samples"],
                },
            },
            "required": ["name", "version", "protocol_version", "trust", "uptime_seconds"],
        }))
        .run(async |context: Context, arguments: Arguments| -> Result<CallResult, ToolError> {
            let wanted = arguments.value()["audit"].as_u64().unwrap_or_default();
            let wanted = usize::try_from(wanted).unwrap_or(MAX_ENTRIES).min(MAX_ENTRIES);
            let trust = context.caller().trust;
            if wanted > 0 && trust < TrustLevel::Trusted {
                let why = format!(
                    "the audit log requires trust level `trusted`; the caller's trust level is \
                    `{trust}`"
                );
                return Err(ToolError::new("TrustDenied", why));
            }
            let mut told = inspect(&context, wanted);
            // JSON allows an integer to be written as 12.0.
            let samples = arguments.value()["history"].as_f64().unwrap_or_default() as usize;
            if samples > 0 {
                told["history"] = context.server().metrics().history.latest(Instant::now(), samples);
            }
            Ok(CallResult::json(told))
        })
}

fn inspect(context: &Context, entries: usize) -> Value {
    let (server, caller) = (context.server(), context.caller());
    let own = ["tools", "resources", "prompts", "completions", "logging", "tasks"];
    let added = server.inner().capabilities.keys().map(String::as_str);
    let capabilities: Vec<&str> = own.into_iter().chain(added.filter(|name| !own.contains(name))).collect();
    let mut told = json!({
        "name": server.name(),
        "version": server.version(),
        "protocol_version": context.version(),
        "protocol_versions": Version::ALL,
        "capabilities": capabilities,
        "tools_count": server.registry().len(),
        "resources_count": server.resources_count(),
        "prompts_count": server.prompts().len(),
        "trust": caller.trust,
        "caller": caller.identity,
        "via": caller.transport,
        "permissions": may_use(context),
        "request_id": context.request_id(),
        "started": humantime::format_rfc3339_seconds(server.started_at()).to_string(),
        "uptime_seconds": server.uptime().as_secs_f64(),
        "limits": limits(server),
        "queues": {
            "requests_in_flight": server.metrics().in_flight.get(),
            "connections": server.metrics().connections.get(),
        },
        "audit": audit(server, entries),
        "discovery": server.discover(false),
        "tools": tool_stats(server),
    });
    let more = server.inner().inspection.as_ref().map(|look| look()).unwrap_or_default();
    merge_members(&mut told, more);
    told
}

/// Merges members from the program, combining objects.
fn merge_members(told: &mut Value, more: Map<String, Value>) {
    for (name, value) in more {
        match (told.get_mut(&name), value) {
            (Some(Value::Object(ours)), Value::Object(theirs)) => ours.extend(theirs),
            (_, value) => told[name] = value,
        }
    }
}

fn may_use(context: &Context) -> Value {
    let only = |only: &AllowList| match only {
        AllowList::All => json!("all"),
        AllowList::Names(names) => json!(names),
    };
    let grant = context.caller().permissions.as_deref();
    json!({
        "tools": grant.map_or(json!("all"), |grant| only(&grant.tools)),
        "collections": grant.map_or(json!("all"), |grant| only(&grant.collections)),
    })
}

fn limits(server: &Server) -> Value {
    let limits = server.limits();
    json!({
        "max_message_bytes": limits.max_message_bytes,
        "max_batch": limits.max_batch,
        "max_json_depth": limits.max_json_depth,
        "max_concurrent": limits.max_concurrent,
        "max_concurrent_per_caller": limits.max_concurrent_per_caller,
        "max_queued": limits.max_queued,
        "max_in_flight": limits.max_in_flight,
        "max_connections": limits.max_connections,
        "max_sessions": limits.max_sessions,
        "page_size": limits.page_size,
        "tool_timeout_seconds": limits.tool_timeout.as_secs_f64(),
    })
}

fn audit(server: &Server, entries: usize) -> Value {
    let audit = server.audit();
    let mut told = json!({
        "recorded": audit.recorded(),
        "entries": audit.len(),
        "has_sink": audit.has_sink(),
        "lost_entries": audit.lost(),
        "sink_failing": audit.sink_error().is_some(),
    });
    if entries > 0 {
        told["latest"] = json!(audit.latest(entries));
        told["events"] = json!(audit.latest_events(entries));
    }
    told
}
