//! Error types (M-101…M-107) and the JSON-RPC error object.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error_code::ErrorCode;
use crate::schema::Violation;
use crate::trust::{Effect, TrustLevel};
use crate::version::{Era, Version};

/// Why a request failed. Domain failures of a tool are results, not errors of this type.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Transport(String),
    #[error("unknown tool `{name}`;{} use `tools/list` to list available tools", near(.suggestion))]
    ToolNotFound { name: String, suggestion: Option<String> },
    #[error("invalid arguments for `{tool}`: {}", list(.violations))]
    Schema { tool: String, violations: Vec<Violation> },
    #[error("{0}")]
    Validation(String),
    #[error("cannot serialize the result of `{tool}`: {reason}")]
    Serialization { tool: String, reason: String },
    #[error("`{tool}` timed out after {limit_seconds} s; increase `tool_timeouts.{tool}` or reduce the request")]
    Timeout { tool: String, limit_seconds: f64 },
    #[error(transparent)]
    Registration(#[from] RegistrationError),

    #[error("{0}")]
    Parse(String),
    #[error("{0}")]
    InvalidRequest(String),
    #[error("unknown method `{method}`;{} use `server/discover` or `initialize` to see supported capabilities", near(.suggestion))]
    MethodNotFound { method: String, suggestion: Option<String> },
    #[error("{message}")]
    InvalidParams { message: String, details: Option<Box<Value>> },
    #[error("unknown resource `{uri}`; use `resources/list` to list available resources")]
    ResourceNotFound { uri: String },
    #[error("unknown prompt `{name}`; use `prompts/list` to list available prompts")]
    PromptNotFound { name: String },
    #[error("unknown task `{id}`; it does not exist or has expired")]
    TaskNotFound { id: String },
    #[error("tool `{tool}` {} and requires trust level `{needed}`, but the caller's is `{trust}`; the operator can \
        raise it with `--trust {needed}` or `trust` in the configuration", .effect.verb())]
    TrustDenied { tool: String, effect: Effect, trust: TrustLevel, needed: TrustLevel },
    /// `what` is a tool or a collection, in backticks if it has a name.
    #[error("the caller's token does not permit {what}; the operator can create one that does")]
    NotGranted { what: String },
    #[error("the user declined to run the destructive tool `{tool}`")]
    NotAllowed { tool: String },
    #[error("the request was cancelled")]
    Cancelled,
    #[error("the server is shutting down; reconnect after it has restarted")]
    ShuttingDown,
    #[error("{0}")]
    Authentication(String),
    #[error("{0}")]
    RateLimited(String),
    /// Rate limited with a known wait. The message gives the reason; the wait is appended to it.
    #[error("{message}; retry after {} ms", .retry_after.as_millis())]
    Busy { message: String, retry_after: Duration },
    #[error("{0}")]
    HeaderMismatch(String),
    #[error("this request requires a client that supports {required}")]
    MissingClientCapability { required: &'static str, capabilities: Box<Value> },
    #[error("protocol version `{requested}` is not supported")]
    UnsupportedVersion { requested: String },
    /// `inward` is for the operator only; the peer sees `Internal error: …` in general terms.
    #[error("Internal error: {outward}")]
    Internal { outward: String, inward: String },
    /// A condition without a library variant, raised by a tool or a custom method.
    #[error("{message}")]
    Other {
        code: ErrorCode,
        message: String,
        error_type: &'static str,
        /// Additional members of `data`, such as `details`.
        data: Option<Box<Map<String, Value>>>,
    },
}

/// A tool, resource or prompt that cannot be registered (M-107).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistrationError {
    #[error(
        "tool `{0}` has no input schema; add one, or `{{\"type\":\"object\",\"properties\":{{}}}}` if it has no \
         arguments"
    )]
    NoSchema(String),
    #[error("tool `{name}` has an invalid {which} schema: {reason}")]
    InvalidSchema { name: String, which: &'static str, reason: String },
    #[error("invalid tool name `{name}`: {reason}")]
    InvalidName { name: String, reason: &'static str },
    #[error("tool `{name}` is already registered with a different schema; the first registration is kept")]
    Conflict { name: String },
    #[error("{kind} `{name}` is already registered")]
    Duplicate { kind: &'static str, name: String },
    #[error("invalid resource template `{template}`: {reason}")]
    InvalidTemplate { template: String, reason: String },
}

/// `error` of a JSON-RPC response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorObject {
    pub code: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl Error {
    pub fn invalid_params(message: impl Into<String>) -> Error {
        Error::InvalidParams { message: message.into(), details: None }
    }

    /// `inward` goes to the log, `outward` to the peer.
    pub fn internal(outward: impl Into<String>, inward: impl Into<String>) -> Error {
        Error::Internal { outward: outward.into(), inward: inward.into() }
    }

    /// A temporary refusal. The wait is rounded up to whole milliseconds, so that all its representations agree.
    pub(crate) fn busy(message: impl Into<String>, wait: Duration) -> Error {
        let milliseconds = u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        Error::Busy { message: message.into(), retry_after: Duration::from_millis(milliseconds) }
    }

    /// The wait in the unit of `Retry-After`: whole seconds, at least 1.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Error::Busy { retry_after, .. } => {
                Some((retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0)).max(1))
            }
            _ => None,
        }
    }

    pub fn code(&self) -> ErrorCode {
        match self {
            Error::Transport(_) => ErrorCode::Network,
            Error::ToolNotFound { .. }
            | Error::Schema { .. }
            | Error::Validation(_)
            | Error::InvalidParams { .. }
            | Error::ResourceNotFound { .. }
            | Error::PromptNotFound { .. }
            | Error::TaskNotFound { .. } => ErrorCode::InvalidParams,
            Error::Serialization { .. } => ErrorCode::Serialization,
            Error::Timeout { .. } => ErrorCode::Timeout,
            Error::Registration(_) | Error::Internal { .. } => ErrorCode::Internal,
            Error::Parse(_) => ErrorCode::Parse,
            Error::InvalidRequest(_) => ErrorCode::InvalidRequest,
            Error::MethodNotFound { .. } => ErrorCode::MethodNotFound,
            Error::TrustDenied { .. } | Error::NotGranted { .. } | Error::NotAllowed { .. } => ErrorCode::TrustDenied,
            Error::Cancelled => ErrorCode::Cancelled,
            Error::ShuttingDown => ErrorCode::ShuttingDown,
            Error::Authentication(_) => ErrorCode::Authentication,
            Error::RateLimited(_) | Error::Busy { .. } => ErrorCode::RateLimited,
            Error::HeaderMismatch(_) => ErrorCode::HeaderMismatch,
            Error::MissingClientCapability { .. } => ErrorCode::MissingClientCapability,
            Error::UnsupportedVersion { .. } => ErrorCode::UnsupportedVersion,
            Error::Other { code, .. } => *code,
        }
    }

    /// `data.error_type`: a stable identifier for programs to match on (E-15).
    pub fn error_type(&self) -> &'static str {
        match self {
            Error::Transport(_) => "TransportError",
            Error::ToolNotFound { .. } => "ToolNotFoundError",
            Error::Schema { .. } => "SchemaError",
            Error::Validation(_) => "ValidationError",
            Error::Serialization { .. } => "SerializationError",
            Error::Timeout { .. } => "TimeoutError",
            Error::Registration(_) => "RegistrationError",
            Error::Parse(_) => "ParseError",
            Error::InvalidRequest(_) => "InvalidRequest",
            Error::MethodNotFound { .. } => "MethodNotFound",
            Error::InvalidParams { .. } => "InvalidParams",
            Error::ResourceNotFound { .. } => "ResourceNotFound",
            Error::PromptNotFound { .. } => "PromptNotFound",
            Error::TaskNotFound { .. } => "TaskNotFound",
            Error::TrustDenied { .. } => "TrustDenied",
            Error::NotGranted { .. } => "PermissionDenied",
            Error::NotAllowed { .. } => "ConfirmationDeclined",
            Error::Cancelled => "Cancelled",
            Error::ShuttingDown => "ShuttingDown",
            Error::Authentication(_) => "AuthenticationError",
            Error::RateLimited(_) | Error::Busy { .. } => "RateLimited",
            Error::HeaderMismatch(_) => "HeaderMismatch",
            Error::MissingClientCapability { .. } => "MissingRequiredClientCapability",
            Error::UnsupportedVersion { .. } => "UnsupportedProtocolVersion",
            Error::Internal { .. } => "InternalError",
            Error::Other { error_type, .. } => error_type,
        }
    }

    /// Status on `POST /mcp`. A custom condition is reported only in the body: a 401 status would make clients conclude
    /// that this server rejected them, when an upstream of the program did.
    pub(crate) fn json_rpc_status(&self, era: Era) -> http::StatusCode {
        match self {
            Error::Other { .. } => http::StatusCode::OK,
            other => other.code().json_rpc_status(era),
        }
    }

    /// Status in the REST style, where an unknown name is a 404 although its code is -32602.
    pub fn rest_status(&self) -> http::StatusCode {
        match self {
            Error::ToolNotFound { .. }
            | Error::ResourceNotFound { .. }
            | Error::PromptNotFound { .. }
            | Error::TaskNotFound { .. } => http::StatusCode::NOT_FOUND,
            other => other.code().rest_status(),
        }
    }

    /// The error object for a peer of this era.
    pub fn to_object(&self, era: Era) -> ErrorObject {
        let code = self.code();
        let mut data = Map::new();
        data.insert("error_type".into(), self.error_type().into());
        match self {
            Error::ToolNotFound { name, suggestion } => {
                let mut details = json!({ "name": name });
                if let Some(near) = suggestion {
                    details["suggestion"] = near.as_str().into();
                }
                data.insert("details".into(), details);
            }
            Error::Schema { violations, .. } => {
                data.insert("details".into(), json!({ "violations": violations }));
            }
            Error::Busy { retry_after, .. } => {
                let milliseconds = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
                data.insert("details".into(), json!({ "retry_after_ms": milliseconds }));
            }
            Error::InvalidParams { details: Some(details), .. } => {
                data.insert("details".into(), Value::clone(details));
            }
            Error::Other { data: Some(members), .. } => data.extend(Map::clone(members)),
            Error::ResourceNotFound { uri } => {
                data.insert("uri".into(), uri.as_str().into());
            }
            Error::TrustDenied { tool, trust, needed, .. } => {
                data.insert("details".into(), json!({ "tool": tool, "trust": trust, "required": needed }));
            }
            Error::MissingClientCapability { capabilities, .. } => {
                data.insert("requiredCapabilities".into(), Value::clone(capabilities));
            }
            Error::UnsupportedVersion { requested } => {
                data.insert("supported".into(), json!(Version::ALL));
                data.insert("requested".into(), requested.as_str().into());
            }
            _ => {}
        }
        if code.number(era) != code.legacy_number() {
            data.insert("legacyCode".into(), code.legacy_number().into());
        }
        ErrorObject { code: code.number(era), message: self.to_string(), data: Some(Value::Object(data)) }
    }
}

fn near(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|name| format!(" did you mean `{name}`?")).unwrap_or_default()
}

fn list(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
