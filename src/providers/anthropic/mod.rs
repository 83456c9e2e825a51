//! Anthropic's Messages API, and whoever else speaks it.

mod blocks;
mod documents;
mod failure;
mod models;
mod parse;
mod request;
mod response;
mod schema;
mod stream;
mod thinking;
mod turns;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Method};
use serde_json::{Map, Value};
use url::Url;

pub use stream::Decoder;

use super::chat::{Chat, Completion};
use super::{Endpoint, Error, Head, ModelInfo, Refuses, Request, untranslatable};

/// The version of the API whose answers we read.
///
/// There is a newer one, `2026-10-21`, which the official SDKs send since that day. For messages it only takes away: it
/// refuses `temperature`, `top_p` and `top_k` for every model and whatever their value, documents in turns of the
/// assistant, and citations in turns of the user. Answers are the same. Under this one, models that take a temperature
/// still do, callers who speak this protocol are passed on as they came, and others who speak it know no newer one.
/// Whoever wants the newer one sets the header for the provider.
const VERSION: &str = "2023-06-01";

/// A chat as the request that asks for its answer; refused where this protocol cannot say it.
pub fn request(chat: &Chat, endpoint: &Endpoint, refuses: Refuses) -> Result<Request, Error> {
    untranslatable::check(chat, documents::takes)?;
    let body = Value::Object(request::body(chat, refuses)).to_string();
    let mut request = call(Method::POST, endpoint, &url(endpoint, "/v1/messages"), Bytes::from(body));
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(with_headers_of(endpoint, request))
}

/// The answer in a response, or why there is none.
pub fn response(head: Head<'_>, body: &[u8]) -> Result<Completion, Error> {
    if !head.status.is_success() {
        return Err(failure::of_response(head, body));
    }
    response::completion(body)
}

/// A request that somebody made in this protocol, kept as it came beside what we understand of it.
pub fn parse(body: Map<String, Value>) -> Result<Chat, Error> {
    parse::chat(body)
}

/// Asks for the first page of the models.
pub fn models_request(endpoint: &Endpoint) -> Request {
    let request = call(Method::GET, endpoint, &models::page(url(endpoint, "/v1/models"), None), Bytes::new());
    with_headers_of(endpoint, request)
}

/// Asks for the page of the models that a [`models_response`] pointed to.
pub fn models_page(endpoint: &Endpoint, token: &str) -> Request {
    let request = call(Method::GET, endpoint, &models::page(url(endpoint, "/v1/models"), Some(token)), Bytes::new());
    with_headers_of(endpoint, request)
}

/// A page of the models, and what to ask the next one with if there is one.
pub fn models_response(head: Head<'_>, body: &[u8]) -> Result<(Vec<ModelInfo>, Option<String>), Error> {
    if !head.status.is_success() {
        return Err(failure::of_response(head, body));
    }
    models::list(body)
}

fn url(endpoint: &Endpoint, path: &str) -> Url {
    let mut url = endpoint.base.clone();
    // People write the base with the version and without it.
    let base = url.path().trim_end_matches('/').trim_end_matches("/v1");
    let path = format!("{base}{path}");
    url.set_path(&path);
    url
}

fn call(method: Method, endpoint: &Endpoint, url: &Url, body: Bytes) -> Request {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    // The one URL that is no URI is a far too long one. Without a host it cannot be sent, which is a clear failure.
    *request.uri_mut() = url.as_str().parse().unwrap_or_default();
    let headers = request.headers_mut();
    headers.insert(HeaderName::from_static("anthropic-version"), HeaderValue::from_static(VERSION));
    if let Some(Ok(mut key)) = endpoint.key.as_ref().map(|key| HeaderValue::from_str(key.expose())) {
        key.set_sensitive(true);
        headers.insert(HeaderName::from_static("x-api-key"), key);
    }
    request
}

/// Last, so that an operator can replace what we say.
fn with_headers_of(endpoint: &Endpoint, mut request: Request) -> Request {
    request.headers_mut().extend(endpoint.headers.clone());
    request
}
