//! The tools over the knowledge base, one file each, and how they put failures (K-01 to K-05).

mod add;
mod ask;
mod begun;
mod clear;
mod get;
mod import;
mod remove;
mod search;
mod show;
mod status;
mod task_status;
mod tasks;

use std::str::FromStr;

use corbie_mcp::{
    CallResult, Cause, Context, Error as Refusal, Failure, ServerBuilder, Style, ToolError, TrustLevel, Via, Violation,
};
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::{Map, Value, json};

use super::document::{BaseName, DocumentId};
use super::{Error, Knowledge, Whence};
use crate::harmless::without_folders;
use crate::route::Router;

const MODULE: &str = "corbie::knowledge";

/// Adds the tools to a server.
pub fn register(builder: ServerBuilder, knowledge: &Knowledge, router: &Router) -> ServerBuilder {
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
        .tool(ask::tool(knowledge.clone(), router.clone()))
}

/// Failures as spec 003 writes them. What is wrong with the envelope, the caller or the server stays an error of the
/// protocol.
fn dialect(failure: &Failure<'_>, _style: Style) -> Result<CallResult, Refusal> {
    let members = match failure.cause {
        Cause::Tool { kind, message, details } => {
            let mut members = match failure.trust {
                TrustLevel::Trusted => refused(kind, message),
                _ => refused(kind, &without_folders(message)),
            };
            if let Some(Value::Object(details)) = details.as_deref() {
                members.extend(details.clone());
            }
            members
        }
        Cause::Library(Refusal::Schema { violations, .. }) => argument(violations),
        Cause::Library(error @ Refusal::Validation(_)) => refused("invalid_parameter", &error.to_string()),
        Cause::Library(error @ Refusal::Timeout { .. }) => refused("timeout", &error.to_string()),
        Cause::Library(Refusal::Internal { .. }) => {
            refused("internal_error", &Error::Internal(String::new()).to_string())
        }
        Cause::Library(error) => return Err(error.clone()),
    };
    Ok(CallResult { is_error: true, ..CallResult::json(Value::Object(members)) })
}

/// What is wrong with the arguments; one that is missing comes first (K-04, K-05).
fn argument(violations: &[Violation]) -> Map<String, Value> {
    let missing = violations.iter().find(|violation| violation.keyword == "required" && violation.path.is_empty());
    let Some(violation) = missing.or(violations.first()) else {
        return refused("invalid_parameter", "the arguments do not fit");
    };
    let parameter = violation.parameter.clone().unwrap_or_default();
    let (code, message) = match missing {
        Some(_) => ("missing_required_parameter", format!("Missing required parameter: {parameter}")),
        None => ("invalid_parameter", format!("Invalid parameter: {violation}")),
    };
    let mut members = refused(code, &message);
    members.insert("parameter".into(), parameter.into());
    members
}

fn refused(code: &str, message: &str) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("success".into(), false.into());
    members.insert("error".into(), code.into());
    members.insert("message".into(), message.into());
    members
}

impl From<Error> for ToolError {
    fn from(error: Error) -> ToolError {
        if let Error::Internal(inward) = &error {
            tracing::error!(%inward, "a knowledge tool failed");
        }
        if let Error::NotGranted(_) = &error {
            return ToolError::Protocol(Refusal::NotGranted { what: error.to_string() });
        }
        ToolError::new(error.code(), error.to_string()).details(Value::Object(error.details()))
    }
}

/// The schema of the argument that names a base.
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

/// The base that is meant, if the caller may use it.
fn base(context: &Context, name: Option<&str>) -> Result<BaseName, Error> {
    let base = match name {
        None => BaseName::default(),
        Some(name) => BaseName::from_str(name)
            .map_err(|error| Error::invalid("knowledge_base", format!("`knowledge_base`: {error}")))?,
    };
    // Whether there is such a base is not said either.
    match context.caller().may_see(base.as_str()) {
        true => Ok(base),
        false => Err(Error::NotGranted(base)),
    }
}

/// The members of objects, as those of one.
fn joined<const N: usize>(objects: [Value; N]) -> Map<String, Value> {
    let members = objects.into_iter().filter_map(|object| match object {
        Value::Object(members) => Some(members),
        _ => None,
    });
    members.flatten().collect()
}

/// A whole number, also one that is written as `5.0`: JSON knows one kind of numbers, and so do schemas.
fn whole<'de, D: Deserializer<'de>, N: TryFrom<u64>>(deserializer: D) -> Result<N, D::Error> {
    let number = serde_json::Number::deserialize(deserializer)?;
    let float = || number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..9e15).contains(float));
    let whole = number.as_u64().or_else(|| float().map(|float| float as u64));
    whole.and_then(|whole| N::try_from(whole).ok()).ok_or_else(|| D::Error::custom(format!("`{number}` does not fit")))
}

fn whole_if_any<'de, D: Deserializer<'de>, N: TryFrom<u64>>(deserializer: D) -> Result<Option<N>, D::Error> {
    whole(deserializer).map(Some)
}

/// A document by the id a caller gives, and the failure that tells there is none.
fn document_id(text: &str) -> Result<DocumentId, Error> {
    text.parse().map_err(|_| missing(text))
}

fn missing(id: &str) -> Error {
    Error::DocumentNotFound(super::clipped(id))
}

/// Where a call came from.
fn whence(context: &Context) -> Whence {
    let caller = context.caller();
    match caller.via {
        Via::Http | Via::Rest | Via::WebSocket if caller.has_token() && caller.trust < TrustLevel::Trusted => {
            Whence::Guest
        }
        Via::Http | Via::Rest | Via::WebSocket => Whence::Outside,
        Via::Stdio | Via::Unix | Via::Internal => Whence::Here,
    }
}

/// What callers say about a document; bounded, as it is kept and told with every passage.
fn metadata(metadata: Option<Map<String, Value>>) -> Result<Map<String, Value>, Error> {
    const MOST_BYTES: usize = 64 << 10;
    const MOST_DEPTH: usize = 16;
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
    if !depth(&metadata, MOST_DEPTH) {
        return Err(Error::invalid("metadata", format!("`metadata` is nested more than {MOST_DEPTH} levels deep")));
    }
    if metadata.to_string().len() > MOST_BYTES {
        return Err(Error::invalid("metadata", format!("`metadata` takes more than {} KiB as JSON", MOST_BYTES >> 10)));
    }
    match metadata {
        Value::Object(metadata) => Ok(metadata),
        _ => Ok(Map::new()),
    }
}
