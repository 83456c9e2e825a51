//! Build an MCP server in twenty lines: every released protocol version, every transport.
//!
//! A [`Tool`] is a typed function with a compiled schema. A [`Server`] is a set of tools, resources and prompts. Any
//! number of transports serve it at once: [`transport::stdio`], sockets in the file system (`transport::unix`), and HTTP
//! with JSON-RPC, REST style, event streams and WebSocket on one path ([`transport::http`]).

// Generated code of `#[mcp_tool]` names this crate by its outside name, also in our own tests.
extern crate self as corbie_mcp;

mod admission;
mod ask;
mod audit;
mod builder;
pub mod builtin;
mod client;
mod code;
mod completion;
mod content;
mod context;
mod discovery;
mod dispatch;
mod error;
mod event;
mod expressible;
mod grant;
mod json_text;
mod keys;
mod later;
mod limits;
mod line_client;
mod local;
pub mod message;
mod methods;
mod metrics;
mod object;
mod outcome;
mod party;
mod progress;
mod prompt;
mod registry;
mod reply;
mod resource;
mod resource_lister;
pub mod retry;
pub mod schema;
mod seal;
mod server;
mod session;
mod standing;
mod tasks;
mod tool;
mod tool_message;
mod trace;
pub mod transport;
mod trust;
mod version;

pub use admission::Slot;
pub use ask::{AskError, ElicitAction, Elicited, Question, Root, Sampled};
pub use audit::{AuditEntry, AuditEvent, AuditLog, AuditOutcome, AuditSink};
pub use builder::ServerBuilder;
pub use client::{ClientCapabilities, ClientFeature, LogLevel};
pub use code::Code;
pub use completion::Completer;
pub use content::{Blob, Content, Extra, ResourceContents, Text};
pub use context::Context;
pub use corbie_mcp_macros::mcp_tool;
pub use discovery::{Found, Module, Report};
pub use error::{Error, ErrorObject, RegistrationError};
pub use event::Event;
pub use grant::{Grant, Only};
pub use later::Later;
pub use limits::Limits;
pub use line_client::{CallError, LineClient};
pub use metrics::{Metrics, ToolStats};
pub use outcome::{
    Background, CallResult, Cause, Dialect, Failure, IntoOutcome, Json, Outcome, Style, ToolError, core_dialect,
};
pub use prompt::{Prompt, PromptArguments, PromptMessage, PromptResult, Role};
pub use registry::{Registered, Registry};
pub use resource::{Resource, ResourceTemplate, Variables};
pub use resource_lister::{ResourceLister, ResourceListing, ResourcePage, WantedPage};
pub use schema::Violation;
pub use seal::StateKey;
pub use server::{Health, Server};
pub use standing::Standing;
pub use tasks::{MemoryTasks, Task, TaskState, TaskStore};
pub use tool::{Arguments, Meta, TaskSupport, Tool, ToolBuilder};
pub use tool_message::{ToolCall, ToolReply};
pub use trace::{RequestId, Trace};
pub use trust::{Caller, Effect, TrustLevel, Via};
pub use version::{Era, Version};

/// What generated code needs; not part of the API.
#[doc(hidden)]
pub mod __private {
    pub use {schemars, serde, serde_json};

    use crate::ToolError;

    /// Runs a blocking function where it does not hold up others; a panic in it fails that call.
    pub async fn run_blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Result<R, ToolError> {
        // The runtime's blocking threads also serve files and names; tools may not take them all.
        static PLACES: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(128);
        let _place = PLACES.acquire().await;
        tokio::task::spawn_blocking(work).await.map_err(|error| {
            ToolError::Protocol(crate::Error::internal("the call failed unexpectedly", error.to_string()))
        })
    }
}
