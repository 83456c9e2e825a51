//! Anthropic's Messages API, also for compatible servers.

mod blocks;
mod documents;
mod error;
mod messages;
mod models;
mod parse;
mod request;
mod response;
mod schema;
mod stream;
mod thinking;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Method};
use serde_json::{Map, Value};
use url::Url;

pub use stream::AnthropicDecoder;

use super::chat::{Chat, Completion};
use super::{Endpoint, Error, HttpRequest, ModelInfo, ResponseHead, UnsupportedParameters, unsupported};

/// The API version whose responses are parsed.
///
/// A newer version, `2026-10-21`, is sent by the official SDKs since that date. For messages it only removes features:
/// it rejects `temperature`, `top_p` and `top_k` for every model and every value, documents in assistant messages, and
/// citations in user messages. Responses are unchanged. With this version, models that support a temperature still
/// accept it, requests of Anthropic clients pass through unmodified, and compatible servers that lack the newer version
/// work. To use the newer version, set the header for the provider.
const VERSION: &str = "2023-06-01";

/// A chat request. Fails if this protocol cannot express the chat.
pub fn request(chat: &Chat, endpoint: &Endpoint, refuses: UnsupportedParameters) -> Result<HttpRequest, Error> {
    unsupported::check(chat, documents::check_part)?;
    let body = Value::Object(request::body(chat, refuses)).to_string();
    let mut request = call(Method::POST, endpoint, &url(endpoint, "/v1/messages"), Bytes::from(body));
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(with_headers_of(endpoint, request))
}

/// Parses a response or the error it reports.
pub fn response(head: ResponseHead<'_>, body: &[u8]) -> Result<Completion, Error> {
    if !head.status.is_success() {
        return Err(error::from_response(head, body));
    }
    response::completion(body)
}

/// Parses a client's request in this protocol and keeps the original body.
pub fn parse(body: Map<String, Value>) -> Result<Chat, Error> {
    parse::chat(body)
}

/// Requests the first page of models.
pub fn models_request(endpoint: &Endpoint) -> HttpRequest {
    let request = call(Method::GET, endpoint, &models::page(url(endpoint, "/v1/models"), None), Bytes::new());
    with_headers_of(endpoint, request)
}

/// Requests the page of models that a [`models_response`] pointed to.
pub fn models_page(endpoint: &Endpoint, token: &str) -> HttpRequest {
    let request = call(Method::GET, endpoint, &models::page(url(endpoint, "/v1/models"), Some(token)), Bytes::new());
    with_headers_of(endpoint, request)
}

/// Parses a page of models, and the token of the next page if there is one.
pub fn models_response(head: ResponseHead<'_>, body: &[u8]) -> Result<(Vec<ModelInfo>, Option<String>), Error> {
    if !head.status.is_success() {
        return Err(error::from_response(head, body));
    }
    models::list(body)
}

fn url(endpoint: &Endpoint, path: &str) -> Url {
    let mut url = endpoint.base.clone();
    // Operators write the base URL with or without the version.
    let base = url.path().trim_end_matches('/').trim_end_matches("/v1");
    let path = format!("{base}{path}");
    url.set_path(&path);
    url
}

fn call(method: Method, endpoint: &Endpoint, url: &Url, body: Bytes) -> HttpRequest {
    let mut request = HttpRequest::new(body);
    *request.method_mut() = method;
    // The only URL that is not a valid URI is an overlong one. The empty URI has no host, so sending it fails with a
    // clear error.
    *request.uri_mut() = url.as_str().parse().unwrap_or_default();
    let headers = request.headers_mut();
    headers.insert(HeaderName::from_static("anthropic-version"), HeaderValue::from_static(VERSION));
    if let Some(Ok(mut key)) = endpoint.key.as_ref().map(|key| HeaderValue::from_str(key.expose())) {
        key.set_sensitive(true);
        headers.insert(HeaderName::from_static("x-api-key"), key);
    }
    request
}

/// Applied last, so that the operator's headers override the defaults.
fn with_headers_of(endpoint: &Endpoint, mut request: HttpRequest) -> HttpRequest {
    request.headers_mut().extend(endpoint.headers.clone());
    request
}
