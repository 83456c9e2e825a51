//! `POST /v1/embeddings`, by the built-in model or by a provider.

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use corbie_infer::Purpose;
use corbie_mcp::{Caller, Code};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value};

use super::failure::Failure;
use super::{Face, decision_headers};
use crate::providers::embeddings::{self, Embed};
use crate::route::AUTO;
use crate::{inference, route};

/// OpenAI's limit.
const MOST_TEXTS: usize = 2048;

pub(super) async fn post(
    State(face): State<Face>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let (body, _held) = face.admit(&caller, "embeddings", &headers, body).await?;
    let body: Map<String, Value> =
        serde_json::from_slice(&body).map_err(|_| Failure::invalid("the body is no JSON object", None))?;
    let model = match body.get("model") {
        None | Some(Value::Null) => None,
        Some(Value::String(model)) => Some(model.clone()).filter(|model| !face.is_inside(model)),
        Some(_) => return Err(Failure::invalid("`model` must be the name of a model, or `auto`", Some("model"))),
    };
    check_input(&body)?;
    match model {
        None => inside(&face, body).await,
        Some(model) => by_provider(&face, Embed { model, body }, caller).await,
    }
}

impl Face {
    /// Whether a name selects the built-in model: `auto`, or its id before and after it is loaded.
    fn is_inside(&self, model: &str) -> bool {
        let loaded = || self.inference.loaded().is_some_and(|loaded| loaded.id.to_string() == model);
        model == AUTO || model == self.inference.planned() || loaded()
    }
}

/// Validates the input for both. An array of token ids is one text, and only a provider can process it.
fn check_input(body: &Map<String, Value>) -> Result<(), Failure> {
    let texts = match body.get("input") {
        Some(Value::String(_)) => 1,
        Some(Value::Array(tokens)) if tokens.first().is_some_and(Value::is_number) => 1,
        Some(Value::Array(texts)) => texts.len(),
        _ => return Err(Failure::invalid("`input` must be a text or a list of texts", Some("input"))),
    };
    if (1..=MOST_TEXTS).contains(&texts) {
        return Ok(());
    }
    Err(Failure::invalid(format!("`input` has {texts} texts; 1 to {MOST_TEXTS} are taken"), Some("input")))
}

async fn inside(face: &Face, body: Map<String, Value>) -> Result<Response, Failure> {
    let embed = Embed { model: face.inference.planned(), body };
    let texts = embed.texts().map_err(|_| {
        let message = "`input` must be a text or a list of texts; the model inside takes no token numbers";
        Failure::invalid(message, Some("input"))
    })?;
    let encoding = embed.encoding().map_err(|_| unknown_encoding())?;
    let texts = texts.into_iter().map(str::to_owned).collect();
    let made = face.inference.embed(texts, Purpose::Passage).await.map_err(|error| match error {
        inference::Error::Text { .. } => Failure::invalid(error.to_string(), Some("input")),
        error => Failure::internal(error.to_string()),
    })?;
    let length = made[0].vector.len();
    if embed.body.get("dimensions").is_some_and(|wanted| !wanted.is_null() && *wanted != length) {
        return Err(Failure::invalid(format!("the model inside has {length} dimensions"), Some("dimensions")));
    }
    let vectors: Vec<&[f32]> = made.iter().map(|embedding| embedding.vector.as_slice()).collect();
    let tokens = made.iter().map(|embedding| embedding.tokens as u64).sum();
    let model = made[0].model.to_string();
    Ok(reply(embeddings::write(&vectors, &model, tokens, encoding).into()))
}

async fn by_provider(face: &Face, embed: Embed, caller: Caller) -> Result<Response, Failure> {
    let routed = face.router.embed(embed, caller.identity).await.map_err(|error| failure(error, face))?;
    let mut response = reply(routed.embedded.body);
    decision_headers::add(response.headers_mut(), &routed.record);
    Ok(response)
}

/// The error for an unknown model mentions the built-in model.
fn failure(error: route::Error, face: &Face) -> Failure {
    match &error {
        route::Error::Provider { provider, error, .. } => match error.parameter() {
            Some("input") => {
                let message = format!("`input` must be a text or a list of texts; {provider} takes no token numbers");
                return Failure::invalid(message, Some("input"));
            }
            Some("encoding_format") => return unknown_encoding(),
            Some("dimensions") => return Failure::invalid("`dimensions` must be a number", Some("dimensions")),
            _ => {}
        },
        route::Error::NoProvider => return Failure::no_embedding_model(&error, &face.inference.planned()),
        _ => {}
    }
    match error.code() {
        Code::ModelNotFound => Failure::no_embedding_model(&error, &face.inference.planned()),
        _ => Failure::from(error),
    }
}

fn unknown_encoding() -> Failure {
    Failure::invalid("`encoding_format` is `float` or `base64`", Some("encoding_format"))
}

fn reply(body: Bytes) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}
