//! OpenAI embeddings. Both sides speak the same protocol, so request and response pass through.

use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::{error, response};
use crate::Error;
use crate::embeddings::{EmbeddingRequest, EmbeddingResponse};

/// The fields read from a response; the vectors are passed through.
#[derive(Deserialize)]
struct EmbeddingResponseFields {
    data: Vec<IgnoredAny>,
    #[serde(default)]
    usage: Value,
}

/// The client's body, with the provider's name for the model.
pub(super) fn body(embed: &EmbeddingRequest) -> String {
    let mut body = embed.body.clone();
    body.insert("model".into(), embed.model.as_str().into());
    Value::Object(body).to_string()
}

pub(super) fn read(body: &Bytes) -> Result<EmbeddingResponse, Error> {
    match serde_json::from_slice::<EmbeddingResponseFields>(body) {
        Ok(answer) if !answer.data.is_empty() => {
            Ok(EmbeddingResponse { body: body.clone(), usage: response::usage(&answer.usage).unwrap_or_default() })
        }
        _ => {
            let inside = serde_json::from_slice::<Map<String, Value>>(body).ok().as_ref().and_then(error::from_body);
            Err(inside.unwrap_or(Error::InvalidResponse("response has no embeddings")))
        }
    }
}
