//! Client of external MCP servers: a classification server that classifies prompts instead of corbie.
//!
//! Pure functions ([`Categories`], [`RemoteVerdict`]) parse the answers and reject any that violate the protocol. A
//! [`RemoteClassifier`] does the I/O: it connects, retries, opens a circuit breaker on repeated failures, and
//! reconnects automatically. The content of answers is never logged and never part of an error.

mod answer;
mod categories;
mod child;
mod classifier;
mod connection;
mod error;
mod exchange;
mod known;
mod rest;
mod session;
mod settings;
mod state;
mod streamable_http;
mod verdict;

pub use categories::Categories;
pub use classifier::RemoteClassifier;
pub use error::Error;
pub use settings::{Settings, Transport};
pub use state::State;
pub use verdict::RemoteVerdict;

/// Maximum message size.
const MOST_BYTES: usize = 4 << 20;
