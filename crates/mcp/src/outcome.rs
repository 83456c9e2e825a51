//! Tool outcomes: a result, a failure, or a background task.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::content::ContentBlock;
use crate::context::Context;
use crate::error::{Error, ErrorObject};
use crate::schema;
use crate::trust::TrustLevel;

/// Result of `tools/call`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    pub content: Vec<ContentBlock>,
    /// The same value as the first text item, for peers at 2025-06-18 or later (M-05).
    #[serde(rename = "structuredContent", default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    #[serde(rename = "isError", default)]
    pub is_error: bool,
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
}

/// The outcome of a handler.
pub enum ToolOutcome {
    Done(CallResult),
    Failed(ToolError),
    /// The work continues in the background as a task; only for tools with
    /// [`TaskSupport::Handoff`](crate::TaskSupport).
    Background(BackgroundWork),
    /// The work continues as a task that the handler stored in the server's [`TaskStore`](crate::TaskStore); only for
    /// tools with [`TaskSupport::Own`](crate::TaskSupport).
    Task {
        id: Arc<str>,
        /// The result for callers that do not get the handle: clients without task support, and callers that could not
        /// query the task.
        otherwise: CallResult,
    },
}

/// Work that continues after the call was answered with a task handle.
pub type BackgroundWork = Box<dyn FnOnce(Context) -> BoxFuture<'static, ToolOutcome> + Send>;

/// A domain failure of the tool, or a protocol error.
#[derive(Debug, Clone)]
pub enum ToolError {
    /// Becomes a result with `isError: true` in the dialect of the tool family.
    Domain { kind: String, message: String, details: Option<Box<Value>> },
    /// Becomes a JSON-RPC error.
    Protocol(Error),
}

/// A value returned as JSON: text for all clients, plus `structuredContent` and an output schema for clients that
/// support them.
#[derive(Debug, Clone, Copy)]
pub struct Json<T>(pub T);

/// Return types of handlers.
pub trait IntoOutcome {
    /// Schema of the structured result, if the type has one.
    fn output_schema() -> Option<Value> {
        None
    }

    fn into_outcome(self) -> ToolOutcome;
}

/// A failed call, as input for the tool family's renderer.
#[derive(Debug, Clone)]
pub struct FailedCall<'a> {
    pub tool: &'a str,
    pub cause: &'a FailureCause,
    /// The operator's trust in the caller.
    pub trust: TrustLevel,
}

#[derive(Debug, Clone)]
pub enum FailureCause {
    /// Raised by the library before or after the handler ran: schema, timeout, panic, serialization.
    Library(Error),
    /// Returned by the handler.
    Tool { kind: String, message: String, details: Option<Box<Value>> },
}

/// The form of the request, which determines the form of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestStyle {
    /// JSON-RPC 2.0 with its `jsonrpc` member.
    Standard,
    /// The forms of docs/spec: a REST path, or a body without `jsonrpc`.
    Plain,
}

/// Renders failures of a tool family (E-16) as a result or a JSON-RPC error.
pub type Dialect = fn(&FailedCall<'_>, RequestStyle) -> Result<CallResult, Error>;

/// The default dialect: `{"error":{"type","message","details"}}` with `isError`.
pub fn core_dialect(failure: &FailedCall<'_>, _style: RequestStyle) -> Result<CallResult, Error> {
    let error = match failure.cause {
        // The server failed here, not the tool; callers should not read these as the tool's answer.
        FailureCause::Library(error @ (Error::Timeout { .. } | Error::Serialization { .. })) => {
            return Err(error.clone());
        }
        FailureCause::Library(error) => {
            let details =
                error.to_object(crate::Era::Legacy).data.and_then(|mut data| data.get_mut("details").map(Value::take));
            json!({ "type": error.error_type(), "message": error.to_string(), "details": details })
        }
        FailureCause::Tool { kind, message, details } => {
            json!({ "type": kind, "message": message, "details": details })
        }
    };
    Ok(CallResult { is_error: true, ..CallResult::json(json!({ "error": error })) })
}

impl CallResult {
    pub fn text(text: impl Into<String>) -> CallResult {
        CallResult { content: vec![ContentBlock::text(text)], ..CallResult::default() }
    }

    /// Compact JSON in a text item, and the same value as structured content.
    pub fn json(value: Value) -> CallResult {
        CallResult {
            content: vec![ContentBlock::text(value.to_string())],
            structured: Some(value),
            ..CallResult::default()
        }
    }

    pub fn error(text: impl Into<String>) -> CallResult {
        CallResult { is_error: true, ..CallResult::text(text) }
    }
}

impl ToolOutcome {
    /// Hands the rest of the work to a background task.
    pub fn background<F, Fut>(work: F) -> ToolOutcome
    where
        F: FnOnce(Context) -> Fut + Send + 'static,
        Fut: Future<Output: IntoOutcome> + Send + 'static,
    {
        ToolOutcome::Background(Box::new(move |context| Box::pin(async move { work(context).await.into_outcome() })))
    }
}

impl ToolError {
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> ToolError {
        ToolError::Domain { kind: kind.into(), message: message.into(), details: None }
    }

    /// Adds machine-readable details of the failure.
    pub fn details(self, value: Value) -> ToolError {
        match self {
            ToolError::Domain { kind, message, .. } => {
                ToolError::Domain { kind, message, details: Some(Box::new(value)) }
            }
            protocol => protocol,
        }
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> ToolError {
        ToolError::Protocol(error)
    }
}

impl From<ErrorObject> for ToolError {
    fn from(error: ErrorObject) -> ToolError {
        ToolError::Domain { kind: "ClientError".into(), message: error.message, details: error.data.map(Box::new) }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ToolError::Domain { message, .. } => f.write_str(message),
            ToolError::Protocol(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ToolError {}

impl fmt::Debug for ToolOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ToolOutcome::Done(result) => f.debug_tuple("Done").field(result).finish(),
            ToolOutcome::Failed(error) => f.debug_tuple("Failed").field(error).finish(),
            ToolOutcome::Background(_) => f.write_str("Background"),
            ToolOutcome::Task { id, .. } => f.debug_tuple("Task").field(id).finish(),
        }
    }
}

// === impl IntoOutcome ===

impl IntoOutcome for ToolOutcome {
    fn into_outcome(self) -> ToolOutcome {
        self
    }
}

impl IntoOutcome for CallResult {
    fn into_outcome(self) -> ToolOutcome {
        ToolOutcome::Done(self)
    }
}

impl IntoOutcome for () {
    fn into_outcome(self) -> ToolOutcome {
        ToolOutcome::Done(CallResult::default())
    }
}

impl IntoOutcome for String {
    fn into_outcome(self) -> ToolOutcome {
        ToolOutcome::Done(CallResult::text(self))
    }
}

impl IntoOutcome for &'static str {
    fn into_outcome(self) -> ToolOutcome {
        ToolOutcome::Done(CallResult::text(self))
    }
}

impl IntoOutcome for ContentBlock {
    fn into_outcome(self) -> ToolOutcome {
        vec![self].into_outcome()
    }
}

impl IntoOutcome for Vec<ContentBlock> {
    fn into_outcome(self) -> ToolOutcome {
        ToolOutcome::Done(CallResult { content: self, ..CallResult::default() })
    }
}

impl<T: Serialize + JsonSchema> IntoOutcome for Json<T> {
    fn output_schema() -> Option<Value> {
        Some(schema::derive_output::<T>())
    }

    fn into_outcome(self) -> ToolOutcome {
        match crate::non_finite_numbers::to_json(&self.0) {
            Ok(value) => ToolOutcome::Done(CallResult::json(value)),
            Err(reason) => {
                ToolOutcome::Failed(ToolError::Protocol(Error::Serialization { tool: String::new(), reason }))
            }
        }
    }
}

impl<T: IntoOutcome, E: Into<ToolError>> IntoOutcome for Result<T, E> {
    fn output_schema() -> Option<Value> {
        T::output_schema()
    }

    fn into_outcome(self) -> ToolOutcome {
        match self {
            Ok(value) => value.into_outcome(),
            Err(error) => ToolOutcome::Failed(error.into()),
        }
    }
}
