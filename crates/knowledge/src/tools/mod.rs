//! MCP tools of the knowledge base, one file each, and their error format (K-01 to K-05).

mod add;
mod ask;
mod clear;
mod get;
mod import;
mod remove;
mod search;
mod show;
mod status;
mod task_response;
mod task_status;
mod tasks;

use std::str::FromStr;
use std::sync::Arc;

use corbie_mcp::{
    CallResult, Context, Error as Refusal, FailedCall, FailureCause, RequestStyle, ServerBuilder, ToolError, Transport,
    TrustLevel, Violation,
};
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::{Map, Value, json};

use super::chat_model::ChatModel;
use super::document::{BaseName, DocumentId};
use super::{CallerOrigin, Error, Knowledge};
use corbie_util::sanitize::without_folders;

const MODULE: &str = "corbie::knowledge";

/// Registers the tools with a server.
pub fn register(builder: ServerBuilder, knowledge: &Knowledge, model: Arc<dyn ChatModel>) -> ServerBuilder {
    builder
        .tool(add::tool(knowledge.clone()))
        .tool(search::tool(knowledge.clone()))
        .tool(remove::tool(knowledge.clone()))
        .tool(show::tool(knowledge.clone()))
        .tool(clear::tool(knowledge.clone()))
        .tool(status::tool(knowledge.clone()))
        .tool(task_status::tool(knowledge.clone()))
        .tool(tasks::tool(knowledge.clone()))
        .tool(import::tool(knowledge.clone()))
        .tool(get::tool(knowledge.clone()))
        .tool(ask::tool(knowledge.clone(), model))
}

/// Formats errors as `docs/spec/knowledge.md` requires. Errors of the envelope, of authorization and of the server
/// remain protocol errors.
fn dialect(failure: &FailedCall<'_>, _style: RequestStyle) -> Result<CallResult, Refusal> {
    let members = match failure.cause {
        FailureCause::Tool { kind, message, details } => {
            let mut members = match failure.trust {
                TrustLevel::Trusted => error_members(kind, message),
                _ => error_members(kind, &without_folders(message)),
            };
            if let Some(Value::Object(details)) = details.as_deref() {
                members.extend(details.clone());
            }
            members
        }
        FailureCause::Library(Refusal::Schema { violations, .. }) => argument_error(violations),
        FailureCause::Library(error @ Refusal::Validation(_)) => error_members("invalid_parameter", &error.to_string()),
        FailureCause::Library(error @ Refusal::Timeout { .. }) => error_members("timeout", &error.to_string()),
        FailureCause::Library(Refusal::Internal { .. }) => {
            error_members("internal_error", &Error::Internal(String::new()).to_string())
        }
        FailureCause::Library(error) => return Err(error.clone()),
    };
    Ok(CallResult { is_error: true, ..CallResult::json(Value::Object(members)) })
}

/// Error for invalid arguments. A missing argument is reported first (K-04, K-05).
fn argument_error(violations: &[Violation]) -> Map<String, Value> {
    let missing = violations.iter().find(|violation| violation.keyword == "required" && violation.path.is_empty());
    let Some(violation) = missing.or(violations.first()) else {
        return error_members("invalid_parameter", "invalid arguments");
    };
    let parameter = violation.parameter.clone().unwrap_or_default();
    let (code, message) = match missing {
        Some(_) => ("missing_required_parameter", format!("Missing required parameter: {parameter}")),
        None => ("invalid_parameter", format!("Invalid parameter: {violation}")),
    };
    let mut members = error_members(code, &message);
    members.insert("parameter".into(), parameter.into());
    members
}

fn error_members(code: &str, message: &str) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("success".into(), false.into());
    members.insert("error".into(), code.into());
    members.insert("message".into(), message.into());
    members
}

impl From<Error> for ToolError {
    fn from(error: Error) -> ToolError {
        if let Error::Internal(inward) = &error {
            tracing::error!(error = %inward, "knowledge tool failed");
        }
        if let Error::NotGranted(_) = &error {
            return ToolError::Protocol(Refusal::NotGranted { what: error.to_string() });
        }
        ToolError::new(error.code(), error.to_string()).details(Value::Object(error.details()))
    }
}

/// Schema of the `knowledge_base` argument.
fn base_schema() -> Value {
    json!({
        "type": "string",
        "description": "The knowledge base to use",
        "default": "default",
        "minLength": 1,
        "maxLength": 64,
        "pattern": "^[A-Za-z0-9._-]+$",
    })
}

/// The requested base, if the caller has access to it.
fn authorized_base(context: &Context, name: Option<&str>) -> Result<BaseName, Error> {
    let base = match name {
        None => BaseName::default(),
        Some(name) => BaseName::from_str(name)
            .map_err(|error| Error::invalid("knowledge_base", format!("`knowledge_base`: {error}")))?,
    };
    // The error does not reveal whether the base exists.
    match context.caller().may_access(base.as_str()) {
        true => Ok(base),
        false => Err(Error::NotGranted(base)),
    }
}

/// Merges the members of several objects.
fn merge_objects<const N: usize>(objects: [Value; N]) -> Map<String, Value> {
    let members = objects.into_iter().filter_map(|object| match object {
        Value::Object(members) => Some(members),
        _ => None,
    });
    members.flatten().collect()
}

/// Deserializes an integer and accepts `5.0`: in JSON and JSON Schema it equals 5.
fn whole<'de, D: Deserializer<'de>, N: TryFrom<u64>>(deserializer: D) -> Result<N, D::Error> {
    let number = serde_json::Number::deserialize(deserializer)?;
    let float = || number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..9e15).contains(float));
    let whole = number.as_u64().or_else(|| float().map(|float| float as u64));
    whole
        .and_then(|whole| N::try_from(whole).ok())
        .ok_or_else(|| D::Error::custom(format!("`{number}` is out of range")))
}

fn whole_if_any<'de, D: Deserializer<'de>, N: TryFrom<u64>>(deserializer: D) -> Result<Option<N>, D::Error> {
    whole(deserializer).map(Some)
}

/// Parses a document ID. An invalid ID is reported as not found.
fn document_id(text: &str) -> Result<DocumentId, Error> {
    text.parse().map_err(|_| not_found(text))
}

fn not_found(id: &str) -> Error {
    Error::DocumentNotFound(super::truncate_for_error(id))
}

/// Origin of a call.
fn caller_origin(context: &Context) -> CallerOrigin {
    let caller = context.caller();
    match caller.transport {
        Transport::Http | Transport::Rest | Transport::WebSocket
            if caller.has_token() && caller.trust < TrustLevel::Trusted =>
        {
            CallerOrigin::Restricted
        }
        Transport::Http | Transport::Rest | Transport::WebSocket => CallerOrigin::Remote,
        Transport::Stdio | Transport::Unix | Transport::Internal => CallerOrigin::Local,
    }
}

/// Checks whether the caller may have symbolic links followed. A remote caller does not know where they lead.
fn authorize_links(context: &Context, follow_links: bool) -> Result<(), Error> {
    let may_follow = caller_origin(context) == CallerOrigin::Local && context.caller().trust == TrustLevel::Trusted;
    match follow_links && !may_follow {
        true => {
            let message = "only trusted local callers may use `follow_links`; omit it, or run `corbie add \
                --follow-links` on the server's machine";
            Err(Error::invalid("follow_links", message))
        }
        false => Ok(()),
    }
}

/// Validates metadata from the caller. Bounded because it is stored and returned with every passage.
fn validate_metadata(metadata: Option<Map<String, Value>>) -> Result<Map<String, Value>, Error> {
    const MAX_BYTES: usize = 64 << 10;
    const MAX_DEPTH: usize = 16;
    let Some(metadata) = metadata else { return Ok(Map::new()) };
    fn depth(value: &Value, left: usize) -> bool {
        match value {
            _ if left == 0 => false,
            Value::Array(entries) => entries.iter().all(|entry| depth(entry, left - 1)),
            Value::Object(members) => members.values().all(|member| depth(member, left - 1)),
            _ => true,
        }
    }
    let metadata = Value::Object(metadata);
    if !depth(&metadata, MAX_DEPTH) {
        return Err(Error::invalid(
            "metadata",
            format!("`metadata` is nested too deeply (maximum {MAX_DEPTH} levels)"),
        ));
    }
    if metadata.to_string().len() > MAX_BYTES {
        return Err(Error::invalid(
            "metadata",
            format!("`metadata` is too large (maximum {} KiB as JSON)", MAX_BYTES >> 10),
        ));
    }
    match metadata {
        Value::Object(metadata) => Ok(metadata),
        _ => Ok(Map::new()),
    }
}
