//! OpenAI chat completions, also for compatible servers: Ollama, vLLM, llama.cpp, LM Studio and more.
//!
//! Compatible servers omit fields, so only the essential fields of a response are required.

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
use super::signer::Signer;
use super::{Chat, Completion, Endpoint, Error, Head, ModelInfo, Refuses, Request};

pub use chunks::Encoder;
pub use received::{NotReceived, Received};
pub use stream::Decoder;

/// A chat request.
pub fn request(chat: &Chat, endpoint: &Endpoint, refuses: Refuses) -> Request {
    let body = request::body(chat, refuses).into_bytes();
    request::address(http::Method::POST, endpoint, "chat/completions", body)
}

/// A chat request to OpenAI itself.
pub fn official_request(chat: &Chat, endpoint: &Endpoint, refuses: Refuses) -> Request {
    let cleaned = foreign::without(chat, None);
    request(cleaned.as_ref().unwrap_or(chat), endpoint, refuses)
}

/// A chat request to a compatible server, without fields that other models have signed.
pub fn compatible_request(chat: &Chat, endpoint: &Endpoint, refuses: Refuses, signer: &Signer) -> Request {
    let cleaned = foreign::without(chat, Some(signer));
    request(cleaned.as_ref().unwrap_or(chat), endpoint, refuses)
}

/// A buffered response, or an event of a stream, whose signed fields name their signer; `None` if it has none.
pub fn signed(body: &[u8], signer: &Signer) -> Option<String> {
    if !foreign::may_be_signed(body) {
        return None;
    }
    let mut body: Map<String, Value> = serde_json::from_slice(body).ok()?;
    foreign::sign(&mut body, signer);
    serde_json::to_string(&body).ok()
}

/// Parses a buffered response.
pub fn response(head: Head<'_>, body: &[u8]) -> Result<Completion, Error> {
    succeeded(head, body)?;
    response::read(body)
}

/// The token usage of a complete response that can pass through unmodified to an OpenAI client.
pub fn faultless(head: Head<'_>, body: &[u8]) -> Option<Usage> {
    head.status.is_success().then(|| faultless::usage(body)).flatten()
}

/// Whether a chunk carries content that its deltas do not represent.
pub fn says_something_else(data: &str) -> bool {
    stream::says_something_else(data)
}

/// Requests the model list.
pub fn models_request(endpoint: &Endpoint) -> Request {
    request::address(http::Method::GET, endpoint, "models", Bytes::new())
}

/// Parses the model list. It has a single page.
pub fn models_response(head: Head<'_>, body: &[u8]) -> Result<(Vec<ModelInfo>, Option<String>), Error> {
    succeeded(head, body)?;
    Ok((models::read(body)?, None))
}

/// An embedding request.
pub fn embed_request(embed: &Embed, endpoint: &Endpoint) -> Request {
    request::address(http::Method::POST, endpoint, "embeddings", embeddings::body(embed).into())
}

/// An embedding response, passed through unmodified.
pub fn embed_response(head: Head<'_>, body: &Bytes) -> Result<Embedded, Error> {
    succeeded(head, body)?;
    embeddings::read(body)
}

/// Parses a client's request and keeps the original body.
pub fn parse(body: Map<String, Value>) -> Result<Chat, Error> {
    parse::parse(body)
}

/// Serializes a response for an OpenAI client; `model` is the name the client requested.
pub fn render(completion: &Completion, model: &str, created: u64) -> Value {
    render::render(completion, model, created)
}

fn succeeded(head: Head<'_>, body: &[u8]) -> Result<(), Error> {
    match head.status.is_success() {
        true => Ok(()),
        false => Err(failure::of(head, body)),
    }
}
