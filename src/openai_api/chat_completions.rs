//! `POST /v1/chat/completions`.

use std::time::{SystemTime, UNIX_EPOCH};

use super::failure::Failure;
use super::{Face, decision_headers, stream};
use crate::providers::Answered;
use crate::providers::openai::{self, NotReceived, Received};
use crate::route::Ask;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use corbie_mcp::Caller;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

/// The model that means: choose one.
pub(super) const AUTO: &str = "auto";

pub(super) async fn post(
    State(face): State<Face>,
    Extension(caller): Extension<Caller>,
    body: Body,
) -> Result<Response, Failure> {
    let body = face.admit(&caller, body).await?;
    let received = Received::read(body).map_err(|not_received| {
        let parameter = match &not_received {
            NotReceived::Member(name) => Some(*name),
            _ => None,
        };
        Failure::invalid(not_received.to_string(), parameter)
    })?;
    match received.stream {
        true => pieces(&face, received, caller).await,
        false => whole(&face, received, caller).await,
    }
}

fn ask(received: Received, caller: Caller) -> Ask {
    let model = received.model.clone().filter(|model| model != AUTO);
    Ask { question: received.into(), model, caller: Some(caller.identity) }
}

async fn whole(face: &Face, received: Received, caller: Caller) -> Result<Response, Failure> {
    let (answered, record) = face.router.pass_on(ask(received, caller)).await?;
    let body = match answered {
        Answered::AsItCame { body, .. } => Body::from(body),
        Answered::Read(completion) => {
            // As its provider names it, as in a stream.
            let asked_for = record.model.as_deref().unwrap_or_default();
            let model = if completion.model.is_empty() { asked_for } else { &completion.model };
            Body::from(openai::render(&completion, model, now()).to_string())
        }
    };
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    decision_headers::add(response.headers_mut(), &record);
    Ok(response)
}

/// The head is sent with the first piece, so that failover works until then.
async fn pieces(face: &Face, received: Received, caller: Caller) -> Result<Response, Failure> {
    let with_usage = received.with_usage;
    let answering = face.router.stream(ask(received, caller)).await?;
    let record = answering.record().clone();
    let model = record.model.clone().unwrap_or_default();
    let encoder = openai::Encoder::new(model, now(), with_usage);
    let head = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    let mut response = (head, Body::from_stream(stream::events(answering, encoder, with_usage))).into_response();
    decision_headers::add(response.headers_mut(), &record);
    Ok(response)
}

pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
