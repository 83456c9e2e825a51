//! `POST /v1/embeddings`, by the built-in model or by a provider.

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use corbie_infer::Purpose;
use corbie_mcp::{Caller, ErrorCode};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value};

use super::error::ApiError;
use super::{ApiState, decision_headers};
use crate as route;
use crate::AUTO;
use corbie_classify::inference;
use corbie_llm::embeddings::{self, EmbeddingRequest};

/// OpenAI's limit.
const MAX_TEXTS: usize = 2048;

pub(super) async fn post(
    State(face): State<ApiState>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let (body, _held) = face.admit(&caller, "embeddings", &headers, body).await?;
    let body: Map<String, Value> =
        serde_json::from_slice(&body).map_err(|_| ApiError::invalid("request body is not a JSON object", None))?;
    let model = match body.get("model") {
        None | Some(Value::Null) => None,
        Some(Value::String(model)) => Some(model.clone()).filter(|model| !face.is_local_model(model)),
        Some(_) => return Err(ApiError::invalid("`model` must be the name of a model, or `auto`", Some("model"))),
    };
    check_input(&body)?;
    match model {
        None => embed_locally(&face, body).await,
        Some(model) => embed_by_provider(&face, EmbeddingRequest { model, body }, caller).await,
    }
}

impl ApiState {
    /// Whether a name selects the built-in model: `auto`, or its id before and after it is loaded.
    fn is_local_model(&self, model: &str) -> bool {
        let loaded = || self.inference.loaded().is_some_and(|loaded| loaded.id.to_string() == model);
        model == AUTO || model == self.inference.configured_model() || loaded()
    }
}

/// Validates the input for both. An array of token ids is one text, and only a provider can process it.
fn check_input(body: &Map<String, Value>) -> Result<(), ApiError> {
    let texts = match body.get("input") {
        Some(Value::String(_)) => 1,
        Some(Value::Array(tokens)) if tokens.first().is_some_and(Value::is_number) => 1,
        Some(Value::Array(texts)) => texts.len(),
        _ => return Err(ApiError::invalid("`input` must be a string or a list of strings", Some("input"))),
    };
    if (1..=MAX_TEXTS).contains(&texts) {
        return Ok(());
    }
    Err(ApiError::invalid(format!("`input` has {texts} texts; the limit is 1 to {MAX_TEXTS}"), Some("input")))
}

async fn embed_locally(face: &ApiState, body: Map<String, Value>) -> Result<Response, ApiError> {
    let embed = EmbeddingRequest { model: face.inference.configured_model(), body };
    let texts = embed.texts().map_err(|_| {
        let message = "`input` must be a string or a list of strings; the built-in model does not accept token IDs";
        ApiError::invalid(message, Some("input"))
    })?;
    let encoding = embed.encoding().map_err(|_| unknown_encoding())?;
    let texts = texts.into_iter().map(str::to_owned).collect();
    let made = face.inference.embed(texts, Purpose::Passage).await.map_err(|error| match error {
        inference::Error::Text { .. } => ApiError::invalid(error.to_string(), Some("input")),
        error => ApiError::internal(error.to_string()),
    })?;
    let length = made[0].vector.len();
    if embed.body.get("dimensions").is_some_and(|wanted| !wanted.is_null() && *wanted != length) {
        return Err(ApiError::invalid(
            format!("`dimensions` must be {length} for the built-in model"),
            Some("dimensions"),
        ));
    }
    let vectors: Vec<&[f32]> = made.iter().map(|embedding| embedding.vector.as_slice()).collect();
    let tokens = made.iter().map(|embedding| embedding.tokens as u64).sum();
    let model = made[0].model.to_string();
    Ok(reply(embeddings::serialize_response(&vectors, &model, tokens, encoding).into()))
}

async fn embed_by_provider(face: &ApiState, embed: EmbeddingRequest, caller: Caller) -> Result<Response, ApiError> {
    let routed = face.router.embed(embed, caller.identity).await.map_err(|error| to_api_error(error, face))?;
    let mut response = reply(routed.response.body);
    decision_headers::add(response.headers_mut(), &routed.record);
    Ok(response)
}

/// The error for an unknown model mentions the built-in model.
fn to_api_error(error: route::Error, face: &ApiState) -> ApiError {
    match &error {
        route::Error::Provider { provider, error, .. } => match error.parameter() {
            Some("input") => {
                let message = format!(
                    "`input` must be a string or a list of strings; {provider} does not accept token \
                    IDs"
                );
                return ApiError::invalid(message, Some("input"));
            }
            Some("encoding_format") => return unknown_encoding(),
            Some("dimensions") => return ApiError::invalid("`dimensions` must be a number", Some("dimensions")),
            _ => {}
        },
        route::Error::NoProvider => return ApiError::no_embedding_model(&error, &face.inference.configured_model()),
        _ => {}
    }
    match error.code() {
        ErrorCode::ModelNotFound => ApiError::no_embedding_model(&error, &face.inference.configured_model()),
        _ => ApiError::from(error),
    }
}

fn unknown_encoding() -> ApiError {
    ApiError::invalid("`encoding_format` must be `float` or `base64`", Some("encoding_format"))
}

fn reply(body: Bytes) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}
