//! Embedding requests and responses in OpenAI's format, the only format that clients use.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

use super::Error;
use super::chat::Usage;

/// An embedding request, as the client wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingRequest {
    /// The provider's model name, without a provider prefix.
    pub model: String,
    pub body: Map<String, Value>,
}

/// A serialized embedding response.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingResponse {
    pub body: Bytes,
    pub usage: Usage,
}

/// The result of one request to a provider.
#[derive(Debug, Clone, PartialEq)]
pub enum EmbeddingBatch {
    /// A complete response in OpenAI's format, unmodified.
    Passthrough(EmbeddingResponse),
    /// Vectors that are not serialized yet, and their token count.
    Vectors { vectors: Vec<Vec<f32>>, tokens: u64 },
}

/// Encoding of the vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Float,
    /// Single precision, little-endian.
    Base64,
}

#[derive(Serialize)]
struct EmbeddingResponseBody<'a> {
    object: &'static str,
    data: Vec<EmbeddingEntry<'a>>,
    model: &'a str,
    usage: EmbeddingUsage,
}

#[derive(Serialize)]
struct EmbeddingEntry<'a> {
    object: &'static str,
    index: usize,
    embedding: EncodedVector<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum EncodedVector<'a> {
    Float(&'a [f32]),
    Base64(String),
}

#[derive(Serialize)]
struct EmbeddingUsage {
    prompt_tokens: u64,
    total_tokens: u64,
}

impl EmbeddingRequest {
    /// The input texts. Other inputs, such as token IDs, are an error.
    pub fn texts(&self) -> Result<Vec<&str>, Error> {
        let unread = || Error::invalid_parameter("input");
        match self.body.get("input") {
            Some(Value::String(text)) => Ok(vec![text]),
            Some(Value::Array(texts)) => texts.iter().map(|text| text.as_str().ok_or_else(unread)).collect(),
            _ => Err(unread()),
        }
    }

    pub fn encoding(&self) -> Result<Encoding, Error> {
        Encoding::from_body(&self.body)
    }
}

impl Encoding {
    /// The encoding that a request body specifies.
    pub fn from_body(body: &Map<String, Value>) -> Result<Encoding, Error> {
        match body.get("encoding_format") {
            None | Some(Value::Null) => Ok(Encoding::Float),
            Some(format) if format == "float" => Ok(Encoding::Float),
            Some(format) if format == "base64" => Ok(Encoding::Base64),
            Some(_) => Err(Error::invalid_parameter("encoding_format")),
        }
    }
}

/// Merges the results of several requests.
pub fn merge_batches(embed: &EmbeddingRequest, batches: Vec<EmbeddingBatch>) -> Result<EmbeddingResponse, Error> {
    let (mut all, mut sum) = (Vec::new(), 0_u64);
    for batch in batches {
        match batch {
            EmbeddingBatch::Passthrough(embedded) => return Ok(embedded),
            EmbeddingBatch::Vectors { vectors, tokens } => {
                all.extend(vectors);
                sum = sum.saturating_add(tokens);
            }
        }
    }
    if all.len() != embed.texts()?.len() {
        return Err(Error::InvalidResponse("number of embeddings differs from number of texts"));
    }
    let vectors: Vec<&[f32]> = all.iter().map(Vec::as_slice).collect();
    let body = serialize_response(&vectors, &embed.model, sum, embed.encoding()?).into();
    Ok(EmbeddingResponse { body, usage: Usage { prompt: sum, ..Usage::default() } })
}

/// Serializes vectors as a response body.
pub fn serialize_response(vectors: &[&[f32]], model: &str, tokens: u64, encoding: Encoding) -> String {
    let numbers = |vector| match encoding {
        Encoding::Float => EncodedVector::Float(vector),
        Encoding::Base64 => EncodedVector::Base64(base64(vector)),
    };
    let vectors = vectors.iter().enumerate();
    let data = vectors
        .map(|(index, vector)| EmbeddingEntry { object: "embedding", index, embedding: numbers(vector) })
        .collect();
    let usage = EmbeddingUsage { prompt_tokens: tokens, total_tokens: tokens };
    serde_json::to_string(&EmbeddingResponseBody { object: "list", data, model, usage })
        .expect("texts and numbers are JSON")
}

fn base64(vector: &[f32]) -> String {
    STANDARD.encode(vector.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>())
}
