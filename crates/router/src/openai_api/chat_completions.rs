//! `POST /v1/chat/completions`.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use corbie_mcp::Caller;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::cache::{CacheLookup, CacheMatch, CacheSlot, CachedResponse};
use super::error::ApiError;
use super::{ApiState, RequestGuard, decision_headers, stream};
use crate::RouteRequest;
use corbie_llm::ChatResponse;
use corbie_llm::openai::{self, InvalidRequest, RawChatRequest};

const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";
/// `hit` or `miss`, if the cache is enabled.
const CACHE_HEADER: HeaderName = HeaderName::from_static("x-corbie-cache");
/// Kind of cache hit: `exact` or `semantic`.
const CACHE_MATCH_HEADER: HeaderName = HeaderName::from_static("x-corbie-cache-by");

pub(super) async fn post(
    State(face): State<ApiState>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let (body, held) = face.admit(&caller, "chat_completion", &headers, body).await?;
    let received = RawChatRequest::read(body).map_err(|not_received| {
        let parameter = match &not_received {
            InvalidRequest::Field(name) => Some(*name),
            _ => None,
        };
        ApiError::invalid(not_received.to_string(), parameter)
    })?;
    let place = match &face.cache {
        None => None,
        Some(cache) => match cache.lookup(&received, &caller.identity, &headers).await {
            CacheLookup::Hit(kept, by) => return Ok(cached_response(&face, &received, &caller, &kept, by)),
            CacheLookup::Miss(place) => Some(place),
        },
    };
    match received.stream {
        true => streaming_response(&face, received, caller, place, held).await,
        false => buffered_response(&face, received, caller, place).await,
    }
}

fn route_request(face: &ApiState, received: RawChatRequest, caller: Caller) -> RouteRequest {
    let model = received.model.clone();
    let documents = face.router.document_access(&caller);
    RouteRequest { request: received.into(), model, caller: Some(caller.identity), documents }
}

/// Returns a cached response.
fn cached_response(
    face: &ApiState,
    received: &RawChatRequest,
    caller: &Caller,
    kept: &CachedResponse,
    by: CacheMatch,
) -> Response {
    let (asked, caller) = (received.model.as_deref(), caller.identity.clone());
    let record = face.router.record_cached(asked, caller, &kept.provider, &kept.model);
    let mut response = Response::new(Body::from(kept.body.clone()));
    let headers = response.headers_mut();
    match kept.stream {
        true => event_headers(headers),
        false => drop(headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON))),
    }
    headers.insert(CACHE_HEADER, HeaderValue::from_static("hit"));
    headers.insert(CACHE_MATCH_HEADER, HeaderValue::from_static(by.as_str()));
    decision_headers::add(headers, &record);
    response
}

async fn buffered_response(
    face: &ApiState,
    received: RawChatRequest,
    caller: Caller,
    place: Option<CacheSlot>,
) -> Result<Response, ApiError> {
    let (answered, record) = face.router.passthrough(route_request(face, received, caller)).await?;
    let (provider, model) = record.answered_by();
    let body = match answered {
        ChatResponse::Passthrough { body, .. } => body,
        ChatResponse::Parsed(completion) => {
            // The provider's name of the model, as in a stream.
            let model = if completion.model.is_empty() { model } else { &completion.model };
            openai::render(&completion, model, unix_seconds()).to_string().into()
        }
    };
    let looked = place.is_some();
    if let Some(place) = place {
        place.store(body.clone(), false, provider, model);
    }
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    decision_headers::add(response.headers_mut(), &record);
    mark_cache_miss(&mut response, looked);
    Ok(response)
}

/// Adds the header for a cache miss, if the cache was searched.
fn mark_cache_miss(response: &mut Response, looked: bool) {
    if looked {
        response.headers_mut().insert(CACHE_HEADER, HeaderValue::from_static("miss"));
    }
}

/// Sends the headers together with the first event, so that failover is possible until then.
async fn streaming_response(
    face: &ApiState,
    received: RawChatRequest,
    caller: Caller,
    place: Option<CacheSlot>,
    held: RequestGuard,
) -> Result<Response, ApiError> {
    let RawChatRequest { with_usage, wants_multiple_choices: several, .. } = received;
    let mut answering = face.router.stream(route_request(face, received, caller)).await?;
    // With several choices, completeness can only be determined by parsing all of them.
    if !several {
        answering.enable_passthrough();
    }
    let record = answering.record().clone();
    let encoder = openai::Encoder::new(record.answered_by().1, unix_seconds(), with_usage);
    let looked = place.is_some();
    let events = stream::events(answering, encoder, with_usage, place, held).await;
    let mut response = Response::new(Body::from_stream(events));
    event_headers(response.headers_mut());
    decision_headers::add(response.headers_mut(), &record);
    mark_cache_miss(&mut response, looked);
    Ok(response)
}

/// Proxies must not cache a stream, whether or not it is in the response cache.
fn event_headers(headers: &mut HeaderMap) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
}

pub(super) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
