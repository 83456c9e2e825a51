//! Chat completions, as OpenAI speaks them and everyone compatible with it: Ollama, vLLM, llama.cpp, LM Studio and more.
//!
//! The compatible ones leave out members, so nothing is demanded of an answer but what makes it one.

mod chunks;
mod content;
mod details;
mod effort;
mod embeddings;
mod failure;
mod faultless;
mod foreign;
mod members;
mod messages;
mod models;
mod parse;
mod part;
pub mod plain;
mod received;
mod render;
mod request;
mod response;
mod stream;
mod strict;
mod turns;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::chat::Usage;
use super::embeddings::{Embed, Embedded};
use super::{Chat, Completion, Endpoint, Error, Head, ModelInfo, Refuses, Request};

pub use chunks::Encoder;
pub use received::{NotReceived, Received};
pub use stream::Decoder;

/// Asks for an answer.
pub fn request(chat: &Chat, endpoint: &Endpoint, refuses: Refuses) -> Request {
    let body = request::body(chat, refuses).into_bytes();
    request::address(http::Method::POST, endpoint, "chat/completions", body)
}

/// Asks OpenAI itself for an answer.
pub fn official_request(chat: &Chat, endpoint: &Endpoint, refuses: Refuses) -> Request {
    let cleaned = foreign::without(chat);
    request(cleaned.as_ref().unwrap_or(chat), endpoint, refuses)
}

/// Reads an answer that came whole.
pub fn response(head: Head<'_>, body: &[u8]) -> Result<Completion, Error> {
    succeeded(head, body)?;
    response::read(body)
}

/// The tokens of an answer that lacks nothing and can go on as it came to a caller who speaks this protocol.
pub fn faultless(head: Head<'_>, body: &[u8]) -> Option<Usage> {
    head.status.is_success().then(|| faultless::usage(body)).flatten()
}

/// Whether a chunk says something that its deltas do not.
pub fn says_something_else(data: &str) -> bool {
    stream::says_something_else(data)
}

/// Asks which models there are.
pub fn models_request(endpoint: &Endpoint) -> Request {
    request::address(http::Method::GET, endpoint, "models", Bytes::new())
}

/// Reads which models there are. They all come at once: there is never a next page.
pub fn models_response(head: Head<'_>, body: &[u8]) -> Result<(Vec<ModelInfo>, Option<String>), Error> {
    succeeded(head, body)?;
    Ok((models::read(body)?, None))
}

/// Asks for vectors.
pub fn embed_request(embed: &Embed, endpoint: &Endpoint) -> Request {
    request::address(http::Method::POST, endpoint, "embeddings", embeddings::body(embed).into())
}

/// Vectors, as they came.
pub fn embed_response(head: Head<'_>, body: &Bytes) -> Result<Embedded, Error> {
    succeeded(head, body)?;
    embeddings::read(body)
}

/// Reads a caller's request and keeps it as it came beside what corbie understood of it.
pub fn parse(body: Map<String, Value>) -> Result<Chat, Error> {
    parse::parse(body)
}

/// Writes an answer for a caller who speaks this protocol; `model` is the name the caller knows.
pub fn render(completion: &Completion, model: &str, created: u64) -> Value {
    render::render(completion, model, created)
}

fn succeeded(head: Head<'_>, body: &[u8]) -> Result<(), Error> {
    match head.status.is_success() {
        true => Ok(()),
        false => Err(failure::of(head, body)),
    }
}
