//! OpenAI chat completions, also for compatible servers: Ollama, vLLM, llama.cpp, LM Studio and more.
//!
//! Compatible servers omit fields, so only the essential fields of a response are required.

mod chunk_encoder;
mod content;
mod effort;
mod embeddings;
mod error;
mod json_scan;
mod messages;
mod models;
mod parse;
mod parse_messages;
mod part;
pub mod passthrough_event;
mod passthrough_response;
mod raw_request;
mod reasoning_details;
mod render;
mod request;
mod response;
mod signed_fields;
mod stream;
mod strict_schema;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::chat::Usage;
use super::embeddings::{EmbeddingRequest, EmbeddingResponse};
use super::signer::Signer;
use super::{Chat, Completion, Endpoint, Error, HttpRequest, ModelInfo, ResponseHead, UnsupportedParameters};

pub use chunk_encoder::Encoder;
pub use raw_request::{InvalidRequest, RawChatRequest};
pub use stream::OpenAiDecoder;

/// A chat request.
pub fn request(chat: &Chat, endpoint: &Endpoint, refuses: UnsupportedParameters) -> HttpRequest {
    let body = request::body(chat, refuses).into_bytes();
    request::build_http_request(http::Method::POST, endpoint, "chat/completions", body)
}

/// A chat request to OpenAI itself.
pub fn official_request(chat: &Chat, endpoint: &Endpoint, refuses: UnsupportedParameters) -> HttpRequest {
    let cleaned = signed_fields::strip_foreign(chat, None);
    request(cleaned.as_ref().unwrap_or(chat), endpoint, refuses)
}

/// A chat request to a compatible server, without fields that other models have signed.
pub fn compatible_request(
    chat: &Chat,
    endpoint: &Endpoint,
    refuses: UnsupportedParameters,
    signer: &Signer,
) -> HttpRequest {
    let cleaned = signed_fields::strip_foreign(chat, Some(signer));
    request(cleaned.as_ref().unwrap_or(chat), endpoint, refuses)
}

/// A buffered response, or an event of a stream, whose signed fields name their signer; `None` if it has none.
pub fn name_signer(body: &[u8], signer: &Signer) -> Option<String> {
    if !signed_fields::may_be_signed(body) {
        return None;
    }
    let mut body: Map<String, Value> = serde_json::from_slice(body).ok()?;
    signed_fields::sign(&mut body, signer);
    serde_json::to_string(&body).ok()
}

/// Parses a buffered response.
pub fn response(head: ResponseHead<'_>, body: &[u8]) -> Result<Completion, Error> {
    check_status(head, body)?;
    response::read(body)
}

/// The token usage of a complete response that can pass through unmodified to an OpenAI client.
pub fn passthrough_usage(head: ResponseHead<'_>, body: &[u8]) -> Option<Usage> {
    head.status.is_success().then(|| passthrough_response::usage(body)).flatten()
}

/// Whether a chunk carries content that its deltas do not represent.
pub fn has_unmodelled_content(data: &str) -> bool {
    stream::has_unmodelled_content(data)
}

/// Requests the model list.
pub fn models_request(endpoint: &Endpoint) -> HttpRequest {
    request::build_http_request(http::Method::GET, endpoint, "models", Bytes::new())
}

/// Parses the model list. It has a single page.
pub fn models_response(head: ResponseHead<'_>, body: &[u8]) -> Result<(Vec<ModelInfo>, Option<String>), Error> {
    check_status(head, body)?;
    Ok((models::read(body)?, None))
}

/// An embedding request.
pub fn embed_request(embed: &EmbeddingRequest, endpoint: &Endpoint) -> HttpRequest {
    request::build_http_request(http::Method::POST, endpoint, "embeddings", embeddings::body(embed).into())
}

/// An embedding response, passed through unmodified.
pub fn embed_response(head: ResponseHead<'_>, body: &Bytes) -> Result<EmbeddingResponse, Error> {
    check_status(head, body)?;
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

fn check_status(head: ResponseHead<'_>, body: &[u8]) -> Result<(), Error> {
    match head.status.is_success() {
        true => Ok(()),
        false => Err(error::from_response(head, body)),
    }
}
