//! Other MCP servers that corbie asks: a classification server that sorts prompts in its place.
//!
//! What a server answers is read by pure functions ([`Categories`], [`RemoteVerdict`]), and nothing gets through that
//! breaks the rules of the protocol. A [`RemoteClassifier`] does the waiting: it starts the conversation, tries again,
//! leaves a server alone that keeps failing, and notices by itself when it is back. What a server answers is never
//! logged and never repeated in an error.

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

/// A larger message is no answer.
const MOST_BYTES: usize = 4 << 20;
