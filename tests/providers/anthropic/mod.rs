//! Anthropic's protocol.

mod answers;
mod errors;
mod models;
mod requests;
