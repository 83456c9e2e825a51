//! Google's Gemini API: `generateContent`, its stream, and the list of models.
//!
//! The model and the wish for a stream are in the path and not in the body, so [`parse`] cannot know them: whoever
//! took the request sets `model` and `stream`. The key travels in a header; this API also takes it in the address,
//! where every log on the way would keep it.

mod content;
mod embeddings;
mod failure;
mod members;
mod models;
mod parse;
mod request;
mod response;
mod schema;
mod stream;
mod turns;

use bytes::Bytes;
use http::{HeaderValue, Method, header::CONTENT_TYPE};
use serde_json::{Map, Value};
use url::Url;

use super::chat::{Chat, Completion};
use super::embeddings::{Batch, Embed};
use super::{Endpoint, Error, Head, ModelInfo, Refuses, Request, untranslatable};

pub use stream::Decoder;

/// The version of the API where the base names none.
const VERSION: &str = "v1beta";

/// The most models a page may hold.
const PAGE_SIZE: &str = "1000";

/// A request for an answer, whole or in pieces; refused where this protocol cannot say it.
pub fn request(chat: &Chat, endpoint: &Endpoint, refuses: Refuses) -> Result<Request, Error> {
    // It takes files and sounds of many types, and says itself which it does not.
    untranslatable::check(chat, |_| Ok(()))?;
    let (collection, model) = resource(&chat.model);
    let method = if chat.stream { "streamGenerateContent" } else { "generateContent" };
    let mut address = address(endpoint, &[collection, &format!("{model}:{method}")]);
    if chat.stream {
        address.set_query(Some("alt=sse"));
    }
    let body = Value::Object(request::body(chat, refuses)).to_string();
    Ok(post(&address, endpoint, body.into()))
}

/// The answer to [`request`] where no stream was asked for, and any answer that reports an error.
pub fn response(head: Head<'_>, body: &[u8]) -> Result<Completion, Error> {
    response::completion(failure::check(head, body)?)
}

/// A caller's request. Its model and its wish for a stream were in its path.
pub fn parse(body: Map<String, Value>) -> Result<Chat, Error> {
    parse::chat(body)
}

/// Asks for the first page of models.
pub fn models_request(endpoint: &Endpoint) -> Request {
    models_page(endpoint, "")
}

/// Asks for the page of models that a token names.
pub fn models_page(endpoint: &Endpoint, token: &str) -> Request {
    let mut address = address(endpoint, &["models"]);
    address.query_pairs_mut().append_pair("pageSize", PAGE_SIZE);
    if !token.is_empty() {
        address.query_pairs_mut().append_pair("pageToken", token);
    }
    build(Method::GET, &address, endpoint, Bytes::new())
}

/// The models of a page that answer chats, and the token of the next page.
pub fn models_response(head: Head<'_>, body: &[u8]) -> Result<(Vec<ModelInfo>, Option<String>), Error> {
    models::page(&failure::check(head, body)?)
}

/// Asks for vectors, in as many requests as the texts need.
pub fn embed_requests(embed: &Embed, endpoint: &Endpoint) -> Result<Vec<Request>, Error> {
    let (collection, model) = resource(&embed.model);
    let address = address(endpoint, &[collection, &format!("{model}:batchEmbedContents")]);
    let request = |body: Value| post(&address, endpoint, body.to_string().into());
    Ok(embeddings::bodies(embed)?.into_iter().map(request).collect())
}

/// The vectors of one of [`embed_requests`].
pub fn embed_response(head: Head<'_>, body: &[u8]) -> Result<Batch, Error> {
    embeddings::batch(&failure::check(head, body)?)
}

/// A model's collection and its name there. A name alone is one of `models`.
fn resource(model: &str) -> (&str, &str) {
    match model.split_once('/') {
        Some((collection @ ("models" | "tunedModels"), name)) => (collection, name),
        _ => ("models", model),
    }
}

/// An address under the base. What is no part of the path is dropped: a base with `?key=` must not be sent.
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

fn post(address: &Url, endpoint: &Endpoint, body: Bytes) -> Request {
    let mut request = build(Method::POST, address, endpoint, body);
    request.headers_mut().entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
    request
}

fn build(method: Method, address: &Url, endpoint: &Endpoint, body: Bytes) -> Request {
    let mut request = http::Request::new(body);
    *request.method_mut() = method;
    // An address longer than a URI may be leads nowhere, and sending says so.
    *request.uri_mut() = address.as_str().parse().unwrap_or_default();
    let key = endpoint.key.as_ref().and_then(|key| HeaderValue::from_str(key.expose()).ok());
    if let Some(mut key) = key {
        key.set_sensitive(true);
        request.headers_mut().insert("x-goog-api-key", key);
    }
    request.headers_mut().extend(endpoint.headers.clone());
    request
}
