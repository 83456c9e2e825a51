//! Anthropic's protocol.

mod answers;
mod failures;
mod models;
mod requests;
