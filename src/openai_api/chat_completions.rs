//! `POST /v1/chat/completions`.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use corbie_mcp::Caller;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::cache::{By, Found, Kept, Place};
use super::failure::Failure;
use super::{Face, Held, decision_headers, stream};
use crate::providers::Answered;
use crate::providers::openai::{self, NotReceived, Received};
use crate::route::Ask;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream; charset=utf-8";
/// `hit` or `miss`, if the cache is enabled.
const CACHE: HeaderName = HeaderName::from_static("x-corbie-cache");
/// Kind of cache hit: `exact` or `semantic`.
const CACHE_BY: HeaderName = HeaderName::from_static("x-corbie-cache-by");

pub(super) async fn post(
    State(face): State<Face>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let (body, held) = face.admit(&caller, "chat_completion", &headers, body).await?;
    let received = Received::read(body).map_err(|not_received| {
        let parameter = match &not_received {
            NotReceived::Member(name) => Some(*name),
            _ => None,
        };
        Failure::invalid(not_received.to_string(), parameter)
    })?;
    let place = match &face.cache {
        None => None,
        Some(cache) => match cache.find(&received, &caller.identity, &headers).await {
            Found::Kept(kept, by) => return Ok(again(&face, &received, &caller, &kept, by)),
            Found::Nothing(place) => Some(place),
        },
    };
    match received.stream {
        true => pieces(&face, received, caller, place, held).await,
        false => whole(&face, received, caller, place).await,
    }
}

fn ask(face: &Face, received: Received, caller: Caller) -> Ask {
    let model = received.model.clone();
    let documents = face.router.documents_for(&caller);
    Ask { question: received.into(), model, caller: Some(caller.identity), documents }
}

/// Returns a cached response.
fn again(face: &Face, received: &Received, caller: &Caller, kept: &Kept, by: By) -> Response {
    let (asked, caller) = (received.model.as_deref(), caller.identity.clone());
    let record = face.router.given_again(asked, caller, &kept.provider, &kept.model);
    let mut response = Response::new(Body::from(kept.body.clone()));
    let headers = response.headers_mut();
    match kept.stream {
        true => event_headers(headers),
        false => drop(headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON))),
    }
    headers.insert(CACHE, HeaderValue::from_static("hit"));
    headers.insert(CACHE_BY, HeaderValue::from_static(by.as_str()));
    decision_headers::add(headers, &record);
    response
}

async fn whole(face: &Face, received: Received, caller: Caller, place: Option<Place>) -> Result<Response, Failure> {
    let (answered, record) = face.router.pass_on(ask(face, received, caller)).await?;
    let (provider, model) = record.answered_by();
    let body = match answered {
        Answered::AsItCame { body, .. } => body,
        Answered::Read(completion) => {
            // The provider's name of the model, as in a stream.
            let model = if completion.model.is_empty() { model } else { &completion.model };
            openai::render(&completion, model, now()).to_string().into()
        }
    };
    let looked = place.is_some();
    if let Some(place) = place {
        place.keep(body.clone(), false, provider, model);
    }
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    decision_headers::add(response.headers_mut(), &record);
    missed(&mut response, looked);
    Ok(response)
}

/// Adds the header for a cache miss, if the cache was searched.
fn missed(response: &mut Response, looked: bool) {
    if looked {
        response.headers_mut().insert(CACHE, HeaderValue::from_static("miss"));
    }
}

/// Sends the headers together with the first event, so that failover is possible until then.
async fn pieces(
    face: &Face,
    received: Received,
    caller: Caller,
    place: Option<Place>,
    held: Held,
) -> Result<Response, Failure> {
    let Received { with_usage, several, .. } = received;
    let mut answering = face.router.stream(ask(face, received, caller)).await?;
    // With several choices, completeness can only be determined by parsing all of them.
    if !several {
        answering.pass_on();
    }
    let record = answering.record().clone();
    let encoder = openai::Encoder::new(record.answered_by().1, now(), with_usage);
    let looked = place.is_some();
    let events = stream::events(answering, encoder, with_usage, place, held).await;
    let mut response = Response::new(Body::from_stream(events));
    event_headers(response.headers_mut());
    decision_headers::add(response.headers_mut(), &record);
    missed(&mut response, looked);
    Ok(response)
}

/// Proxies must not cache a stream, whether or not it is in the response cache.
fn event_headers(headers: &mut HeaderMap) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
}

pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
