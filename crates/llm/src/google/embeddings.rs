//! Google embeddings: `batchEmbedContents`.

use serde_json::{Value, json};

use super::fields::{Object, field, object, objects};
use super::resource;
use crate::Error;
use crate::embeddings::{EmbeddingBatch, EmbeddingRequest};

/// Maximum number of texts per request; the API rejects more.
const MAX_TEXTS: usize = 100;

/// The request bodies, one per batch of texts.
pub(super) fn bodies(embed: &EmbeddingRequest) -> Result<Vec<Value>, Error> {
    let (collection, model) = resource(&embed.model);
    let name = format!("{collection}/{model}");
    let dimensions = match embed.body.get("dimensions") {
        None | Some(Value::Null) => None,
        Some(dimensions) => Some(dimensions.as_u64().ok_or_else(|| Error::invalid_parameter("dimensions"))?),
    };
    // Rejects an unsupported encoding before any request is sent, because the response must be written in it.
    embed.encoding()?;
    let request = |text: &&str| {
        let mut request = json!({"model": name, "content": {"parts": [{"text": text}]}});
        if let Some(dimensions) = dimensions {
            request["outputDimensionality"] = dimensions.into();
        }
        request
    };
    let body = |texts: &[&str]| json!({"requests": texts.iter().map(request).collect::<Vec<_>>()});
    Ok(embed.texts()?.chunks(MAX_TEXTS).map(body).collect())
}

/// The vectors of a response, in input order. Older models do not report token usage.
pub(super) fn batch(body: &Object) -> Result<EmbeddingBatch, Error> {
    let vectors: Option<Vec<Vec<f32>>> = objects(body, "embeddings").into_iter().map(vector).collect();
    let vectors =
        vectors.filter(|vectors| !vectors.is_empty()).ok_or(Error::InvalidResponse("response has no embeddings"))?;
    let counts = object(body, "usageMetadata");
    let tokens = counts.and_then(|counts| field(counts, "promptTokenCount")?.as_u64()).unwrap_or_default();
    Ok(EmbeddingBatch::Vectors { vectors, tokens })
}

fn vector(embedding: &Object) -> Option<Vec<f32>> {
    let values = field(embedding, "values")?.as_array()?;
    values.iter().map(|value| value.as_f64().map(|value| value as f32)).collect()
}
