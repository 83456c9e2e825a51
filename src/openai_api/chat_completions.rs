//! `POST /v1/chat/completions`.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use corbie_mcp::Caller;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde_json::{Map, Value};

use super::failure::Failure;
use super::{Face, decision_headers, stream};
use crate::providers::{self, openai};
use crate::route::{Ask, Routed};

/// The model that means: choose one.
pub(super) const AUTO: &str = "auto";

pub(super) async fn post(
    State(face): State<Face>,
    Extension(caller): Extension<Caller>,
    body: Body,
) -> Result<Response, Failure> {
    let body = face.admit(&caller, body).await?;
    let asked = Asked::read(body, caller)?;
    match asked.stream {
        true => pieces(&face, asked).await,
        false => whole(&face, asked).await,
    }
}

/// What a caller wants.
struct Asked {
    ask: Ask,
    stream: bool,
    /// The caller wants to be told of tokens at the end of a stream.
    with_usage: bool,
}

impl Asked {
    fn read(body: Map<String, Value>, caller: Caller) -> Result<Asked, Failure> {
        let model = match body.get("model") {
            None | Some(Value::Null) => None,
            Some(Value::String(model)) if model == AUTO => None,
            Some(Value::String(model)) => Some(model.clone()),
            Some(_) => return Err(Failure::invalid("`model` must be the name of a model, or `auto`", Some("model"))),
        };
        let with_usage = body.get("stream_options").is_some_and(|options| options["include_usage"] == true);
        let chat = openai::parse(body).map_err(|error| unreadable(&error))?;
        Ok(Asked { stream: chat.stream, with_usage, ask: Ask { chat, model, caller: Some(caller.identity) } })
    }
}

fn unreadable(error: &providers::Error) -> Failure {
    match error.parameter() {
        Some(name) => Failure::invalid(format!("`{name}` is missing or cannot be read"), Some(name)),
        None => Failure::invalid(error.to_string(), None),
    }
}

async fn whole(face: &Face, asked: Asked) -> Result<Response, Failure> {
    let Routed { completion, record } = face.router.ask(asked.ask).await?;
    // As its provider names it, as in a stream.
    let asked_for = record.model.as_deref().unwrap_or_default();
    let model = if completion.model.is_empty() { asked_for } else { &completion.model };
    let body = openai::render(&completion, model, now()).to_string();
    let json = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    let mut response = (json, body).into_response();
    decision_headers::add(response.headers_mut(), &record);
    Ok(response)
}

/// The head is sent with the first piece, so that failover works until then.
async fn pieces(face: &Face, asked: Asked) -> Result<Response, Failure> {
    let answering = face.router.stream(asked.ask).await?;
    let record = answering.record().clone();
    let model = record.model.clone().unwrap_or_default();
    let encoder = openai::Encoder::new(model, now(), asked.with_usage);
    let head = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    let mut response = (head, Body::from_stream(stream::events(answering, encoder, asked.with_usage))).into_response();
    decision_headers::add(response.headers_mut(), &record);
    Ok(response)
}

pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
