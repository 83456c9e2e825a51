//! Google Gemini API: `generateContent`, streaming, embeddings and the model list.
//!
//! The model and the streaming flag are in the path rather than the body, so [`parse`] cannot set them: the caller sets
//! `model` and `stream`. The key is sent in a header. The API also accepts it in the URL, where access logs would
//! record it.

mod contents;
mod embeddings;
mod error;
mod fields;
mod models;
mod parse;
mod parts;
mod request;
mod response;
mod schema;
mod stream;

use bytes::Bytes;
use http::{HeaderValue, Method, header::CONTENT_TYPE};
use serde_json::{Map, Value};
use url::Url;

use super::chat::{Chat, Completion};
use super::embeddings::{EmbeddingBatch, EmbeddingRequest};
use super::{Endpoint, Error, HttpRequest, ModelInfo, ResponseHead, UnsupportedParameters, unsupported};

pub use stream::GoogleDecoder;

/// API version to use if the base URL has none.
const VERSION: &str = "v1beta";

/// Maximum number of models per page.
const PAGE_SIZE: &str = "1000";

/// A chat request, buffered or streaming. Fails if this protocol cannot express the chat.
pub fn request(chat: &Chat, endpoint: &Endpoint, refuses: UnsupportedParameters) -> Result<HttpRequest, Error> {
    // The API accepts many file and audio types and reports unsupported types itself.
    unsupported::check(chat, |_| Ok(()))?;
    let (collection, model) = resource(&chat.model);
    let method = if chat.stream { "streamGenerateContent" } else { "generateContent" };
    let mut address = address(endpoint, &[collection, &format!("{model}:{method}")]);
    if chat.stream {
        address.set_query(Some("alt=sse"));
    }
    let body = Value::Object(request::body(chat, refuses)).to_string();
    Ok(post(&address, endpoint, body.into()))
}

/// Parses the buffered response to [`request`], and any error response.
pub fn response(head: ResponseHead<'_>, body: &[u8]) -> Result<Completion, Error> {
    response::completion(error::check(head, body)?)
}

/// Parses a client's request. Its model and streaming flag were in the path.
pub fn parse(body: Map<String, Value>) -> Result<Chat, Error> {
    parse::chat(body)
}

/// Requests the first page of models.
pub fn models_request(endpoint: &Endpoint) -> HttpRequest {
    models_page(endpoint, "")
}

/// Requests the page of models that a token identifies.
pub fn models_page(endpoint: &Endpoint, token: &str) -> HttpRequest {
    let mut address = address(endpoint, &["models"]);
    address.query_pairs_mut().append_pair("pageSize", PAGE_SIZE);
    if !token.is_empty() {
        address.query_pairs_mut().append_pair("pageToken", token);
    }
    build(Method::GET, &address, endpoint, Bytes::new())
}

/// The chat models of a page, and the token of the next page.
pub fn models_response(head: ResponseHead<'_>, body: &[u8]) -> Result<(Vec<ModelInfo>, Option<String>), Error> {
    models::page(&error::check(head, body)?)
}

/// Embedding requests, one per batch of texts.
pub fn embed_requests(embed: &EmbeddingRequest, endpoint: &Endpoint) -> Result<Vec<HttpRequest>, Error> {
    let (collection, model) = resource(&embed.model);
    let address = address(endpoint, &[collection, &format!("{model}:batchEmbedContents")]);
    let request = |body: Value| post(&address, endpoint, body.to_string().into());
    Ok(embeddings::bodies(embed)?.into_iter().map(request).collect())
}

/// Parses the response to one of [`embed_requests`].
pub fn embed_response(head: ResponseHead<'_>, body: &[u8]) -> Result<EmbeddingBatch, Error> {
    embeddings::batch(&error::check(head, body)?)
}

/// A model's collection and its name in it. A bare name belongs to `models`.
fn resource(model: &str) -> (&str, &str) {
    match model.split_once('/') {
        Some((collection @ ("models" | "tunedModels"), name)) => (collection, name),
        _ => ("models", model),
    }
}

/// A URL under the base. The query and fragment are dropped, so that a base URL with `?key=` does not leak the key.
fn address(endpoint: &Endpoint, segments: &[&str]) -> Url {
    let mut address = endpoint.base.clone();
    address.set_query(None);
    address.set_fragment(None);
    let last = address.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let has_version = last.starts_with("v1");
    if let Ok(mut path) = address.path_segments_mut() {
        path.pop_if_empty();
        if !has_version {
            path.push(VERSION);
        }
        path.extend(segments);
    }
    address
}

fn post(address: &Url, endpoint: &Endpoint, body: Bytes) -> HttpRequest {
    let mut request = build(Method::POST, address, endpoint, body);
    request.headers_mut().entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
    request
}

fn build(method: Method, address: &Url, endpoint: &Endpoint, body: Bytes) -> HttpRequest {
    let mut request = http::Request::new(body);
    *request.method_mut() = method;
    // A URL that exceeds the URI length limit becomes empty, and sending it fails.
    *request.uri_mut() = address.as_str().parse().unwrap_or_default();
    let key = endpoint.key.as_ref().and_then(|key| HeaderValue::from_str(key.expose()).ok());
    if let Some(mut key) = key {
        key.set_sensitive(true);
        request.headers_mut().insert("x-goog-api-key", key);
    }
    request.headers_mut().extend(endpoint.headers.clone());
    request
}
