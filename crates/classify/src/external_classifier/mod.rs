//! Client of external MCP servers: a classification server that classifies prompts instead of corbie.
//!
//! Pure functions ([`Categories`], [`ExternalPrediction`]) parse the answers and reject any that violate the protocol. A
//! [`ExternalClassifier`] does the I/O: it connects, retries, opens a circuit breaker on repeated failures, and
//! reconnects automatically. The content of answers is never logged and never part of an error.

mod categories;
mod classifier;
mod connection;
mod error;
mod http_transport;
mod rest;
mod session;
mod snapshot;
mod state;
mod stdio;
mod streamable_http;
mod tool_result;
mod verdict;

pub use categories::Categories;
pub use classifier::ExternalClassifier;
pub use error::Error;
pub use state::State;
pub use verdict::ExternalPrediction;

pub use corbie_config::external_classifier::{Settings, Transport};

/// Maximum message size.
const MAX_MESSAGE_BYTES: usize = 4 << 20;
