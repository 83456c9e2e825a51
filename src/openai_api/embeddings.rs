//! `POST /v1/embeddings`, by the model inside.

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use corbie_infer::{Embedding, Purpose};
use corbie_mcp::Caller;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Face;
use super::failure::Failure;
use crate::inference;

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Input {
    One(String),
    Many(Vec<String>),
}

/// As many as OpenAI takes.
const MOST_TEXTS: usize = 2048;

pub(super) async fn post(
    State(face): State<Face>,
    Extension(caller): Extension<Caller>,
    body: Body,
) -> Result<Response, Failure> {
    let body = face.admit(&caller, body).await?;
    let mut body: Map<String, Value> =
        serde_json::from_slice(&body).map_err(|_| Failure::invalid("the body is no JSON object", None))?;
    let texts = match serde_json::from_value(body.remove("input").unwrap_or_default()) {
        Ok(Input::One(text)) => vec![text],
        Ok(Input::Many(texts)) => texts,
        Err(_) => {
            let message = "`input` must be a text or a list of texts; token numbers are not taken";
            return Err(Failure::invalid(message, Some("input")));
        }
    };
    if texts.is_empty() || texts.len() > MOST_TEXTS {
        return Err(Failure::invalid(
            format!("`input` has {} texts; 1 to {MOST_TEXTS} are taken", texts.len()),
            Some("input"),
        ));
    }
    let base64 = match body.get("encoding_format") {
        None | Some(Value::Null) => false,
        Some(format) if format == "float" => false,
        Some(format) if format == "base64" => true,
        Some(_) => return Err(Failure::invalid("`encoding_format` is `float` or `base64`", Some("encoding_format"))),
    };
    let embeddings = face.inference.embed(texts, Purpose::Passage).await.map_err(|error| match error {
        inference::Error::Text { .. } => Failure::invalid(error.to_string(), Some("input")),
        error => Failure::internal(error.to_string()),
    })?;
    let length = embeddings[0].vector.len();
    if body.get("dimensions").is_some_and(|wanted| !wanted.is_null() && *wanted != length) {
        return Err(Failure::invalid(format!("the model inside has {length} dimensions"), Some("dimensions")));
    }
    Ok(([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], answer(&embeddings, base64)).into_response())
}

fn answer(embeddings: &[Embedding], base64: bool) -> String {
    let vector = |embedding: &Embedding| -> Value {
        match base64 {
            true => {
                let bytes: Vec<u8> = embedding.vector.iter().flat_map(|number| number.to_le_bytes()).collect();
                STANDARD.encode(bytes).into()
            }
            false => json!(embedding.vector),
        }
    };
    let entry = |(index, embedding): (usize, &Embedding)| json!({ "object": "embedding", "index": index, "embedding": vector(embedding) });
    let tokens: usize = embeddings.iter().map(|embedding| embedding.tokens).sum();
    let data: Vec<Value> = embeddings.iter().enumerate().map(entry).collect();
    json!({
        "object": "list",
        "data": data,
        "model": embeddings[0].model,
        "usage": { "prompt_tokens": tokens, "total_tokens": tokens },
    })
    .to_string()
}
